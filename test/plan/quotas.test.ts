import { describe, expect, test } from "vitest";
import { computePlan } from "../../src/plan/plan.ts";
import { computeQuotas } from "../../src/plan/quotas.ts";
import { ceilOf, floorOf } from "../../src/plan/ratio.ts";
import { type PlanExecutor, UNOWNED } from "../../src/plan/types.ts";

function executors(...list: [weight: number, capacity?: number][]): PlanExecutor[] {
  return list.map(([weight, capacity], at) => ({
    executor: `e${at}`,
    weight,
    ...(capacity === undefined ? {} : { capacity }),
  }));
}

/** Floor and ceiling of each column's quota. */
function quotas(list: PlanExecutor[], total: number): [number, number][] {
  const { columns, shareOf, shares } = computeQuotas(list, total);
  expect(shareOf).toHaveLength(columns);
  return [...shareOf].map((index) => {
    const share = shares[index];
    return share === undefined ? [Number.NaN, Number.NaN] : [floorOf(share, total), ceilOf(share, total)];
  });
}

const exactly = (...numbers: number[]): [number, number][] => numbers.map((each) => [each, each]);

describe("quotas", () => {
  test("are in proportion to weight", () => {
    expect(quotas(executors([1], [1], [2], [4]), 72)).toEqual(exactly(9, 9, 18, 36));
  });

  test("take decimal weights as they are written: 0.1, 0.2 and 0.3 of 6 are 1, 2 and 3", () => {
    expect(quotas(executors([0.1], [0.2], [0.3]), 6)).toEqual(exactly(1, 2, 3));
  });

  test("stay whole where ten times 0.1 is not 1 in doubles", () => {
    const ten = executors(...new Array<[number]>(10).fill([0.1]), [1]);
    expect(quotas(ten, 2_000_000)).toEqual(exactly(...new Array(10).fill(100_000), 1_000_000));
  });

  test("fill up who is full at the lowest level first, and share what it leaves", () => {
    expect(quotas(executors([1, 2], [1], [1, 7], [1]), 29)).toEqual(exactly(2, 10, 7, 10));
    // Only once the first is full, the level rises above what the second can hold.
    expect(quotas(executors([10, 10], [1, 4], [1]), 20)).toEqual(exactly(10, 4, 6));
  });

  test("of capacities that are just reached are no shortage", () => {
    expect(quotas(executors([1, 5], [2, 10]), 15)).toEqual(exactly(5, 10));
  });

  test("have one more column for what finds no room", () => {
    expect(quotas(executors([1, 3], [5, 3], [1, 0]), 10)).toEqual(exactly(3, 3, 0, 4));
  });

  test("of an executor with next to no weight are between nothing and one", () => {
    expect(quotas(executors([5e-324], [1_000_000]), 10)).toEqual([
      [0, 1],
      [9, 10],
    ]);
  });

  test("round a capacity that is not whole down", () => {
    expect(quotas(executors([1, 2.9], [1]), 10)).toEqual(exactly(2, 8));
  });
});

test("weights that differ by 15 digits still give a plan within its bounds", () => {
  const list = executors([1_000_000], [0.000000001], [1 / 3], [2 / 3]);
  const owner = new Int32Array(3_000).fill(UNOWNED);
  const { tables } = computePlan({ executors: list, tables: [{ table: "t", owner }] });
  const totals = list.map((_, at) => tables[0]?.owner.filter((each) => each === at).length);
  expect(totals.reduce((sum: number, each) => sum + (each ?? 0), 0)).toBe(3_000);
  expect(totals.slice(1).every((each) => each !== undefined && each <= 1)).toBe(true);
});
