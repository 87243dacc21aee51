import { describe, expect, test } from "vitest";
import { computePlan } from "../../src/plan/plan.ts";
import { type PlanTable, UNOWNED } from "../../src/plan/types.ts";
import { loads, type NamedWorld, named, planWorld, step, table, toInput } from "./world.ts";

const numbered = (count: number) => named(...[...Array(count).keys()].map((at) => `m${String(at).padStart(3, "0")}`));

function planned(executors: NamedWorld["executors"], ...tables: NamedWorld["tables"]): NamedWorld {
  return planWorld({ executors, tables });
}

describe("scenarios from the field, as plans", () => {
  test("L2 a late joiner to 5/4 gets three partitions, and nothing else moves", () => {
    const two = planned(named("A", "B"), table("t", 9));
    expect(Object.values(loads(two)).sort()).toEqual([4, 5]);
    const three = step({ ...two, executors: named("A", "B", "C") });
    expect(loads(three)).toEqual({ A: 3, B: 3, C: 3 });
    expect(three).toMatchObject({ moves: 3, unowned: 0 });
  });

  test("L3 an 11th of 1,000 partitions: exactly 90 moves; it leaves: exactly its share is placed", () => {
    const ten = planned(numbered(10), table("t", 1_000));
    const eleven = step({ ...ten, executors: numbered(11) });
    expect(Object.values(loads(eleven)).sort()).toEqual([90, ...new Array(10).fill(91)]);
    expect(eleven).toMatchObject({ moves: 90, kept: 910 });
    const again = step({ ...eleven, executors: numbered(10) });
    expect(Object.values(loads(again))).toEqual(new Array(10).fill(100));
    expect(again).toMatchObject({ moves: 0, kept: 910, unowned: 0 });
  });

  test("L4 two tables of 24, a fourth joins: 6 of each table everywhere, in 12 moves", () => {
    const three = planned(named("A", "B", "C"), table("a", 24), table("b", 24));
    const four = step({ ...three, executors: named("A", "B", "C", "D") });
    expect(loads(four, "a")).toEqual({ A: 6, B: 6, C: 6, D: 6 });
    expect(loads(four, "b")).toEqual({ A: 6, B: 6, C: 6, D: 6 });
    expect(four.moves).toBe(12);
  });

  // 5,000 plans of up to 5,000 tables: some seconds, and several times that on cores that others use too.
  test("L5 5,000 tables of one partition, one by one, on 10 executors: totals within 1 after each", () => {
    const executors = numbered(10).map(({ executor }) => ({ executor, weight: 1 }));
    const totals = new Array<number>(10).fill(0);
    let tables: PlanTable[] = [];
    for (let count = 1; count <= 5_000; count++) {
      // From z to a, so that each new table comes before all the others.
      const name = `t${String(9_999 - count)}`;
      tables = [{ table: name, owner: Int32Array.of(UNOWNED) }, ...tables];
      const result = computePlan({ executors, tables });
      const changed = tables.filter(({ owner }, row) => owner[0] !== result.tables[row]?.owner[0]);
      expect(changed.map((each) => each.table)).toEqual([name]);
      const owner = result.tables[0]?.owner ?? Int32Array.of(UNOWNED);
      tables[0] = { table: name, owner };
      totals[owner[0] ?? UNOWNED] = (totals[owner[0] ?? UNOWNED] ?? 0) + 1;
      expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(1);
    }
    expect(totals).toEqual(new Array(10).fill(500));
  }, 120_000);

  test("L6 weights 1, 1, 2, 4: quotas within 1; one weight changes: only the difference moves", () => {
    const executors = (last: number) => [
      { executor: "A", weight: 1 },
      { executor: "B", weight: 1 },
      { executor: "C", weight: 2 },
      { executor: "D", weight: last },
    ];
    const before = planned(executors(4), table("t", 100));
    const first = Object.values(loads(before));
    expect(first.slice(0, 2).sort()).toEqual([12, 13]);
    expect(first.slice(2)).toEqual([25, 50]);
    const after = step({ ...before, executors: executors(2) });
    const [a, b, c, d] = Object.values(loads(after));
    expect([a, b].sort()).toEqual([16, 17]);
    expect([c, d].sort()).toEqual([33, 34]);
    expect(after.moves).toBe(50 - (d ?? 0));
  });

  test("L7 capacity 3: what does not fit stays unowned, a third takes three, one more room takes the last", () => {
    const capacity = (of: Record<string, number>) =>
      Object.entries(of).map(([executor, capacity]) => ({ executor, capacity }));
    const two = step({ executors: capacity({ A: 3, B: 3 }), tables: [table("t", 5), table("u", 5)] });
    expect(loads(two)).toEqual({ A: 3, B: 3 });
    expect(two.unowned).toBe(4);
    const reasons = computePlan(toInput(two)).tables.flatMap(({ unowned }) => unowned.map(({ reason }) => reason));
    expect(reasons).toEqual(new Array(4).fill("capacity"));
    const three = step({ ...two, executors: capacity({ A: 3, B: 3, C: 3 }) });
    expect(loads(three)).toEqual({ A: 3, B: 3, C: 3 });
    expect(three).toMatchObject({ moves: 0, unowned: 1 });
    const more = step({ ...three, executors: capacity({ A: 3, B: 3, C: 4 }) });
    expect(loads(more)).toEqual({ A: 3, B: 3, C: 4 });
    expect(more).toMatchObject({ moves: 0, unowned: 0 });
  });
});

