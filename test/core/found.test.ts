import { describe, expect, test } from "vitest";
import { executorRecord } from "../../src/ledger/state.ts";
import { tableName } from "../../src/model/ids.ts";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";
import { World } from "./world.ts";

/** Losses are decided long before a lease is over. */
const FAST_LOSS = { loss: { waitMs: 2_000, returnMs: 30_000 } };

/** Histories that broke a rule once, in their shortest form. Random ones with the real SDK (test/together) found them. */
describe("histories that broke a rule once", () => {
  test("who is lost with nothing left but what it was asked back still holds that until its lease ends", () => {
    const { world, executors } = formed([["A", { releaseMs: "never" }]], { t: 1 }, { settings: FAST_LOSS });
    const [a] = executors;
    const b = new SimExecutor(world, "B").connect();
    world.advance(1_000);
    a.leave("move");
    world.advance(500);
    expect(world.owners("t")).toEqual(["-"]);
    const lastRenewedAt = world.now;
    a.drop();
    world.advance(FAST_LOSS.loss.waitMs + 1_000);
    expect(world.loggedAt("executor.lost")).toHaveLength(1);
    expect(a.serving()).toEqual(["t/0"]);
    expect(b.holds("t")).toEqual([]);
    world.advanceTo(lastRenewedAt + 12_000);
    expect(b.holds("t")).toEqual([0]);
  });

  test("a `left` that was lost with its socket: the leave is repeated, and nothing is given back in between", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a] = executors;
    a.leave("restart");
    world.advance(100);
    const revision = world.revision;
    a.drop();
    world.advance(100);
    a.connect();
    a.leave("restart");
    world.advance(1_000);
    expect(a.leftAt).toBe(world.now - 1_000);
    expect(world.revision).toBe(revision);
    expect(a.holds("t")).toEqual([]);
    a.drop();
    const again = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    expect(again.holds("t")).toHaveLength(2);
  });

  test("a key that is removed before its table was committed stands nowhere", () => {
    const { world, executors } = formed(["A"], { t: 1 }, { commitMs: 500 });
    world.table("t", 2);
    // Both come while that is being committed, so one change makes the table and retires its first number.
    world.table("k", 1, { keys: ["a"] });
    world.table("k", 1, { keys: ["b"] });
    world.advance(2_000);
    expect(world.state.ledger.tables.get(tableName("k"))?.unowned).toEqual([]);
    expect(executors[0].holds("k")).toEqual([1]);
    expect(world.status.converged).toBe(true);
  });

  test("a store that failed is no alarm any more once there is nothing that it has to take", () => {
    const { world, executors } = formed(["A"], { t: 1 });
    const [a] = executors;
    world.store = "fail";
    a.drop();
    // Its loss is decided, and fails to be written again and again.
    world.advance(15_000);
    expect(world.status.state).toBe("store-failed");
    world.store = "ok";
    a.connect();
    world.advance(2_000);
    expect(a.holds("t")).toEqual([0]);
    expect(world.status.waitingFor).toEqual([]);
    expect(world.status.state).toBe("converged");
  });

  test("a failure is acted on although its back-off was over before a slow store let anything be decided", () => {
    const { world, executors } = formed(["A"], { t: 2 });
    const [a] = executors;
    const before = world.epochs("t");
    world.commitMs = 3_000;
    world.table("u", 1);
    a.fail("t", "0");
    world.advance(15_000);
    const [failed = 0, other = 0] = world.epochs("t");
    expect(failed).toBeGreaterThan(before[0] ?? 0);
    expect(other).toBe(before[1]);
    expect(a.pushes.flatMap(({ revoke }) => revoke.map(({ table, partitions }) => `${table}/${partitions}`))).toEqual([
      "t/0",
    ]);
    expect(world.status.converged).toBe(true);
  });

  test("who waited for places kept for it is told when they went to others", () => {
    const { world } = formed(["A", "B"], { t: 2 });
    // The new process of A can take nothing, so what the old one had goes to B.
    const a = new SimExecutor(world, "A#2", { instance: "A-2", capacity: 0 }).connect();
    world.advance(5_000);
    expect(a.status).toBe("pending");
    expect(a.pushes).toEqual([]);
    world.advance(20_000);
    expect(world.loads()).toEqual({ B: 2 });
    expect(a.pushes).toMatchObject([{ base: null, grant: [], revoke: [] }]);
  });

  test("failures are forgotten with their executor, and with their table", () => {
    const { world, executors } = formed(["A", "B"], { t: 2, u: 2 });
    const [a, b = a] = executors;
    a.fail("t", String(a.holds("t")[0]), false);
    b.fail("u", String(b.holds("u")[0]), false);
    world.advance(1_000);
    expect(world.state.backoffs.size).toBe(2);
    world.deleteTable("u");
    world.advance(1_000);
    expect([...world.state.backoffs.values()].map(({ table }) => table)).toEqual(["t"]);
    a.kill();
    world.advance(30_000 + world.settings.executors.forgetMs);
    expect(world.state.backoffs.size).toBe(0);
  });

  test("processes that come and go before they are counted leave nothing behind", () => {
    const { world } = formed(["A"], { t: 1 });
    for (let i = 0; i < 5; i++) {
      new SimExecutor(world, `N${i}`).connect().kill();
      world.advance(10);
    }
    world.advance(1_000);
    expect(world.state.members.size).toBe(1);
    expect([...world.state.instances.values()].map(({ executor }) => executor)).toEqual(["A"]);
  });

  test("who was to be counted lost while its leave was written has left, and may come again", () => {
    const { world } = formed(["A"], { t: 2 });
    const b = new SimExecutor(world, "B", { capacity: 0 }).connect();
    world.advance(1_000);
    world.commitMs = 15_000;
    b.leave("move");
    b.drop();
    world.advance(20_000);
    expect(executorRecord(world.state.ledger, b.id)?.state).toBe("left");
    world.commitMs = 0;
    b.connect();
    world.advance(5_000);
    expect(executorRecord(world.state.ledger, b.id)?.state).toBe("live");
    expect(world.status.waitingFor).toEqual([]);
  });

  test("hellos are refused for a revoke left unacknowledged until its grants have ended, and no longer", () => {
    const settings = { loss: { waitMs: 100_000, returnMs: 30_000 } };
    const { world, executors } = formed([["A", { reconnectMs: 500 }], "B"], { t: 2 }, { settings });
    const [a] = executors;
    a.options.ackMs = "never";
    a.leave("restart");
    world.advance(40_000);
    expect(a.closes.map(({ code }) => code)).toContain(4503);
    world.advance(20_000);
    expect(executorRecord(world.state.ledger, a.id)?.state).not.toBe("draining");
    a.options.ackMs = 0;
    world.advance(5_000);
    expect(a.session).toBeDefined();
    expect(a.holds("t")).toHaveLength(1);
  });

  test("who has left and stayed connected for long is forgotten once it goes", () => {
    const { world, executors } = formed(["A", "B"], { t: 2 });
    const [a] = executors;
    a.leave("move");
    world.advance(2 * world.settings.executors.forgetMs);
    expect(executorRecord(world.state.ledger, a.id)?.state).toBe("left");
    a.drop();
    world.advance(2 * world.settings.executors.forgetMs);
    expect(executorRecord(world.state.ledger, a.id)).toBeUndefined();
    expect(world.state.instances.size).toBe(1);
  });

  test("who was never counted is forgotten with its session, also if that ended for an overdue ack", () => {
    const world = new World();
    world.declare([]);
    const once = new SimExecutor(world, "A", { ackMs: "never" }).connect();
    const again = new SimExecutor(world, "B", { ackMs: "never", reconnectMs: 500 }).connect();
    const replaced = new SimExecutor(world, "C", { instance: "C-1" }).connect();
    const newer = new SimExecutor(world, "C", { instance: "C-2" }).connect();
    world.advance(60_000);
    expect(once.closes.map(({ code }) => code)).toEqual([4411]);
    expect(replaced.replaced).toBe(true);
    for (const executor of [again, newer]) executor.kill();
    world.advance(2 * world.settings.executors.forgetMs);
    expect(world.revision).toBe(1);
    expect(world.state.members.size).toBe(0);
    expect(world.state.instances.size).toBe(0);
  });

  test("a new process that came and went while the store failed does not keep its predecessor from being counted lost", () => {
    const { world, executors } = formed(["A", "B"], { t: 2 });
    executors[0].drop();
    world.advance(11_000);
    expect(world.loggedAt("executor.lost")).toEqual([]);
    world.store = "fail";
    world.table("u", 1);
    const next = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    world.advance(500);
    next.kill();
    world.store = "ok";
    world.advance(5_000);
    expect(world.loggedAt("executor.lost")).toHaveLength(1);
    expect(world.loads("t")).toEqual({ B: 2 });
  });

  test("a new process whose registration did not land, and that is gone by then, replaces nobody", () => {
    const { world, executors } = formed(["A"], { t: 1 }, { commitMs: 500 });
    world.advance(1_000);
    world.store = "fail";
    new SimExecutor(world, "A#2", { instance: "A-2" }).connect().kill();
    world.advance(500);
    world.store = "ok";
    world.advance(5_000);
    expect(executors[0].closes).toEqual([]);
    expect(executors[0].holds("t")).toEqual([0]);
  });

  test("a new process that went before its predecessor was written counts for nothing, whether that was written or not", () => {
    for (const store of ["ok", "fail"] as const) {
      const world = new World({ commitMs: 500 });
      world.table("t", 1);
      world.advance(1_000);
      const a = new SimExecutor(world, "A").connect();
      world.store = store;
      world.advance(5_200);
      expect(world.state.append).toBeDefined();
      new SimExecutor(world, "A#2", { instance: "A-2" }).connect().kill();
      world.advance(500);
      world.store = "ok";
      world.advance(5_000);
      expect(a.closes).toEqual([]);
      expect(a.holds("t")).toEqual([0]);
    }
  });

  test("who resumes from nothing before it is counted is told when it is counted, also that it has nothing", () => {
    const world = new World();
    world.declare([]);
    const a = new SimExecutor(world, "A", { capacity: 0 }).connect();
    world.advance(1_000);
    expect(a.status).toBe("assigned");
    world.table("t", 1);
    a.connect({ resume: true });
    expect(a.status).toBe("pending");
    const before = a.pushes.length;
    world.advance(10_000);
    expect(world.state.ledger.tables.get(tableName("t"))?.unowned[0]?.reason).toBe("capacity");
    expect(a.pushes.slice(before)).toMatchObject([{ grant: [], revoke: [] }]);
  });

  test("of two new processes that came and went while the first was being written, none is waited for for ever", () => {
    const { world } = formed(["A", "B"], { t: 2 }, { commitMs: 500 });
    world.advance(1_000);
    new SimExecutor(world, "A#2", { instance: "A-2" }).connect().kill();
    new SimExecutor(world, "A#3", { instance: "A-3" }).connect().kill();
    world.advance(40_000);
    expect(world.loggedAt("executor.lost")).toHaveLength(1);
    expect(world.loads()).toEqual({ B: 2 });
  });

  test("a shutdown sends away at once who has no welcome yet: before that, nothing but a refusal is understood", () => {
    const { world, executors } = formed(["A"], { t: 1 }, { commitMs: 500 });
    world.advance(1_000);
    const next = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    world.post({ type: "shutdown.requested" });
    world.run();
    expect(next.closes.map(({ code }) => code)).toEqual([4503]);
    expect(world.transcript.filter((line) => line.includes("goaway A#2"))).toEqual([]);
    world.advance(5_000);
    expect(executors[0].closes.map(({ code }) => code)).toEqual([1001]);
  });
});
