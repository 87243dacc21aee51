import { describe, expect, test } from "vitest";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";

describe("loss and movement", () => {
  test("L1: a killed executor is suspect, then lost; exactly its partitions are placed", () => {
    const { world, executors, revision } = formed(["A", "B", "C"], { t: 9 });
    world.advanceTo(8_500);
    const before = world.owners("t");
    executors[2]?.kill();
    const killedAt = world.now;
    expect(world.status.executors.find(({ executor }) => executor === "C")?.suspect).toBe(true);
    world.advance(10_202);
    expect(world.owners("t")).toEqual(before);
    world.advanceTo(killedAt + 11_204);
    expect(Object.values(world.loads()).sort()).toEqual([4, 5]);
    expect(world.moves(revision)).toBe(0);
    const kept = world.owners("t").filter((owner, partition) => owner === before[partition]);
    expect(kept).toHaveLength(6);
    expect(world.status.converged).toBe(true);
  });

  test("L2: a late joiner takes exactly its share, all of it for itself", () => {
    const { world, revision } = formed(["A", "B"], { t: 9 });
    const before = world.owners("t");
    new SimExecutor(world, "C").connect();
    world.advance(3_000);
    expect(world.loads()).toEqual({ A: 3, B: 3, C: 3 });
    const moved = world.owners("t").filter((owner, partition) => owner !== before[partition]);
    expect(moved).toEqual(["C", "C", "C"]);
    expect(world.moves(revision)).toBe(3);
  });

  test("L3: an eleventh joins and leaves: exactly its share moves", () => {
    const ids = Array.from({ length: 10 }, (_, i) => `E${i}`);
    const { world, revision } = formed(ids, { t: 1_000 }, { settings: { moves: { perExecutor: 64, total: 10_000 } } });
    const newcomer = new SimExecutor(world, "N").connect();
    world.advance(5_000);
    expect(Math.min(...Object.values(world.loads()))).toBeGreaterThanOrEqual(90);
    expect(Math.max(...Object.values(world.loads()))).toBeLessThanOrEqual(91);
    expect(world.moves(revision)).toBe(90);
    const share = newcomer.holds("t");
    const before = world.owners("t");
    const joined = world.revision;
    newcomer.leave();
    world.advance(5_000);
    const changed = world.owners("t").flatMap((owner, partition) => (owner === before[partition] ? [] : [partition]));
    expect(changed).toEqual(share);
    expect(world.moves(joined)).toBe(0);
    expect(newcomer.leftAt).toBeDefined();
  });

  test("L5: tables of one partition, declared one by one, stay even", () => {
    const { world } = formed(
      Array.from({ length: 10 }, (_, i) => `E${i}`),
      { first: 1 },
    );
    for (let i = 0; i < 200; i++) {
      world.table(`t${i}`, 1);
      const loads = Object.values(world.loads());
      expect(Math.max(...loads) - (loads.length < 10 ? 0 : Math.min(...loads))).toBeLessThanOrEqual(1);
    }
    expect(world.moves()).toBe(0);
  });

  test("L7: capacity bounds the total over tables, and more room is used without a move", () => {
    const { world, revision } = formed(
      [
        ["A", { capacity: 3 }],
        ["B", { capacity: 3 }],
      ],
      { t: 5, u: 5 },
    );
    expect(world.loads()).toEqual({ A: 3, B: 3 });
    const unowned = () => world.status.tables.flatMap((table) => table.unowned);
    expect(unowned().reduce((sum, set) => sum + set.partitions.size, 0)).toBe(4);
    expect(new Set(unowned().map((set) => set.reason))).toEqual(new Set(["capacity"]));
    expect(world.status.converged).toBe(true);
    const c = new SimExecutor(world, "C", { capacity: 3 }).connect();
    world.advance(3_000);
    expect(world.loads()).toEqual({ A: 3, B: 3, C: 3 });
    expect(unowned().reduce((sum, set) => sum + set.partitions.size, 0)).toBe(1);
    Object.assign(c.options, { capacity: 4 });
    c.drop();
    c.connect({ resume: true });
    world.advance(3_000);
    expect(world.loads()).toEqual({ A: 3, B: 3, C: 4 });
    expect(unowned()).toEqual([]);
    expect(world.moves(revision)).toBe(0);
  });

  test("a lowered capacity moves what does not fit, and never grants above it", () => {
    const { world, executors } = formed(["A", "B"], { t: 8 });
    const [a] = executors as [SimExecutor];
    if (a.session !== undefined) world.post({ type: "update.received", session: a.session, capacity: 2 });
    world.advance(1_000);
    expect(world.loads()).toEqual({ A: 2, B: 6 });
  });

  test("R3: a table added while an executor is away is placed on the others at once; its share follows after its return", () => {
    const { world, executors } = formed(["A", "B", "C"], { t: 9 });
    const [, , c] = executors as [SimExecutor, SimExecutor, SimExecutor];
    const own = c.holds("t");
    const revision = world.revision;
    c.drop();
    world.advance(2_000);
    world.table("u", 6);
    expect(world.loads("u")).toEqual({ A: 3, B: 3 });
    world.advance(2_000);
    c.connect({ resume: true });
    expect(c.welcomes.at(-1)).toMatchObject({ resumed: true, status: "assigned" });
    world.advance(3_000);
    expect(c.holds("t")).toEqual(own);
    expect(world.loads("u")).toEqual({ A: 2, B: 2, C: 2 });
    expect(world.changes.filter((change) => change.revision > revision && change.executors.length > 0)).toEqual([]);
  });

  test("R4: a rolling restart moves nothing", () => {
    const ids = ["A", "B", "C", "D", "E"];
    const { world, executors, revision } = formed(ids, { t: 100 });
    const before = world.owners("t");
    for (const executor of executors) {
      executor.leave("restart");
      world.advance(100);
      expect(executor.leftAt).toBeDefined();
      executor.kill();
      world.advance(3_000);
      new SimExecutor(world, `${executor.name}#2`, { instance: `${executor.name}-2` }).connect();
      world.advance(1_000);
      expect(world.owners("t")).toEqual(before);
    }
    expect(world.moves(revision)).toBe(0);
  });

  test("a place kept for a planned restart is given away when the time for it is over", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a] = executors as [SimExecutor];
    a.leave("restart");
    world.advance(100);
    a.kill();
    world.advance(60_000);
    expect(world.loads()).toEqual({ B: 2 });
    expect(world.status.tables[0]?.unowned).toMatchObject([{ reason: "reserved", to: "A", keptMs: 59_900 }]);
    world.advance(60_000);
    expect(world.loads()).toEqual({ B: 4 });
  });

  test("R6: killed and back as a new process: accepted at once, its partitions kept until the old lease has ended", () => {
    const { world, executors } = formed(["A", "B"], { t: 4 });
    const [a] = executors as [SimExecutor];
    const own = a.holds("t");
    const epochs = world.epochs("t");
    a.kill();
    world.advance(1_000);
    const again = new SimExecutor(world, "A#2", { instance: "A-2" }).connect();
    expect(again.status).toBe("pending");
    world.advance(8_000);
    expect(again.pushes).toEqual([]);
    expect(world.loads()).toEqual({ B: 2 });
    world.advance(4_000);
    expect(again.holds("t")).toEqual(own);
    for (const partition of own) expect(world.epochs("t")[partition]).toBeGreaterThan(epochs[partition] as number);
  });

  test("with no events nothing moves", () => {
    const { world, revision } = formed(["A", "B", "C"], { t: 10, u: 7 });
    world.advance(3_600_000);
    expect(world.revision).toBe(revision);
  });

  test("S2: every store write takes 20 s for 2 min: leases go on, nobody is counted lost, the status says so", () => {
    const { world, executors, revision } = formed(["A", "B", "C"], { t: 9 });
    world.commitMs = 20_000;
    for (let i = 0; i < 6; i++) {
      world.table(`u${i}`, 3);
      world.advance(10_000);
      expect(world.status.alarms).toMatchObject([{ code: "store-slow" }]);
      world.advance(10_000);
    }
    expect([world.loggedAt("executor.suspected"), world.moves(revision)]).toEqual([[], 0]);
    expect(executors.flatMap((executor) => executor.closes)).toEqual([]);
    world.commitMs = 0;
    world.advance(30_000);
    expect(world.status.converged).toBe(true);
  });

  test("S2: while appends fail nobody is counted lost and nothing moves; it recovers by itself", () => {
    const { world, executors } = formed(["A", "B", "C"], { t: 9 });
    world.store = "fail";
    world.commitMs = 1_000;
    const before = world.owners("t");
    executors[2]?.drop();
    world.advance(30_000);
    expect(world.owners("t")).toEqual(before);
    world.store = "ok";
    world.advance(5_000);
    expect(world.loads()["C"]).toBeUndefined();
    expect(Object.values(world.loads()).sort()).toEqual([4, 5]);
  });
});
