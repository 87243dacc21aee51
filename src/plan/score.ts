import { buildGrid, FRACTIONAL } from "./grid.ts";
import { type PlanInput, UNOWNED } from "./types.ts";

/**
 * How far an ownership is from what a plan should be, the worst kind first: partitions above capacity, partitions that
 * nobody owns, then by how much totals and cells are outside of their bounds. It looks at the ownership and the world alone,
 * not at where partitions came from.
 */
export type Score = readonly [overCapacity: number, unowned: number, unfairTotals: number, unfairCells: number];

export function scoreOf(input: PlanInput): Score {
  const grid = buildGrid(input);
  const unowned = input.tables.reduce(
    (sum, { owner }) => sum + owner.reduce((n, at) => n + (at === UNOWNED ? 1 : 0), 0),
    0,
  );
  if (grid === undefined) return [0, unowned, 0, 0];
  const { rows, columns, count, floor, bits, low, high } = grid;
  const totals = new Int32Array(columns);
  let unfairCells = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column;
      const here = count[cell] as number;
      const least = floor[cell] as number;
      totals[column] = (totals[column] as number) + here;
      unfairCells += outside(here, least, least + ((bits[cell] as number) & FRACTIONAL));
    }
  }
  let overCapacity = 0;
  let unfairTotals = 0;
  totals.forEach((total, column) => {
    const capacity = input.executors[column]?.capacity ?? Number.POSITIVE_INFINITY;
    overCapacity += Math.max(0, total - Math.floor(capacity));
    unfairTotals += outside(total, low[column] as number, high[column] as number);
  });
  return [overCapacity, unowned, unfairTotals, unfairCells];
}

export function isBetter(a: Score, b: Score): boolean {
  const at = a.findIndex((each, index) => each !== b[index]);
  return at >= 0 && (a[at] as number) < (b[at] as number);
}

function outside(value: number, low: number, high: number): number {
  return Math.max(0, low - value, value - high);
}
