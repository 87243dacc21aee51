import { describe, expect, test } from "vitest";
import type { TableSpec } from "../../src/model/change.ts";
import { tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS } from "../../src/model/settings.ts";
import { SimExecutor } from "./sim-executor.ts";
import { SCENARIO_SETTINGS, World } from "./world.ts";

const spec = (name: string, count: number): TableSpec => ({
  table: tableName(name),
  count,
  handoff: "exclusive",
  stopMs: 30_000,
  balance: "count",
  selector: {},
});

describe("formation, the grace window of a cold start", () => {
  const otherSettings = [
    {},
    { lease: { ...SCENARIO_SETTINGS.lease, durationMs: 60_000, renewMs: 15_000 } },
    { join: { quietMs: 0, maxMs: 60_000 } },
    { loss: { waitMs: 600_000, returnMs: 0 } },
    { delivery: { ackTimeoutMs: 90_000 }, drain: { deadlineMs: 0 }, moves: { perExecutor: 1, total: 1 } },
  ];
  test.each(otherSettings)(
    "F1: nothing before 5.1 s, then 3 each in one push, whatever other settings say (%j)",
    (settings) => {
      const world = new World({ settings });
      world.table("t", 9);
      const [a, b, c] = ["A", "B", "C"].map((id) => new SimExecutor(world, id)) as [
        SimExecutor,
        SimExecutor,
        SimExecutor,
      ];
      world.advanceTo(100);
      a.connect();
      world.advanceTo(1_000);
      b.connect();
      world.advanceTo(4_900);
      c.connect();
      world.advanceTo(5_099);
      expect([a, b, c].flatMap((executor) => executor.pushes)).toEqual([]);
      expect(a.status).toBe("pending");
      world.advanceTo(5_100);
      for (const executor of [a, b, c]) {
        expect(executor.pushes.map((push) => push.base)).toEqual([null]);
        expect(executor.holds("t")).toHaveLength(3);
      }
      expect(world.status.converged).toBe(true);
    },
  );

  test("F2: the first to come never holds everything", () => {
    const world = new World();
    world.table("t", 10);
    const a = new SimExecutor(world, "A").connect();
    world.advanceTo(3_000);
    const b = new SimExecutor(world, "B").connect();
    world.advanceTo(10_000);
    expect(world.loads()).toEqual({ A: 5, B: 5 });
    expect(a.pushes.map((push) => push.grant.reduce((sum, grant) => sum + grant.partitions.size, 0))).toEqual([5]);
    expect(b.pushes).toHaveLength(1);
  });

  test("F3: the window opens with the first hello, not with the scheduler", () => {
    const world = new World();
    world.table("t", 10);
    world.advanceTo(7_000);
    new SimExecutor(world, "A").connect();
    world.advanceTo(9_000);
    new SimExecutor(world, "B").connect();
    world.advanceTo(11_999);
    expect(world.loads()).toEqual({});
    world.advanceTo(12_000);
    expect(world.loads()).toEqual({ A: 5, B: 5 });
  });

  test("F4: decided when all expected executors are there, not later", () => {
    const world = new World({ settings: { formation: { quietMs: 5_000, maxMs: 5_000, expect: 3 } } });
    world.table("t", 9);
    for (const [at, id] of [
      [100, "A"],
      [200, "B"],
      [400, "C"],
    ] as const) {
      world.advanceTo(at);
      expect(world.loads()).toEqual({});
      new SimExecutor(world, id).connect();
    }
    expect(world.now).toBe(400);
    expect(world.loads()).toEqual({ A: 3, B: 3, C: 3 });
  });

  test("F4: what is waited for is told to executors and in the status", () => {
    const world = new World({ settings: { formation: { quietMs: 2_000, maxMs: 5_000, expect: 3 } } });
    world.table("t", 9);
    new SimExecutor(world, "A").connect();
    world.advanceTo(600);
    const b = new SimExecutor(world, "B").connect();
    world.advanceTo(1_000);
    expect(b.welcomes[0]?.waitingFor).toBe("formation: 2 of 3 expected, 2.0 s left");
    expect(world.status).toMatchObject({
      state: "forming",
      converged: false,
      windows: [{ kind: "formation", closesInMs: 1_600 }],
    });
    expect(world.status.tables[0]?.unowned[0]?.reason).toBe("forming");
  });

  test("F5: a stream of hellos cannot hold newcomers back", () => {
    const world = new World({ settings: { formation: { quietMs: 0, maxMs: 0 } } });
    world.table("t", 600);
    const executors: { executor: SimExecutor; helloAt: number }[] = [];
    for (let at = 0; at < 60_000; at += 200) {
      world.advanceTo(at);
      executors.push({ executor: new SimExecutor(world, `E${String(at).padStart(5, "0")}`).connect(), helloAt: at });
    }
    world.advance(2_000);
    const closedAt = world.loggedAt("window.closed");
    for (let i = 1; i < closedAt.length; i++)
      expect((closedAt[i] as number) - (closedAt[i - 1] as number)).toBeLessThanOrEqual(2_200);
    const counted = new Set(world.changes.flatMap((change) => change.executors.map((entry) => entry.executor)));
    // Each decision takes in everyone who had come by then.
    const came = new Map(executors.map(({ executor, helloAt }) => [executor.id, helloAt]));
    const decisions = world.changes.filter((change) => change.executors.length > 0);
    decisions.forEach((change, at) => {
      const latest = Math.max(...change.executors.map(({ executor }) => came.get(executor) ?? 0));
      const later = decisions
        .slice(at + 1)
        .flatMap(({ executors: entries }) => entries.map(({ executor }) => came.get(executor) ?? 0));
      expect(Math.min(...later, Number.POSITIVE_INFINITY)).toBeGreaterThan(latest);
    });
    for (const { executor, helloAt } of executors.slice(1, -1)) {
      const decidedAt = closedAt.find((at) => at >= helloAt) ?? Number.POSITIVE_INFINITY;
      expect(decidedAt - helloAt).toBeLessThanOrEqual(2_000);
      expect(counted.has(executor.id)).toBe(true);
    }
  }, 60_000);

  test("F6: scale to zero and back forms again", () => {
    const world = new World();
    world.table("t", 1_000);
    const executors = Array.from({ length: 10 }, (_, i) => new SimExecutor(world, `E${i}`));
    const arrive = () => {
      executors.forEach((executor) => {
        world.advance(200);
        executor.connect();
      });
    };
    arrive();
    world.advance(10_000);
    expect(Object.values(world.loads())).toEqual(Array(10).fill(100));
    expect(world.changes.filter((change) => change.own.length > 0)).toHaveLength(1);
    for (const executor of executors) executor.leave("move");
    world.advance(60_000);
    expect(world.loads()).toEqual({});
    expect(executors.every((executor) => executor.leftAt !== undefined)).toBe(true);
    for (const executor of executors) executor.drop();
    const before = world.revision;
    world.advance(1_000);
    arrive();
    world.advance(10_000);
    expect(Object.values(world.loads())).toEqual(Array(10).fill(100));
    expect(world.changes.filter((change) => change.revision > before && change.own.length > 0)).toHaveLength(1);
  });

  test("F7: pending while no tables are declared; formation opens with the first table", () => {
    const world = new World();
    const a = new SimExecutor(world, "A").connect();
    expect(a.welcomes[0]).toMatchObject({
      status: "pending",
      waitingFor: expect.stringContaining("no tables declared"),
    });
    world.advanceTo(8_000);
    expect(a.pushes).toEqual([]);
    world.table("t", 4);
    world.advanceTo(12_999);
    expect(a.pushes).toEqual([]);
    world.advanceTo(13_000);
    expect(a.holds("t")).toEqual([0, 1, 2, 3]);
  });

  test("F7: zero tables declared for good: assigned, and an empty push at once", () => {
    const world = new World();
    world.declare([]);
    const a = new SimExecutor(world, "A").connect();
    expect(a.welcomes[0]?.status).toBe("assigned");
    expect(a.pushes).toMatchObject([{ base: null, grant: [], revoke: [] }]);
    expect(world.status.converged).toBe(true);
  });

  test("F7: who waits while nothing is declared is told when tables are declared as none", () => {
    const world = new World();
    const a = new SimExecutor(world, "A").connect();
    world.advance(1_000);
    world.declare([]);
    expect(a.pushes).toMatchObject([{ base: null, grant: [] }]);
  });

  test("F8: durations of 0 mean at once", () => {
    const world = new World({
      settings: {
        formation: { quietMs: 0, maxMs: 0 },
        join: { quietMs: 0, maxMs: 0 },
        loss: { waitMs: 0, returnMs: 0 },
        drain: { deadlineMs: 0 },
        executors: { forgetMs: 0 },
        shutdown: { timeoutMs: 0 },
      },
    });
    world.table("t", 4);
    const a = new SimExecutor(world, "A").connect();
    expect(world.loads()).toEqual({ A: 4 });
    const b = new SimExecutor(world, "B").connect();
    world.settle();
    expect(world.loads()).toEqual({ A: 2, B: 2 });
    b.leave();
    world.settle();
    expect(world.loads()).toEqual({ A: 4 });
    b.drop();
    a.kill();
    world.advance(world.settings.lease.durationMs * 1.03 + 1_000);
    expect(world.loads()).toEqual({});
    world.run();
    expect(world.status.executors).toEqual([]);
    expect(world.changes.at(-1)?.executors).toMatchObject([{ executor: "A", removed: true }]);
    new SimExecutor(world, "C").connect();
    world.post({ type: "shutdown.requested" });
    world.run();
    expect(world.finished).toBe(true);
  });

  test("F8: a drain deadline of 0 revokes what has no taker at once", () => {
    const world = new World({ settings: { formation: { quietMs: 0, maxMs: 0 }, drain: { deadlineMs: 0 } } });
    world.table("t", 4);
    const a = new SimExecutor(world, "A").connect();
    new SimExecutor(world, "B", { capacity: 0 }).connect();
    world.advance(1_000);
    a.leave("move");
    world.settle();
    expect([a.leftAt, world.loads()]).toEqual([world.now, {}]);
    expect(world.status.tables[0]?.unowned).toMatchObject([{ reason: "capacity" }]);
  });

  test("F8: a return of 0 keeps no place for a planned restart", () => {
    const settings = {
      formation: { quietMs: 0, maxMs: 0 },
      join: { quietMs: 0, maxMs: 0 },
      loss: { waitMs: 0, returnMs: 0 },
    };
    const world = new World({ settings });
    world.table("t", 4);
    const a = new SimExecutor(world, "A").connect();
    new SimExecutor(world, "B").connect();
    world.settle();
    a.leave("restart");
    world.settle();
    expect(world.loads()).toEqual({ B: 4 });
  });

  test("P20: tables made only after executors connected are decided when formation closes", () => {
    const world = new World();
    const [a, b] = ["A", "B"].map((id) => new SimExecutor(world, id).connect()) as [SimExecutor, SimExecutor];
    world.advanceTo(20_000);
    world.table("t", 4);
    world.advanceTo(21_000);
    world.table("u", 4);
    world.advanceTo(24_999);
    expect(a.pushes).toEqual([]);
    world.advanceTo(25_000);
    expect([a.holds("t").length, a.holds("u").length, b.holds("t").length, b.holds("u").length]).toEqual([2, 2, 2, 2]);
  });

  test("tables from the configuration are declared once and deleted when it no longer lists them", () => {
    const world = new World({ settings: { formation: { quietMs: 0, maxMs: 0 } } });
    world.declare([spec("t", 2), spec("u", 2)]);
    const revision = world.revision;
    const again = world.declare([spec("t", 2), spec("u", 2)]);
    expect(world.answers.get(again)).toEqual({ ok: true, revision });
    world.table("mine", 1);
    world.declare([spec("t", 2)]);
    world.run();
    expect([...world.state.ledger.tables.keys()].sort()).toEqual(["mine", "t"]);
  });

  test("the defaults are the documented ones", () => {
    expect(DEFAULT_SETTINGS.formation).toEqual({ quietMs: 2_000, maxMs: 5_000 });
  });
});
