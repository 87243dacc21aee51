import { FRACTIONAL, GOLD, type Grid, RAISED } from "../../src/plan/grid.ts";
import type { Rounding } from "../../src/plan/rounding.ts";
import type { PlanInput } from "../../src/plan/types.ts";
import { referenceBounds } from "./reference.ts";

/**
 * Proves a rounding the best at any size: it is within bounds that are computed here in another way, and its potentials
 * leave no residual arc with a negative reduced cost, so that no other rounding moves less. Returns what is wrong, in words.
 */
export function refute(input: PlanInput, grid: Grid, rounding: Rounding): string[] {
  return [...refuteBounds(input, grid), ...refuteSums(grid, rounding), ...refuteCosts(grid, rounding)];
}

/** Floors, fractional and gold cells are what the quotas and the owners say. */
function refuteBounds(input: PlanInput, grid: Grid): string[] {
  const { totals, cells } = referenceBounds(input);
  const wrong: string[] = [];
  if (grid.columns !== totals.length) wrong.push(`${grid.columns} columns, not ${totals.length}`);
  totals.forEach(({ low, high }, column) => {
    if (grid.low[column] !== low || grid.high[column] !== high) wrong.push(`bounds of column ${column}`);
  });
  cells.forEach((row, at) => {
    const owned = new Map<number, number>();
    for (const owner of input.tables[at]?.owner ?? []) owned.set(owner, (owned.get(owner) ?? 0) + 1);
    row.forEach(({ low, high }, column) => {
      const cell = at * grid.columns + column;
      const bits = grid.bits[cell] ?? 0;
      const isGold = high > low && column < grid.executors && (owned.get(column) ?? 0) >= high;
      if (grid.floor[cell] !== low || ((bits & FRACTIONAL) !== 0) !== high > low) wrong.push(`bounds of cell ${cell}`);
      if (((bits & GOLD) !== 0) !== isGold) wrong.push(`gold of cell ${cell}`);
      if ((bits & RAISED) !== 0 && high === low) wrong.push(`cell ${cell} is raised above its bound`);
    });
  });
  return wrong;
}

/** Rows add up to their size, columns to within their bounds. */
function refuteSums(grid: Grid, { above, unmet }: Rounding): string[] {
  const { rows, columns, floor, bits, size, low, high } = grid;
  const wrong = unmet === 0 ? [] : [`${unmet} partitions were not placed`];
  const totals = new Array<number>(columns).fill(0);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column;
      const planned = (floor[cell] ?? 0) + (((bits[cell] ?? 0) & RAISED) === 0 ? 0 : 1);
      sum += planned;
      totals[column] = (totals[column] ?? 0) + planned;
    }
    if (sum !== size[row]) wrong.push(`row ${row} has ${sum} of ${size[row]}`);
  }
  totals.forEach((total, column) => {
    const least = low[column] ?? 0;
    if (total < least || total > (high[column] ?? 0)) wrong.push(`column ${column} has ${total}`);
    if (total - least !== above[column]) wrong.push(`column ${column} is not ${above[column]} above its lower bound`);
  });
  return wrong;
}

/** Reduced cost = cost + potential of the tail − potential of the head: at least 0 on each arc that can carry a unit more. */
function refuteCosts(grid: Grid, { potential, above }: Rounding): string[] {
  const { rows, columns, bits, low, high } = grid;
  const wrong: string[] = [];
  const at = (node: number): number => potential[node] ?? Number.NaN;
  const hub = rows + columns;
  for (let column = 0; column < columns; column++) {
    const down = at(rows + column) - at(hub);
    const canRise = above[column] === 0 && (low[column] ?? 0) < (high[column] ?? 0);
    if (canRise && !(down >= 0)) wrong.push(`column ${column} to the hub`);
    if (above[column] === 1 && !(-down >= 0)) wrong.push(`the hub to column ${column}`);
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const bit = bits[row * columns + column] ?? 0;
      if ((bit & FRACTIONAL) === 0) continue;
      const reduced = ((bit & GOLD) === 0 ? 0 : -1) + at(row) - at(rows + column);
      if ((bit & RAISED) === 0 ? !(reduced >= 0) : !(reduced <= 0)) wrong.push(`cell ${row}, ${column}`);
    }
  }
  return wrong;
}

/** Moves that a rounding makes: what executors have now and are not to keep. */
export function movesOf({ rows, columns, executors, count, floor, bits }: Grid): number {
  let moves = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < executors; column++) {
      const cell = row * columns + column;
      const planned = (floor[cell] ?? 0) + (((bits[cell] ?? 0) & RAISED) === 0 ? 0 : 1);
      moves += Math.max(0, (count[cell] ?? 0) - planned);
    }
  }
  return moves;
}
