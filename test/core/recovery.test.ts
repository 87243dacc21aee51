import { describe, expect, test } from "vitest";
import { stretched } from "../../src/model/settings.ts";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";

const ABC = ["A", "B", "C"] as const;

describe("a restart of the scheduler", () => {
  test("R1: owners that return get their own back at their hello, under the same epochs; nothing moves", () => {
    const { world, executors, revision } = formed(ABC, { t: 9 });
    const [owners, epochs] = [world.owners("t"), world.epochs("t")];
    world.restart(100);
    for (const [executor, at] of [
      [0, 200],
      [1, 400],
      [2, 600],
    ] as const) {
      world.after(at, () => executors[executor]?.connect({ resume: true }));
    }
    world.advance(199);
    expect(world.status).toMatchObject({ state: "recovering", converged: false, windows: [{ kind: "recovery" }] });
    for (const executor of executors) {
      world.advance(200);
      expect(executor.welcomes.at(-1)).toMatchObject({ status: "assigned", resumed: false });
      expect(executor.pushes.at(-1)).toMatchObject({ base: null, revision: world.revision });
    }
    world.advance(1_000);
    expect([world.owners("t"), world.epochs("t"), world.revision]).toEqual([owners, epochs, revision]);
    expect(world.status.converged).toBe(true);
    expect([world.loggedAt("recovery.started").length, world.loggedAt("recovery.ended").length]).toEqual([1, 1]);
  });

  test("R2: one that never returns is lost when wait and lease are over; only its partitions are placed", () => {
    const { world, executors, revision } = formed(ABC, { t: 9 });
    const before = world.owners("t");
    executors[2]?.kill();
    world.restart(100);
    for (const executor of executors.slice(0, 2)) world.after(200, () => executor.connect({ resume: true }));
    const startedAt = world.now + 100;
    world.advanceTo(startedAt + stretched(10_000, world.settings.lease) - 1);
    expect(world.owners("t")).toEqual(before);
    expect(world.status.waitingFor.join()).toMatch(/recovery: 2 of 3 owners are back/);
    world.advance(100);
    expect(Object.values(world.loads()).sort()).toEqual([4, 5]);
    expect(world.moves(revision)).toBe(0);
    expect(world.owners("t").filter((owner, partition) => owner === before[partition])).toHaveLength(6);
  });

  test("a newcomer waits for the owners, and is told so", () => {
    const { world, executors } = formed(["A", "B"], { t: 8 });
    world.restart(0);
    world.advance(100);
    const n = new SimExecutor(world, "N").connect();
    expect(n.welcomes[0]).toMatchObject({
      status: "pending",
      waitingFor: "recovery: 0 of 2 owners are back, 11.1 s left",
    });
    world.advance(5_000);
    expect(world.loads()).toEqual({ A: 4, B: 4 });
    expect(n.pushes).toEqual([]);
    for (const executor of executors) executor.connect({ resume: true });
    world.advance(3_000);
    expect(world.loads()).toEqual({ A: 3, B: 3, N: 2 });
  });

  test("P3: a new process of an id that says hello before its old one waits the old lease out", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a] = executors;
    const own = a.holds("t");
    world.restart(0);
    world.advance(100);
    const startedAt = world.now - 100;
    const again = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    executors[1]?.connect({ resume: true });
    world.advanceTo(startedAt + stretched(10_000, world.settings.lease) - 1);
    expect(again.pushes).toEqual([]);
    expect(world.loads()).toEqual({ B: 2 });
    a.connect();
    expect(a.closes.at(-1)?.code).toBe(4409);
    world.advance(100);
    expect(again.holds("t")).toEqual(own);
  });

  test("P6: nothing ends by lease before the longest lease of the earlier reign, even if the owner was heard since", () => {
    const long = { durationMs: 60_000, renewMs: 1_000, clientMarginMs: 1_000, serverMarginMs: 1_000, driftRate: 0.01 };
    const { world, executors } = formed(["A", "B"], { t: 2 }, { settings: { lease: long } });
    const [a, b] = executors;
    world.restart(0, { settings: { lease: { ...long, durationMs: 15_000 } } });
    const startedAt = world.now;
    world.advance(100);
    a.connect({ resume: true });
    b?.connect({ resume: true });
    world.advance(100);
    a.frozen = true;
    a.drop();
    world.advanceTo(startedAt + stretched(60_000, long) - 1);
    expect(world.loads()).toEqual({ A: 1, B: 1 });
    world.advance(100);
    expect(world.loads()).toEqual({ B: 2 });
  });

  test("P6: that holds for what an executor was granted only after the restart, too", () => {
    const long = { durationMs: 60_000, renewMs: 1_000, clientMarginMs: 1_000, serverMarginMs: 1_000, driftRate: 0.01 };
    const { world, executors } = formed([["A", { capacity: 0 }], "B"], { t: 2 }, { settings: { lease: long } });
    const [a, b] = executors;
    world.restart(0, { settings: { lease: { ...long, durationMs: 15_000 } } });
    const startedAt = world.now;
    world.advance(100);
    Object.assign(a.options, { capacity: 2 });
    a.connect({ resume: true });
    b?.connect({ resume: true });
    world.advance(500);
    expect(a.holds("t")).toHaveLength(1);
    a.frozen = true;
    a.drop();
    world.advanceTo(startedAt + stretched(60_000, long) - 1);
    expect(world.loads()).toEqual({ A: 1, B: 1 });
  });

  test("S1: killed right after a commit was durable, before any push: the push follows the hello at once", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    world.commitMs = 50;
    world.table("u", 4);
    world.advance(40);
    expect(world.state.append).toBeDefined();
    world.restart(100, { landed: true });
    world.commitMs = 0;
    world.advance(200);
    for (const executor of executors) {
      executor.connect({ resume: true });
      expect(executor.holds("u")).toHaveLength(2);
    }
  });

  test("a place kept for a planned restart is kept over a restart of the scheduler", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a] = executors;
    const own = a.holds("t");
    a.leave("restart");
    world.advance(100);
    a.kill();
    world.restart(100);
    world.after(200, () => executors[1]?.connect({ resume: true }));
    world.advance(20_000);
    expect(world.loads()).toEqual({ B: 2 });
    const again = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    expect(again.holds("t")).toEqual(own);
  });

  test("a handoff that was begun goes on: released after the restart, granted to whom it was meant for", () => {
    const { world, executors } = formed([["A", { releaseMs: 3_000 }], "B"], { t: 4 });
    const [a, b] = executors;
    const c = new SimExecutor(world, "C").connect();
    world.advance(300);
    expect(a.pushes.at(-1)?.revoke).toHaveLength(1);
    world.restart(0);
    world.advance(100);
    for (const executor of [a, b, c]) executor?.connect({ resume: true });
    world.advance(4_000);
    expect(world.status.converged).toBe(true);
    expect(Object.values(world.loads()).sort()).toEqual([1, 1, 2]);
  });

  test("P24, P34: an instance that was replaced stays replaced", () => {
    const { world, executors } = formed(["A"], { t: 2 });
    const second = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    world.restart(100);
    world.advance(200);
    executors[0].connect();
    expect(executors[0].closes.at(-1)?.code).toBe(4409);
    second.connect({ resume: true });
    world.advance(13_000);
    expect(second.holds("t")).toEqual([0, 1]);
  });

  test("P30: executors that have everything loaded resume, not accepted, and answer the full push: no revision", () => {
    const ids = Array.from({ length: 50 }, (_, i) => `E${i}`);
    const { world, executors, revision } = formed(ids, { t: 500 });
    world.restart(100);
    for (const executor of executors) world.after(200, () => executor.connect({ resume: true }));
    world.advance(2_000);
    expect(world.revision).toBe(revision);
    expect(world.status.converged).toBe(true);
  });

  test("a leave that was under way comes to its end", () => {
    const { world, executors } = formed([["A", { releaseMs: 2_000 }], "B"], { t: 4 });
    const [a, b] = executors;
    a.leave("move");
    world.advance(500);
    world.restart(0);
    world.advance(100);
    a.connect({ resume: true });
    b?.connect({ resume: true });
    a.leave("move");
    world.advance(5_000);
    expect(a.leftAt).toBeDefined();
    expect(world.loads()).toEqual({ B: 4 });
  });

  test("executors that owned nothing and do not return are lost and forgotten like any other", () => {
    const { world, executors } = formed([["A", { capacity: 0 }], "B"], { t: 2 });
    world.restart(0);
    world.advance(100);
    executors[1]?.connect({ resume: true });
    world.advance(20_000);
    expect(world.status.executors.map(({ executor }) => executor)).toEqual(["B"]);
    world.advance(3_700_000);
    expect(world.changes.at(-1)?.executors).toMatchObject([{ executor: "A", removed: true }]);
  });
});

