import { describe, expect, test } from "vitest";
import { instanceState } from "../../src/core/state.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { stretched } from "../../src/model/settings.ts";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";

const grant = (table: string, partitions: string, epoch: number) => ({
  table: tableName(table),
  partitions: PartitionSet.parse(partitions),
  epoch,
});

describe("when a grant ends", () => {
  test("P1: released for an epoch that is owned and not being revoked is ignored", () => {
    const {
      world,
      executors: [a],
    } = formed(["A", "B"], { t: 2 });
    const [partition = 0] = a.holds("t");
    const epoch = world.epochs("t")[partition] as number;
    a.connect();
    world.advance(100);
    expect(a.holds("t")).toEqual([partition]);
    const revision = world.revision;
    a.report("released", [grant("t", `${partition}`, epoch)]);
    world.advance(10_000);
    expect(world.revision).toBe(revision);
    expect(world.owners("t")[partition]).toBe("A");
  });

  test("P2: no revoke is taken back; the first release ends it, the second is ignored", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { releaseMs: "never" }]], { t: 2 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(1_000);
    const asked = a.pushes.at(-1)?.revoke ?? [];
    expect(asked).toHaveLength(1);
    b.leave();
    b.drop();
    world.advance(5_000);
    const before = world.epochs("t");
    expect(world.loads()).toEqual({ A: 1 });
    a.report("released", asked);
    world.advance(100);
    expect(world.loads()).toEqual({ A: 2 });
    const [partition = 0] = asked[0]?.partitions ?? [];
    expect(world.epochs("t")[partition]).toBeGreaterThan(before[partition] as number);
    const revision = world.revision;
    a.report("released", asked);
    world.advance(5_000);
    expect(world.revision).toBe(revision);
  });

  test("P4: a deleted table's name is refused until the last owner has given it back", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { releaseMs: 3_000 }]], { t: 2 });
    world.deleteTable("t");
    const refused = world.table("t", 4);
    expect(world.answers.get(refused)).toMatchObject({ ok: false, code: "table-removing" });
    world.advance(3_000);
    expect(a.holds("t")).toEqual([]);
    expect(world.state.ledger.tables.size).toBe(0);
    const made = world.table("t", 4);
    expect(world.answers.get(made)).toMatchObject({ ok: true });
    world.advance(5_000);
    expect(world.loads()).toEqual({ A: 4 });
    expect(a.pushes.at(-1)?.tables[0]?.created).toBeGreaterThan(1);
  });

  test("P5: the longest lease that was handed out counts", () => {
    const long = { durationMs: 60_000, renewMs: 1_000, clientMarginMs: 1_000, serverMarginMs: 1_000, driftRate: 0.01 };
    const {
      world,
      executors: [a],
    } = formed(["A", "B"], { t: 2 }, { settings: { lease: long } });
    const handedAt = world.now;
    world.state.settings = { ...world.state.settings, lease: { ...long, durationMs: 15_000 } };
    world.advance(10_000);
    a.frozen = true;
    a.drop();
    // Handed for the last time 1 s before the terms changed at the latest, which is at this moment.
    const endsAt = handedAt + stretched(60_000, long);
    world.advanceTo(endsAt - 1_001);
    expect(world.loads()).toEqual({ A: 1, B: 1 });
    world.advanceTo(endsAt + 1);
    expect(world.loads()).toEqual({ B: 2 });
  });

  test("P10: a partition that its handler never stops is cut alone, at its stop limit; the session lives on", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { releaseMs: "never" }]], { t: 4 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(250);
    const ackedAt = world.now;
    world.advanceTo(ackedAt + 30_000 * (1.01 / 0.99) + 999);
    expect(b.holds("t")).toEqual([]);
    world.advance(3);
    expect(b.holds("t")).toHaveLength(2);
    expect(a.closes).toEqual([]);
    expect(a.holds("t")).toHaveLength(2);
    expect(world.loggedAt("handoff.timeout")).toHaveLength(1);
  });

  test("P11: a release lost with its socket is asked for again after the resume", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { releaseMs: "never" }]], { t: 2 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(1_000);
    const asked = a.pushes.at(-1)?.revoke ?? [];
    a.drop();
    a.connect({ resume: true });
    expect(a.welcomes.at(-1)?.resumed).toBe(true);
    world.table("u", 2);
    expect(a.pushes.at(-1)?.revoke).toEqual(asked);
    a.report("released", asked);
    world.advance(100);
    expect(b.holds("t")).toHaveLength(1);
  });

  test("P12: a grant that was never sent ends silently when it is asked back", () => {
    const {
      world,
      executors: [a, b],
    } = formed([["A", { ackMs: 4_000 }], "B"], { t: 2 });
    world.advance(4_000);
    world.table("u", 2);
    const pushes = a.pushes.length;
    world.table("v", 2);
    world.deleteTable("v");
    world.advance(100);
    expect(world.state.ledger.tables.has(tableName("v"))).toBe(false);
    expect(a.pushes).toHaveLength(pushes);
    expect(b?.holds("v")).toEqual([]);
  });

  test("P12: a grant that was sent and not acknowledged is awaited", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { ackMs: 4_000 }], "B"], { t: 2 });
    world.advance(4_000);
    world.table("v", 2);
    world.deleteTable("v");
    world.advance(3_000);
    expect(world.state.ledger.tables.has(tableName("v"))).toBe(true);
    world.advance(6_000);
    expect(a.pushes.at(-1)?.revoke.map(({ table }) => table)).toEqual(["v"]);
    expect(world.state.ledger.tables.has(tableName("v"))).toBe(false);
  });

  test("P21: a repeat of a revoke never extends its stop limit", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { releaseMs: "never" }]], { t: 4 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(250);
    const ackedAt = world.now;
    world.advance(20_000);
    world.table("u", 2);
    world.advance(100);
    expect(a.pushes.at(-1)?.revoke).toHaveLength(1);
    world.advanceTo(ackedAt + 30_000 * (1.01 / 0.99) + 1_002);
    expect(b.holds("t")).toHaveLength(2);
  });

  test("P22: only the old process's lease ends what it serves; nothing the new one says does", () => {
    const {
      world,
      executors: [first],
    } = formed(["A"], { t: 2 });
    const epoch = world.epochs("t")[0] as number;
    first.frozen = true;
    const { leaseEndsAt } = instanceState(world.state, first.id, first.instance);
    const second = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    world.advance(1_000);
    second.report("released", [grant("t", "0-1", epoch)]);
    world.advance(5_000);
    expect(first.serving()).toHaveLength(2);
    world.advanceTo(leaseEndsAt - 1);
    expect(world.loads()).toEqual({});
    world.advanceTo(leaseEndsAt + 1);
    expect(second.holds("t")).toEqual([0, 1]);
  });
});

