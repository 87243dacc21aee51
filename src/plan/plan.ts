import { narrowBounds } from "./exclusions.ts";
import { balanceRow, buildGrid, isBarred } from "./grid.ts";
import { placeTable } from "./placement.ts";
import { repair } from "./repair.ts";
import { roundGrid } from "./rounding.ts";
import { isBetter, scoreOf } from "./score.ts";
import {
  type PlanInput,
  type PlannedTable,
  type Planner,
  type PlanResult,
  type PlanTable,
  type PlanUnownedReason,
  UNOWNED,
} from "./types.ts";

/**
 * Computes the plan: as many partitions placed as capacity allows, each executor's total and its count of each table at the
 * floor or ceiling of its quota, by the fewest moves. A plan of a plan moves nothing. The result depends on the input's
 * values alone. O(partitions + cells) and a few passes over the cells; a table of which nothing changes comes back with the
 * very array of the input.
 *
 * Without exclusions (executors that must not be given a partition) all of this is exact: see `roundGrid`. Under exclusions
 * as much is placed as any plan can place; then fairness, then few moves are sought by exchanging partitions, which mostly
 * finds the best, but is not proven to. A change that leaves some bound unmet is made only if it makes the ownership better by
 * `scoreOf`. Scores look at the ownership alone and improve with every round, so this ends, and where it ends it stays.
 *
 * Throws InvariantError for an input that is against its contract.
 */
export const computePlan: Planner = (input) => {
  if (input.executors.length === 0) return describe(input);
  let current = input;
  for (;;) {
    const { improved, isFlawless } = improve(current);
    const isWorth = isFlawless || (improved !== current && isBetter(scoreOf(improved), scoreOf(current)));
    if (!isWorth) return describe(current);
    current = improved;
    if (isFlawless) return describe(current);
  }
};

/** One round. It is flawless if all bounds are met: then nothing can be better. */
function improve(input: PlanInput): { improved: PlanInput; isFlawless: boolean } {
  const grid = buildGrid(input);
  if (grid === undefined) return { improved: input, isFlawless: true };
  const gaveWay = narrowBounds(grid, input.tables);
  const { unmet } = roundGrid(grid);
  let isMet = unmet === 0 && !gaveWay;
  const balance = new Int32Array(grid.executors);
  const tables = input.tables.map((table, row) => {
    if (!balanceRow(grid, row, balance)) return table;
    const owner = placeTable(table, balance);
    isMet &&= balance.every((each) => each === 0) && !isNewlyBarred(table, owner, grid.executors);
    return { ...table, owner };
  });
  const placed = { executors: input.executors, tables };
  return isMet ? { improved: placed, isFlawless: true } : { improved: repair(placed, input), isFlawless: false };
}

/** Whether a partition was given up that nobody may be given back: it then no longer counts in the quotas. */
function isNewlyBarred(table: PlanTable, owner: Int32Array, executors: number): boolean {
  const after = { ...table, owner };
  for (const partition of table.excluded?.keys() ?? []) {
    if (table.owner[partition] !== UNOWNED && isBarred(after, partition, executors)) return true;
  }
  return false;
}

function describe({ executors, tables }: PlanInput): PlanResult {
  const totals = new Float64Array(executors.length);
  for (const { owner } of tables) {
    for (let partition = 0; partition < owner.length; partition++) {
      const at = owner[partition] as number;
      if (at >= 0) totals[at] = (totals[at] as number) + 1;
    }
  }
  const hasRoom = executors.some(
    ({ capacity = Number.POSITIVE_INFINITY }, at) => Math.floor(capacity) > (totals[at] as number),
  );
  const reasonOf = (table: PlanTable, partition: number): PlanUnownedReason => {
    if (executors.length === 0) return "no-eligible-executor";
    return hasRoom || isBarred(table, partition, executors.length) ? "backoff" : "capacity";
  };
  return {
    tables: tables.map((table): PlannedTable => {
      const unowned: { partition: number; reason: PlanUnownedReason }[] = [];
      for (let partition = table.owner.indexOf(UNOWNED); partition >= 0; ) {
        unowned.push({ partition, reason: reasonOf(table, partition) });
        partition = table.owner.indexOf(UNOWNED, partition + 1);
      }
      return { owner: table.owner, unowned };
    }),
  };
}
