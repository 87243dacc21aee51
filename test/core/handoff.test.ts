import { describe, expect, test } from "vitest";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";

describe("exclusive handoff", () => {
  test("H1: granted only after the release", () => {
    const { world } = formed([["A", { releaseMs: 4_000 }]], { t: 2 });
    const c = new SimExecutor(world, "C").connect();
    world.advance(250);
    const askedAt = world.now;
    expect(world.owners("t").filter((owner) => owner === "-")).toHaveLength(1);
    world.advanceTo(askedAt + 3_999);
    expect(c.holds("t")).toEqual([]);
    world.advanceTo(askedAt + 4_000);
    expect(c.holds("t")).toHaveLength(1);
  });

  test("H1: if the old owner dies meanwhile, granted after its lease", () => {
    const { world, executors } = formed([["A", { releaseMs: 4_000 }]], { t: 2 });
    const c = new SimExecutor(world, "C").connect();
    world.advance(1_250);
    executors[0]?.kill();
    world.advance(8_000);
    expect(c.holds("t")).toEqual([]);
    world.advance(4_000);
    expect(c.holds("t")).toEqual([0, 1]);
  });

  test("H2: a revoke stands although its taker left; who is there at the release gets the partitions", () => {
    const { world, executors } = formed([["A", { releaseMs: 8_000 }]], { t: 8 });
    const joinedAt = world.now;
    const b = new SimExecutor(world, "B").connect();
    world.advanceTo(joinedAt + 3_000);
    const asked = executors[0]?.pushes.at(-1)?.revoke ?? [];
    expect(asked[0]?.partitions.size).toBe(4);
    b.leave("move");
    expect(b.leftAt).toBe(world.now);
    b.drop();
    world.advanceTo(joinedAt + 5_000);
    b.connect();
    world.advanceTo(joinedAt + 8_000);
    expect(world.loads()).toEqual({ A: 4 });
    world.advanceTo(joinedAt + 9_000);
    expect(world.loads()).toEqual({ A: 4, B: 4 });
    expect(b.holds("t")).toEqual([...(asked[0]?.partitions ?? [])]);
    for (const partition of asked[0]?.partitions ?? []) {
      expect(world.epochs("t")[partition]).toBeGreaterThan(asked[0]?.epoch ?? Number.POSITIVE_INFINITY);
    }
    const revision = world.revision;
    executors[0]?.report("released", asked);
    world.advance(1_000);
    expect(world.revision).toBe(revision);
  });

  test("H3: a release for an epoch that is not current is ignored", () => {
    const { world, executors } = formed(["A"], { t: 2 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(1_000);
    const asked = executors[0]?.pushes.at(-1)?.revoke ?? [];
    const [a] = executors as [SimExecutor];
    b.leave();
    world.advance(1_000);
    expect(world.loads()).toEqual({ A: 2 });
    const revision = world.revision;
    for (const delay of [5_000, 5_000]) {
      world.advance(delay);
      a.report("released", asked);
    }
    world.advance(1_000);
    expect(world.revision).toBe(revision);
    expect(world.loads()).toEqual({ A: 2 });
  });

  test("H7: one of 60 that never acks does not hold the other 59 up", () => {
    const ids = Array.from({ length: 60 }, (_, i) => `E${String(i).padStart(2, "0")}`);
    const { world, executors } = formed(
      ids.map((id, i) => [id, i === 7 ? { ackMs: "never" } : {}] as const),
      { t: 600 },
    );
    const waiting = world.status.executors.filter((executor) => executor.ready < executor.owned);
    expect(waiting.map(({ executor }) => executor)).toEqual(["E07"]);
    const newcomer = new SimExecutor(world, "N").connect();
    world.advance(3_000);
    // 600 over 61 is 9 or 10 each; what the newcomer has comes from those that answer.
    expect(newcomer.holds("t").length).toBeGreaterThanOrEqual(8);
    const others = world.status.executors.filter(({ executor }) => executor !== "E07");
    for (const { owned, ready, unacked } of others) expect([ready, unacked]).toEqual([owned, undefined]);
    for (const executor of executors) if (executor.name !== "E07") expect(executor.closes).toEqual([]);
  });

  test("H8: a new session is untouched by the late end of the old one", () => {
    const { world, executors } = formed(["A"], { t: 2 });
    const [a] = executors as [SimExecutor];
    const old = a.session;
    a.connect({ resume: true });
    const pushes = a.pushes.length;
    for (const delay of [1_000, 9_000, 20_000]) {
      world.advance(delay);
      if (old !== undefined) world.post({ type: "session.closed", session: old, code: 1006 });
      world.run();
    }
    expect(world.status.executors[0]).toMatchObject({ connected: true, suspect: false, owned: 2 });
    expect(a.closes).toEqual([]);
    expect(a.pushes).toHaveLength(pushes);
  });

  test.each([
    [10_000, "same epochs", true],
    [15_000, "counted lost at 12 s, its old partitions preferred", false],
  ] as const)("H9: loop blocked for %i ms: %s", (blockedMs, _outcome, sameEpochs) => {
    const { world, executors } = formed([["A", { reconnectMs: 0 }], "B"], { t: 4 });
    const [a] = executors as [SimExecutor];
    const [owners, epochs] = [world.owners("t"), world.epochs("t")];
    const own = a.holds("t");
    const blockedAt = world.now;
    a.frozen = true;
    world.advance(blockedMs);
    const lost = world.loggedAt("executor.lost");
    const pushes = a.pushes.length;
    if (!sameEpochs) expect(lost).toEqual([blockedAt + 12_000]);
    a.frozen = false;
    world.advance(3_000);
    expect(a.pushes[pushes]?.base).toBe(null);
    expect(a.welcomes.at(-1)?.resumed).toBe(false);
    expect(world.loads()).toEqual({ A: 2, B: 2 });
    if (sameEpochs) expect([world.owners("t"), world.epochs("t"), lost]).toEqual([owners, epochs, []]);
    else for (const partition of own) expect(world.epochs("t")[partition]).toBeGreaterThan(epochs[partition] as number);
    expect(a.holds("t")).toEqual(own);
  });

  test("H10: two processes with one id: one take-over, the loser stops for good", () => {
    const { world, executors } = formed([["A", { reconnectMs: 100 }]], { t: 2 });
    const [first] = executors as [SimExecutor];
    const revision = world.revision;
    const second = new SimExecutor(world, "A#2", { instance: "A-2", reconnectMs: 100 }).connect();
    for (let i = 0; i < 30; i++) {
      world.advance(2_000);
      if (first.session === undefined) first.connect();
    }
    expect(second.closes).toEqual([]);
    expect(first.closes.every(({ code }) => code === 4409)).toBe(true);
    expect(first.closes[0]?.reason).toMatch(/replaced by a newer instance/);
    expect(world.revision - revision).toBeLessThanOrEqual(3);
    expect(second.holds("t")).toEqual([0, 1]);
  });
});

describe("delivery", () => {
  test("H4: unacknowledged pushes close the session and slow down; the lease lives on; healed without restart", () => {
    const { world, executors } = formed(["A", ["B", { reconnectMs: 0 }]], { t: 4 });
    const [a, b] = executors as [SimExecutor, SimExecutor];
    const aPushes = a.pushes.length;
    b.options.ackMs = "never";
    world.table("u", 8);
    const start = world.now;
    expect(world.status.executors.find(({ executor }) => executor === "B")?.unacked).toBeDefined();
    world.advance(300_000);
    const overdue = b.closes.map(({ at, code }) => [code, Math.round((at - start) / 1_000)]);
    expect(overdue.every(([code]) => code === 4411)).toBe(true);
    expect(b.welcomes.slice(1).every(({ resumed }) => resumed)).toBe(true);
    // 10 s for the first; then each push waits 1, 2, 4, 8, 16, 32, 60 s before its 10 s begin.
    expect(overdue.map(([, at]) => at)).toEqual([10, 21, 33, 47, 65, 91, 133, 203, 273]);
    expect(world.loggedAt("executor.lost")).toEqual([]);
    expect(world.status.executors.find(({ executor }) => executor === "B")).toMatchObject({
      cordoned: true,
      connected: true,
    });
    expect(world.status.alarms).toMatchObject([{ code: "overdue" }]);
    const held = world.loads();
    world.table("v", 4);
    expect(world.loads("v")).toEqual({ A: 4 });
    b.options.ackMs = 0;
    world.advance(61_000);
    expect(world.status.alarms).toEqual([]);
    expect(world.loads()["B"]).toBeGreaterThanOrEqual(held["B"] as number);
    expect(b.holds("u")).toHaveLength(4);
    expect(a.closes).toEqual([]);
    expect(a.pushes.length).toBeGreaterThan(aPushes);
  });

  test("H4: only the acks are lost: the resume acknowledges and ends the row", () => {
    const { world, executors } = formed(["A", ["B", { reconnectMs: 0 }]], { t: 4 });
    const [, b] = executors as [SimExecutor, SimExecutor];
    b.options.ackMs = "lost";
    world.table("u", 2);
    world.advance(30_000);
    expect(b.closes.map(({ code }) => code)).toEqual([4411]);
    expect(b.welcomes.at(-1)?.resumed).toBe(true);
    expect(world.status.executors.find(({ executor }) => executor === "B")?.unacked).toBeUndefined();
    expect(world.status.converged).toBe(true);
  });

  test("P32: a revoke left unacknowledged three times: refused until its lease has ended, then placed elsewhere", () => {
    const { world, executors } = formed([["B", { reconnectMs: 0 }]], { t: 4 });
    const [b] = executors as [SimExecutor];
    b.options.ackMs = "never";
    b.options.reconnectMs = 1_000;
    const a = new SimExecutor(world, "A").connect();
    world.advance(36_000);
    expect(b.closes.filter(({ code }) => code === 4411)).toHaveLength(3);
    expect(b.closes.some(({ code }) => code === 4503)).toBe(true);
    expect(a.holds("t")).toEqual([]);
    world.advance(14_000);
    expect(world.loggedAt("executor.lost")).toHaveLength(1);
    expect(a.holds("t")).toEqual([0, 1, 2, 3]);
    world.advance(10_000);
    expect(world.status.executors.find(({ executor }) => executor === "B")).toMatchObject({
      connected: true,
      cordoned: true,
    });
    expect(world.status.alarms).toMatchObject([{ code: "overdue" }]);
    b.options.ackMs = 0;
    world.advance(90_000);
    expect(world.loads()).toEqual({ A: 2, B: 2 });
  });

  test("one push is out per session; what happens meanwhile is merged into the next", () => {
    const { world, executors } = formed([["A", { ackMs: 3_000 }], "B"], { t: 2 });
    const [a] = executors as [SimExecutor];
    world.advance(3_000);
    const before = a.pushes.length;
    for (const name of ["u", "v", "w"]) world.table(name, 4);
    world.advance(10_000);
    const [first, second, ...rest] = a.pushes.slice(before);
    expect(rest).toEqual([]);
    expect(second?.base).toBe(first?.revision);
    expect(second?.grant.map(({ table }) => table)).toEqual(["v", "w"]);
  });
});

describe("shutdown", () => {
  test("each session goes at its own time within one renew period; renewals are answered; nothing is decided", () => {
    const { world, executors } = formed(["A", "B", "C", "D"], { t: 8 });
    const revision = world.revision;
    world.post({ type: "shutdown.requested" });
    world.run();
    const goaways = world.transcript
      .filter((line) => line.includes("goaway"))
      .map((line) => Number(line.split("after=")[1]));
    expect(goaways).toEqual([0, 250, 500, 750]);
    world.advance(749);
    expect(executors.filter((executor) => executor.session !== undefined).map(({ name }) => name)).toEqual(["D"]);
    world.table("u", 1);
    world.advance(1);
    expect(world.finished).toBe(true);
    expect(executors.map((executor) => executor.closes.map(({ code }) => code))).toEqual([
      [1001],
      [1001],
      [1001],
      [1001],
    ]);
    expect(world.revision).toBe(revision);
    const late = new SimExecutor(world, "L").connect();
    expect(late.closes).toMatchObject([{ code: 4503 }]);
  });
});