describe("sessions", () => {
  test("P13: a resume from the push whose ack was lost is accepted", () => {
    const {
      world,
      executors: [a],
    } = formed([["A", { ackMs: "lost" }], "B"], { t: 2 });
    a.drop();
    a.connect({ resume: true });
    expect(a.welcomes.at(-1)?.resumed).toBe(true);
    expect(world.status.executors[0]).toMatchObject({ acked: a.resume?.revision });
  });

  test("a resume from any other revision is not accepted, and a full push follows", () => {
    const {
      world,
      executors: [a],
    } = formed(["A"], { t: 2 });
    a.resume = { incarnation: "life", revision: 0 };
    a.drop();
    a.connect({ resume: true });
    expect(a.welcomes.at(-1)?.resumed).toBe(false);
    expect(a.pushes.at(-1)).toMatchObject({ base: null });
    expect(world.revision).toBe(a.pushes.at(-1)?.revision);
  });

  test("P14: a replaced process is refused again and again, the new one undisturbed", () => {
    const {
      world,
      executors: [first],
    } = formed(["A"], { t: 2 });
    const second = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    world.advance(13_000);
    const pushes = second.pushes.length;
    for (let i = 0; i < 5; i++) {
      world.advance(1_000);
      first.connect();
    }
    expect(first.closes.map(({ code }) => code)).toEqual([4409, 4409, 4409, 4409, 4409, 4409]);
    expect(second.closes).toEqual([]);
    expect(second.pushes).toHaveLength(pushes);
    expect(second.holds("t")).toEqual([0, 1]);
  });

  test("an attempt that is not higher is refused, and changes nothing", () => {
    const {
      world,
      executors: [a],
    } = formed(["A"], { t: 2 });
    const other = new SimExecutor(world, "A#copy").connect();
    expect(other.closes).toMatchObject([{ code: 4408 }]);
    expect(a.closes).toEqual([]);
    expect(world.status.executors[0]).toMatchObject({ connected: true, owned: 2 });
  });

  test("P19: the core answers every renewal, whatever else it waits for", () => {
    const {
      world,
      executors: [a],
    } = formed(["A"], { t: 2 });
    world.store = "hang";
    world.table("u", 2);
    const before = world.transcript.filter((line) => line.includes("> lease A")).length;
    world.advance(20_000);
    expect(world.transcript.filter((line) => line.includes("> lease A")).length - before).toBe(20);
    expect(a.closes).toEqual([]);
  });

  test("P23: a failed partition is asked back and placed elsewhere, and not offered again before its back-off", () => {
    const {
      world,
      executors: [a],
    } = formed(["A", "B"], { t: 4 });
    const [partition = 0] = a.holds("t");
    a.fail("t", `${partition}`);
    world.advance(500);
    expect(world.owners("t")[partition]).toBe("B");
    expect(a.holds("t")).not.toContain(partition);
    expect(world.loggedAt("push.rejected")).toHaveLength(1);
  });

  test("an ack ahead of what was sent closes the session, and no other", () => {
    const {
      world,
      executors: [a, b],
    } = formed(["A", "B"], { t: 2 });
    if (a.session !== undefined) world.post({ type: "ack.received", session: a.session, revision: world.revision + 1 });
    world.run();
    expect(a.closes).toMatchObject([{ code: 4400 }]);
    expect(b?.closes).toEqual([]);
  });

  test("a stall of the loop holds every expiry back for one renew period and at most 10 s more", () => {
    const { world, executors } = formed(["A", "B"], { t: 2 });
    for (const executor of executors) executor.frozen = true;
    world.now += 60_000;
    world.post({ type: "loop.stalled", stalledMs: 60_000 });
    world.run();
    expect(world.loggedAt("executor.suspected")).toEqual([]);
    world.advance(10_999);
    expect(world.loggedAt("executor.suspected")).toEqual([]);
    world.advance(1);
    expect(world.loggedAt("executor.suspected")).toHaveLength(2);
  });
});
