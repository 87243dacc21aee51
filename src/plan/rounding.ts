import { FRACTIONAL, type Grid, RAISED } from "./grid.ts";
import { BitNetwork } from "./network.ts";

/** What shows that a rounding is the best: see `roundGrid`. */
export interface Rounding {
  /** Partitions that found no column within the bounds. Always 0, unless bounds were narrowed. */
  readonly unmet: number;
  /** Per node (rows, then columns, then the hub), its potential. */
  readonly potential: Int32Array;
  /** Per column, 1 if its total is one above `low`. */
  readonly above: Uint8Array;
}

/**
 * Raises bits of the grid so that each row adds up to its size, each column's total is within its bounds, and as few
 * partitions as possible leave their owner.
 *
 * A plan is `floor` plus a bit per fractional cell. With c now in a cell and x planned, min(c, x) stay; over a row that is a
 * constant plus the number of gold cells that are raised. So the fewest moves are the most raised gold cells, and that is a
 * minimum-cost flow: a unit goes from its row to a column through the cell that it raises, and from a column above its lower
 * bound on to a hub, which takes what the lower bounds leave over. Leaving a gold cell costs 1, returning to it earns 1, all
 * else is free.
 *
 * It begins with just the gold cells raised, which no change of a cell can better: what is wrong there are only sums. Then
 * units are sent from where there are too many to where there are too few over paths of least cost (successive shortest
 * paths in their primal-dual form: Ahuja, Magnanti, Orlin, Network Flows, 9.8, with the blocking flows of Dinic). That
 * keeps all reduced costs at 0 or above, and a flow that meets all sums without a negative reduced cost is of least cost.
 * It always gets there: the quotas themselves are a fractional flow, and flows with whole bounds round.
 */
export function roundGrid(grid: Grid): Rounding {
  const network = new BitNetwork(grid);
  prefill(grid, network);
  network.settle();
  const { potential, above, unmet } = network;
  return { potential, above, unmet };
}

/**
 * The paths of cost 0 that are seen at once: from a row that lacks units to a column below its lower bound, and when there
 * are none of those, to one that may have one more. The cursor runs on across the rows, so that a first plan spreads evenly
 * what is over.
 */
function prefill({ rows, columns, bits }: Grid, { excess, hub, above, room }: BitNetwork): void {
  let lacking = excess.subarray(rows, rows + columns).reduce((sum, each) => sum + Math.max(0, -each), 0);
  let cursor = 0;
  const raise = (row: number, column: number): void => {
    bits[row * columns + column] = FRACTIONAL | RAISED;
    excess[row] = (excess[row] as number) - 1;
    cursor = column + 1 < columns ? column + 1 : 0;
  };
  for (let row = 0; row < rows; row++) {
    if ((excess[row] as number) <= 0) continue;
    const start = cursor;
    for (let step = 0; step < columns && lacking > 0 && (excess[row] as number) > 0; step++) {
      const column = (start + step) % columns;
      if (bits[row * columns + column] !== FRACTIONAL || (excess[rows + column] as number) >= 0) continue;
      raise(row, column);
      excess[rows + column] = (excess[rows + column] as number) + 1;
      lacking--;
    }
    const on = cursor;
    for (let step = 0; step < columns && (excess[hub] as number) < 0 && (excess[row] as number) > 0; step++) {
      const column = (on + step) % columns;
      if (bits[row * columns + column] !== FRACTIONAL || (above[column] as number) >= (room[column] as number))
        continue;
      raise(row, column);
      above[column] = 1;
      excess[hub] = (excess[hub] as number) + 1;
    }
  }
}
