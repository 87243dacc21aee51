import fc from "fast-check";
import { FIXED, type PlanInput, type PlanTable, UNOWNED } from "../../src/plan/types.ts";

/** Small worlds for properties: weights are multiples of `WEIGHT_STEP`, counts stay far below a thousand. */

const weight = fc.oneof(
  { weight: 3, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 9 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3_000 }).map((thousandths) => thousandths / 1_000) },
  { weight: 1, arbitrary: fc.constantFrom(0.001, 0.1, 0.3, 0.5, 0.7, 1_000_000) },
);

const capacity = fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 3 });

const executors = fc.array(fc.record({ weight, capacity }), { minLength: 1, maxLength: 6 }).map((list) =>
  list.map(({ weight, capacity }, at) => ({
    executor: `e${at}`,
    weight,
    ...(capacity === undefined ? {} : { capacity }),
  })),
);

function owner(executors: number): fc.Arbitrary<Int32Array> {
  const one = fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 0, max: executors - 1 }) },
    { weight: 3, arbitrary: fc.constant(UNOWNED) },
    { weight: 1, arbitrary: fc.constant(FIXED) },
  );
  return fc.array(one, { maxLength: 9 }).map((owners) => Int32Array.from(owners));
}

function exclusions(executors: number, partitions: number): fc.Arbitrary<ReadonlyMap<number, readonly number[]>> {
  const pairs = fc.tuple(fc.nat(Math.max(0, partitions - 1)), fc.subarray([...Array(executors).keys()]));
  return fc.array(pairs, { maxLength: partitions }).map((list) => new Map(list));
}

/** Worlds where every executor may have every partition. */
export const plainWorlds: fc.Arbitrary<PlanInput> = executors.chain((executors) =>
  fc
    .array(owner(executors.length), { maxLength: 4 })
    .map((owners) => ({ executors, tables: owners.map((owner, row): PlanTable => ({ table: `t${row}`, owner })) })),
);

/** Worlds with executors that must not be given some partitions. */
export const excludingWorlds: fc.Arbitrary<PlanInput> = plainWorlds.chain(({ executors, tables }) =>
  fc.tuple(...tables.map(({ owner }) => exclusions(executors.length, owner.length))).map((excluded) => ({
    executors,
    tables: tables.map((table, row): PlanTable => ({ ...table, excluded: excluded[row] ?? new Map() })),
  })),
);
