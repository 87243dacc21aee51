import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { computePlan } from "../../src/plan/plan.ts";
import { FIXED, type PlanInput, type PlanResult, UNOWNED } from "../../src/plan/types.ts";
import { bestPlan, judgePlan } from "./reference.ts";
import { afterPlan, ownersOf } from "./world.ts";
import { excludingWorlds, plainWorlds } from "./worlds.ts";

const RUNS = { numRuns: 600 };
const anyWorlds = fc.oneof(plainWorlds, excludingWorlds);

function allOwners(result: PlanResult): number[][] {
  return result.tables.map((_, row) => ownersOf(result, row));
}

describe("every plan", () => {
  test("without exclusions is the best there is: all placed that can be, totals and tables even, fewest moves", () => {
    fc.assert(
      fc.property(plainWorlds, (input) => {
        const judged = judgePlan(input, computePlan(input));
        expect(judged).toEqual(bestPlan(input));
        expect(judged).toMatchObject({ unfairTotals: 0, unfairCells: 0 });
      }),
      RUNS,
    );
  });

  test("with exclusions places as many partitions as any plan can", () => {
    fc.assert(
      fc.property(excludingWorlds, (input) => {
        expect(judgePlan(input, computePlan(input)).unowned).toBe(bestPlan(input).unowned);
      }),
      RUNS,
    );
  });

  test("is a fixed point: planned again, nothing moves", () => {
    fc.assert(
      fc.property(anyWorlds, (input) => {
        const result = computePlan(input);
        expect(computePlan(afterPlan(input, result))).toEqual(result);
      }),
      RUNS,
    );
  });

  test("obeys the hard rules", () => {
    fc.assert(
      fc.property(anyWorlds, (input) => {
        const owners = allOwners(computePlan(input));
        const totals = input.executors.map((_, at) => owners.flat().filter((owner) => owner === at).length);
        input.executors.forEach(({ capacity = Number.POSITIVE_INFINITY }, at) => {
          expect(totals[at]).toBeLessThanOrEqual(capacity);
        });
        input.tables.forEach(({ owner, excluded }, row) => {
          expect(owners[row]).toHaveLength(owner.length);
          owners[row]?.forEach((to, partition) => {
            expect(to === FIXED).toBe(owner[partition] === FIXED);
            if (to >= 0 && to !== owner[partition]) expect(excluded?.get(partition) ?? []).not.toContain(to);
          });
        });
      }),
      RUNS,
    );
  });

  test("lists what stays unowned, ascending, with a reason that is true", () => {
    fc.assert(
      fc.property(anyWorlds, (input) => {
        const result = computePlan(input);
        const owners = allOwners(result);
        const hasRoom = input.executors.some(
          ({ capacity = Number.POSITIVE_INFINITY }, at) =>
            owners.flat().filter((owner) => owner === at).length < capacity,
        );
        result.tables.forEach(({ unowned }, row) => {
          const wanted = owners[row]?.flatMap((owner, partition) => (owner === UNOWNED ? [partition] : []));
          expect(unowned.map(({ partition }) => partition)).toEqual(wanted);
          for (const { partition, reason } of unowned) {
            const refusing = input.tables[row]?.excluded?.get(partition)?.length ?? 0;
            expect(reason).toBe(hasRoom || refusing === input.executors.length ? "backoff" : "capacity");
            if (reason === "backoff") expect(refusing).toBeGreaterThan(0);
          }
        });
      }),
      RUNS,
    );
  });

  test("depends on values alone: built in another order, it is the same, and the input is not written to", () => {
    fc.assert(
      fc.property(anyWorlds, (input) => {
        const before = structuredClone(input);
        const result = computePlan(input);
        expect(input).toEqual(before);
        computePlan({ executors: [{ executor: "other", weight: 3 }], tables: [] });
        expect(computePlan(rebuilt(input))).toEqual(result);
      }),
      RUNS,
    );
  });
});

/** Equal values, each collection filled the other way round. */
function rebuilt({ executors, tables }: PlanInput): PlanInput {
  return {
    executors: structuredClone(executors),
    tables: [...tables]
      .reverse()
      .map(({ table, owner, excluded }) => ({
        ...(excluded === undefined ? {} : { excluded: new Map([...excluded].reverse()) }),
        owner: Int32Array.from(owner),
        table,
      }))
      .reverse(),
  };
}