describe("a store that was rolled back", () => {
  test("P33: a valid stamp from beyond the ledger: alarm, refused, no decisions, nothing given back", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a, b] = executors;
    world.restart(0);
    world.advance(100);
    a.connect({ resume: true, proof: { term: 2, revision: world.revision + 5 } });
    expect(a.closes.at(-1)).toMatchObject({ code: 4503, reason: expect.stringMatching(/rolled back/) });
    b?.connect({ resume: true });
    expect(b?.closes.at(-1)?.code).toBe(4503);
    const revision = world.revision;
    world.advance(60_000);
    expect(world.revision).toBe(revision);
    expect(world.status).toMatchObject({ state: "store-failed", alarms: [{ code: "store-rolled-back" }] });
  });

  test("P33: a stamp that proves nothing new changes nothing", () => {
    const { world, executors } = formed(["A"], { t: 4 });
    world.restart(0);
    world.advance(100);
    executors[0].connect({ resume: true, proof: { term: 1, revision: world.revision } });
    expect(world.status).toMatchObject({ converged: true, alarms: [] });
  });
});

describe("a restored store", () => {
  test("nothing is granted before leases of the lost original have run out; then all again, under new epochs", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [owners, epochs] = [world.owners("t"), world.epochs("t")];
    world.restart(100, { quarantineMs: 30_000 });
    world.advance(200);
    const startedAt = world.now - 100;
    for (const executor of executors) executor.connect();
    world.table("u", 4);
    world.advanceTo(startedAt + stretched(30_000, world.settings.lease) - 1);
    expect(world.loads("u")).toEqual({});
    world.advance(1_000);
    expect(world.loads("u")).toEqual({ A: 2, B: 2 });
    expect([world.owners("t"), epochs.length]).toEqual([owners, 4]);
  });
});
