import { describe, expect, test } from "vitest";
import { buildGrid, RAISED } from "../../src/plan/grid.ts";
import { computePlan } from "../../src/plan/plan.ts";
import { roundGrid } from "../../src/plan/rounding.ts";
import { type PlanExecutor, type PlanInput, UNOWNED } from "../../src/plan/types.ts";
import { movesOf, refute } from "./certificate.ts";
import { judgePlan } from "./reference.ts";
import { afterPlan } from "./world.ts";

/** Numbers in [0, 1) that are the same in each run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Shape {
  readonly name: string;
  readonly executors: number;
  readonly sizes: readonly number[];
  readonly weights: "even" | "few" | "all different";
  /** Room for how much of all partitions; absent: no limit. */
  readonly room?: number;
}

const zipf = (tables: number, largest: number) => [...Array(tables).keys()].map((at) => Math.ceil(largest / (at + 1)));

const SHAPES: readonly Shape[] = [
  { name: "even", executors: 100, sizes: new Array(20).fill(1_000), weights: "even" },
  { name: "zipf sizes, few weights", executors: 120, sizes: zipf(40, 4_000), weights: "few" },
  { name: "zipf sizes, all weights differ", executors: 90, sizes: zipf(30, 3_000), weights: "all different" },
  { name: "many small tables", executors: 10, sizes: new Array(5_000).fill(1), weights: "even" },
  { name: "room for nine tenths", executors: 60, sizes: zipf(25, 2_000), weights: "few", room: 0.9 },
  { name: "capacity that some reach", executors: 60, sizes: zipf(25, 2_000), weights: "all different", room: 1.3 },
];

function makeExecutors({ executors, weights, sizes, room }: Shape, random: () => number): PlanExecutor[] {
  const total = sizes.reduce((sum, each) => sum + each, 0);
  const weightOf = { even: () => 1, few: () => 1 + Math.floor(random() * 4), "all different": () => 1 + random() };
  return [...Array(executors).keys()].map((at) => ({
    executor: `e${String(at).padStart(4, "0")}`,
    weight: Math.round(weightOf[weights]() * 1_000) / 1_000,
    ...(room === undefined ? {} : { capacity: Math.ceil((total * room) / executors) }),
  }));
}

/** Proves the plan of an input to be the best, and returns the world after it. */
function certify(input: PlanInput): PlanInput {
  const grid = buildGrid(input);
  if (grid === undefined) throw new Error("there is nothing to plan");
  expect(refute(input, grid, roundGrid(grid))).toEqual([]);
  const result = computePlan(input);
  expect(judgePlan(input, result)).toMatchObject({ unfairTotals: 0, unfairCells: 0, moves: movesOf(grid) });
  const after = afterPlan(input, result);
  expect(computePlan(after)).toEqual(result);
  return after;
}

/** Keeps the executors at `kept`; what others own is free. */
function reduce({ executors, tables }: PlanInput, kept: readonly number[]): PlanInput {
  const renumbered = new Map(kept.map((at, index) => [at, index]));
  return {
    executors: kept.flatMap((at) => executors[at] ?? []),
    tables: tables.map(({ table, owner }) => ({ table, owner: owner.map((at) => renumbered.get(at) ?? UNOWNED) })),
  };
}

/** Puts an executor at the end of the order. */
function join(input: PlanInput, like: PlanExecutor, name: string): PlanInput {
  return { ...input, executors: [...input.executors, { ...like, executor: name }] };
}

describe("a plan is proven the best by its potentials", () => {
  test.each(SHAPES)("$name: cold, then joins, leaves, a new table and a changed weight", (shape) => {
    const random = seeded(11);
    const executors = makeExecutors(shape, random);
    const tables = shape.sizes.map((size, at) => ({
      table: `t${String(at).padStart(4, "0")}`,
      owner: new Int32Array(size).fill(UNOWNED),
    }));
    let world = certify({ executors, tables });
    const [like] = executors;
    if (like === undefined) throw new Error("the shape has no executors");
    for (let round = 0; round < 3; round++) {
      world = certify(join(world, like, `j${round}`));
      const kept = [...world.executors.keys()].filter(() => random() > 0.05 * (round + 1));
      world = certify(reduce(world, kept));
      const heavier = world.executors.map((each, at) => (at === round ? { ...each, weight: each.weight * 2 } : each));
      world = certify({ ...world, executors: heavier });
      const grown = { table: `u${round}`, owner: new Int32Array(50 + round).fill(UNOWNED) };
      world = certify({ ...world, tables: [...world.tables, grown] });
    }
  });

  test("owners that were dealt at random: many units have to go round by other rows", () => {
    const random = seeded(5);
    const shape: Shape = { name: "", executors: 40, sizes: zipf(40, 300), weights: "all different" };
    const tables = shape.sizes.map((size, at) => ({
      table: `t${String(at).padStart(4, "0")}`,
      owner: Int32Array.from({ length: size }, () => Math.floor(random() ** 2 * 40)),
    }));
    const input = { executors: makeExecutors(shape, random), tables };
    certify(input);
    // Or else this world is too easy to prove anything.
    const grid = buildGrid(input);
    expect(Math.max(...(grid === undefined ? [] : roundGrid(grid).potential))).toBeGreaterThan(0);
  });

  test("the proof notices a plan that is not the best", () => {
    const owner = Int32Array.of(0, 0, 1);
    const executors = ["A", "B"].map((executor) => ({ executor, weight: 1 }));
    const input = { executors, tables: [{ table: "t", owner }] };
    const grid = buildGrid(input);
    if (grid === undefined) throw new Error("there is nothing to plan");
    const rounding = roundGrid(grid);
    expect(refute(input, grid, rounding)).toEqual([]);
    // The odd partition to B instead of A, who has it.
    for (const cell of [0, 1]) grid.bits[cell] = (grid.bits[cell] ?? 0) ^ RAISED;
    expect(refute(input, grid, { ...rounding, above: rounding.above.toReversed() })).not.toEqual([]);
  });

  test("100,000 partitions of 20 tables on 1,000 executors: cold, one leaves, one joins", () => {
    const shape: Shape = { name: "", executors: 1_000, sizes: new Array(20).fill(5_000), weights: "even" };
    const tables = shape.sizes.map((size, at) => ({
      table: `t${String(at).padStart(4, "0")}`,
      owner: new Int32Array(size).fill(UNOWNED),
    }));
    const cold = certify({ executors: makeExecutors(shape, seeded(1)), tables });
    const left = certify(reduce(cold, [...cold.executors.keys()].slice(0, -1)));
    const joined = certify(join(left, { executor: "", weight: 1 }, "e9999"));
    const moved = joined.tables.map(({ owner }, row) =>
      owner.filter((at, partition) => at !== left.tables[row]?.owner[partition]),
    );
    expect(moved.reduce((sum, { length }) => sum + length, 0)).toBe(100);
  });
});