describe("capacity", () => {
  test("an executor above a lowered capacity gives up the excess, to who has room", () => {
    const before = planned(named("A", "B"), table("t", 8));
    const after = step({ ...before, executors: [{ executor: "A", capacity: 1 }, { executor: "B" }] });
    expect(loads(after)).toEqual({ A: 1, B: 7 });
    expect(after.moves).toBe(3);
  });

  test("the excess stays unowned where nobody has room", () => {
    const before = planned(named("A", "B"), table("t", 8));
    const full = [
      { executor: "A", capacity: 1 },
      { executor: "B", capacity: 4 },
    ];
    const after = step({ ...before, executors: full });
    expect(loads(after)).toEqual({ A: 1, B: 4 });
    expect(after).toMatchObject({ moves: 3, unowned: 3 });
  });

  test("capacity 0 gets nothing", () => {
    const executors = [{ executor: "A", capacity: 0 }, { executor: "B" }];
    expect(loads(planned(executors, table("t", 3)))).toEqual({ A: 0, B: 3 });
    const nobody = step({ executors: executors.slice(0, 1), tables: [table("t", 3)] });
    expect(nobody.unowned).toBe(3);
    const reasons = computePlan(toInput(nobody)).tables.flatMap(({ unowned }) => unowned.map(({ reason }) => reason));
    expect(reasons).toEqual(["capacity", "capacity", "capacity"]);
  });

  test("what cannot be placed is shared over the tables in proportion", () => {
    const after = planned([{ executor: "A", capacity: 30 }], table("big", 80), table("small", 20));
    expect(loads(after, "big")).toEqual({ A: 24 });
    expect(loads(after, "small")).toEqual({ A: 6 });
  });

  test("what a full executor cannot take is shared among the rest by weight", () => {
    const executors = [
      { executor: "A", weight: 6, capacity: 10 },
      { executor: "B", weight: 1 },
      { executor: "C", weight: 3 },
    ];
    expect(loads(planned(executors, table("t", 50)))).toEqual({ A: 10, B: 10, C: 30 });
  });
});

describe("what is not the planner's to place", () => {
  test("fixed partitions stay, and the rest is shared as if they were not there", () => {
    const kept = { table: "t", owners: [null, null, null, null, ...new Array<undefined>(4).fill(undefined)] };
    const after = planned(named("A", "B"), kept);
    expect(after.tables[0]?.owners.slice(0, 4)).toEqual([null, null, null, null]);
    expect(loads(after)).toEqual({ A: 2, B: 2 });
  });

  test("with no executors nothing is placed, and that is said", () => {
    const result = computePlan(toInput({ executors: [], tables: [{ table: "t", owners: [undefined, null] }] }));
    expect(result.tables[0]?.unowned).toEqual([{ partition: 0, reason: "no-eligible-executor" }]);
  });

  test("no tables, and tables with no partitions, are no error", () => {
    expect(computePlan({ executors: [{ executor: "A", weight: 1 }], tables: [] })).toEqual({ tables: [] });
    expect(loads(planned(named("A"), table("t", 0)))).toEqual({ A: 0 });
  });
});

describe("an input against the contract is refused", () => {
  const tables = [{ table: "t", owner: Int32Array.of(UNOWNED) }];
  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])("weight %s", (weight) => {
    expect(() => computePlan({ executors: [{ executor: "A", weight }], tables })).toThrow(/the weight of A is/);
  });

  test.each([-1, Number.NaN])("capacity %s", (capacity) => {
    expect(() => computePlan({ executors: [{ executor: "A", weight: 1, capacity }], tables })).toThrow(/capacity of A/);
  });

  test("an owner that is not in the world", () => {
    const strange = [{ table: "t", owner: Int32Array.of(1) }];
    expect(() => computePlan({ executors: [{ executor: "A", weight: 1 }], tables: strange })).toThrow(
      /has the owner 1/,
    );
  });
});
