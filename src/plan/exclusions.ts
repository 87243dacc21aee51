import type { Grid } from "./grid.ts";
import { type PlanTable, UNOWNED } from "./types.ts";

/** Whether a plan may give a partition to an executor, or leave it there: what it has, it may keep. */
export function mayOwn({ owner, excluded }: PlanTable, partition: number, executor: number): boolean {
  if (owner[partition] === executor) return true;
  const pairs = excluded?.get(partition);
  return pairs === undefined || !includes(pairs, executor);
}

/** Those of `candidates`, ascending, that may own a partition. */
export function mayOwnOf(table: PlanTable, partition: number, candidates: readonly number[]): number[] {
  const pairs = table.excluded?.get(partition) ?? [];
  let at = 0;
  return candidates.filter((executor) => {
    while (at < pairs.length && (pairs[at] as number) < executor) at++;
    return pairs[at] !== executor || table.owner[partition] === executor;
  });
}

/** Binary search: a partition may be refused by many. */
function includes(ascending: readonly number[], wanted: number): boolean {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return ascending[low] === wanted;
}

/**
 * Lowers the bounds of cells to what the executor may have of the table at all: its size less the partitions that it
 * neither has nor may be given. True if a lower bound had to give way, so that the plan will not be as fair as without
 * exclusions.
 */
export function narrowBounds(grid: Grid, tables: readonly PlanTable[]): boolean {
  const { columns, executors, floor, bits, size } = grid;
  let gaveWay = false;
  tables.forEach(({ owner, excluded }, row) => {
    if (excluded === undefined || excluded.size === 0) return;
    const blocked = new Int32Array(executors);
    for (const [partition, pairs] of excluded) {
      // What nobody may be given is not part of the size.
      if ((owner[partition] as number) < 0 && (owner[partition] !== UNOWNED || pairs.length >= executors)) continue;
      for (const executor of pairs) {
        if (owner[partition] !== executor) blocked[executor] = (blocked[executor] as number) + 1;
      }
    }
    for (let executor = 0; executor < executors; executor++) {
      const cell = row * columns + executor;
      const most = (size[row] as number) - (blocked[executor] as number);
      if (most > (floor[cell] as number)) continue;
      bits[cell] = 0;
      if (most === (floor[cell] as number)) continue;
      floor[cell] = most;
      gaveWay = true;
    }
  });
  return gaveWay;
}

/**
 * Where an executor still lacks partitions and none that is free may go to it, a third one takes a free partition and gives
 * it another: one that it was to gain anyway or would otherwise have given up, which costs nothing, else one that it has,
 * which costs a move.
 */
export function exchangeLeftovers(table: PlanTable, owner: Int32Array, balance: Int32Array): void {
  if (!balance.some((each) => each > 0)) return;
  const leftovers = [...owner.keys()].filter((partition) => owner[partition] === UNOWNED);
  const returning = (partition: number, third: number): boolean => table.owner[partition] === third;
  const allowed = (partition: number, third: number): boolean => mayOwn(table, partition, third);
  for (const free of [true, false]) {
    // No free partition comes to be during this, so whom none fits now, none will.
    const hopeless = [new Set<number>(), new Set<number>()] as const;
    for (let gainer = 0; gainer < balance.length; gainer++) {
      for (let other = 0; other < owner.length && (balance[gainer] as number) > 0 && leftovers.length > 0; other++) {
        const third = owner[other] as number;
        if (third < 0 || third === gainer || !mayOwn(table, other, gainer)) continue;
        const costs = table.owner[other] === third;
        const none = hopeless[costs ? 1 : 0];
        if (none.has(third)) continue;
        const fits = free && costs ? returning : allowed;
        const at = leftovers.findIndex((partition) => fits(partition, third));
        if (at < 0) none.add(third);
        else {
          const [partition] = leftovers.splice(at, 1) as [number];
          owner[partition] = third;
          owner[other] = gainer;
          balance[gainer] = (balance[gainer] as number) - 1;
        }
      }
    }
  }
}
