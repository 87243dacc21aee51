import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { preferLastOwner } from "../../src/plan/last-owner.ts";
import { computePlan } from "../../src/plan/plan.ts";
import { type PlannedTable, type PlanTable, UNOWNED } from "../../src/plan/types.ts";

const table = (owner: readonly number[]): PlanTable => ({ table: "t", owner: Int32Array.from(owner) });
const planned = (owner: readonly number[]): PlannedTable => ({
  owner: Int32Array.from(owner),
  unowned: owner.flatMap((to, partition) => (to === UNOWNED ? [{ partition, reason: "capacity" as const }] : [])),
});
const prefer = (before: readonly number[], plan: readonly number[], last: readonly number[]) => [
  ...preferLastOwner(table(before), planned(plan), Int32Array.from(last)).owner,
];

describe("among equally good plans", () => {
  test("an executor that is back takes what it last had out of the same hands", () => {
    expect(prefer([0, 0, 0, 0], [0, 0, 1, 1], [1, -1, 1, -1])).toEqual([1, 0, 1, 0]);
  });

  test("what nobody has is exchanged as well, with the reasons of what stays unowned", () => {
    const result = preferLastOwner(table([-1, -1]), planned([0, -1]), Int32Array.from([-1, 0]));
    expect([...result.owner]).toEqual([-1, 0]);
    expect(result.unowned).toEqual([{ partition: 0, reason: "capacity" }]);
  });

  test("nothing moves for it that would not move anyway", () => {
    expect(prefer([0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0])).toEqual([0, 0, 1, 1]);
  });

  test("a partition that someone must not be given stays where the plan has it", () => {
    const barred: PlanTable = { ...table([0, 0]), excluded: new Map([[0, [1]]]) };
    expect([...preferLastOwner(barred, planned([0, 1]), Int32Array.from([1, -1])).owner]).toEqual([0, 1]);
  });

  test("counts per executor, and from whom to whom, are those of the plan", () => {
    const worlds = fc.integer({ min: 1, max: 4 }).chain((executors) =>
      fc.record({
        executors: fc.constant(executors),
        owner: fc.array(fc.integer({ min: -2, max: executors - 1 }), { minLength: 1, maxLength: 30 }),
        last: fc.array(fc.integer({ min: -1, max: executors - 1 }), { minLength: 30, maxLength: 30 }),
      }),
    );
    fc.assert(
      fc.property(worlds, ({ executors, owner, last }) => {
        const input = table(owner);
        const ids = Array.from({ length: executors }, (_, at) => ({ executor: `E${at}`, weight: 1 }));
        const plan = computePlan({ executors: ids, tables: [input] }).tables[0];
        if (plan === undefined) throw new Error("the plan has no table");
        const result = preferLastOwner(input, plan, Int32Array.from(last.slice(0, owner.length)));
        const hands = (to: Int32Array) => owner.map((from, partition) => `${from}>${to[partition]}`).sort();
        expect(hands(result.owner)).toEqual(hands(plan.owner));
        expect(result.unowned.map(({ partition }) => partition)).toEqual(
          [...result.owner.keys()].filter((partition) => result.owner[partition] === UNOWNED),
        );
      }),
    );
  });
});
