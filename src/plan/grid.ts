import { assert } from "../model/errors.ts";
import { computeQuotas, type Quotas } from "./quotas.ts";
import { ceilOf, floorOf, type Share } from "./ratio.ts";
import { FIXED, type PlanInput, type PlanTable, UNOWNED } from "./types.ts";

/** The cell's quota is not a whole number: its count is `floor`, or one more. */
export const FRACTIONAL = 1;
/** A fractional cell whose executor has that one more now, so that not leaving it there is a move. */
export const GOLD = 2;
/** The plan gives the cell one more than `floor`. Only ever set in fractional cells. */
export const RAISED = 4;

/**
 * Counts and their bounds: one row per table, one column per executor, and behind those one for what finds no room where
 * room is short. Cells are row-major.
 */
export interface Grid {
  readonly rows: number;
  readonly columns: number;
  readonly executors: number;
  /** Per cell, what the executor owns of the table now; in the last column what nobody owns. */
  readonly count: Int32Array;
  /** Per cell, the least that the plan may give. */
  readonly floor: Int32Array;
  /** Per cell, FRACTIONAL, GOLD and RAISED. */
  readonly bits: Uint8Array;
  /** Per row, how many partitions are shared out. */
  readonly size: Int32Array;
  /** Per column, bounds of its total: floor and ceiling of its quota. */
  readonly low: Int32Array;
  readonly high: Int32Array;
}

/** Builds the grid of an input that has executors, with the gold cells raised; undefined if there is nothing to share out. */
export function buildGrid(input: PlanInput): Grid | undefined {
  const executors = input.executors.length;
  const size = Int32Array.from(input.tables, (table) => countShared(table, executors));
  const total = size.reduce((sum, each) => sum + each, 0);
  if (total === 0) return undefined;
  const quotas = computeQuotas(input.executors, total);
  const { columns } = quotas;
  const rows = size.length;
  const floor = new Int32Array(rows * columns);
  const bits = new Uint8Array(rows * columns);
  const count = countOwners(input, columns);
  setBounds(quotas, size, floor, bits);
  const low = perColumn(quotas, (share) => floorOf(share, total));
  const high = perColumn(quotas, (share) => ceilOf(share, total));
  const grid = { rows, columns, executors, count, floor, bits, size, low, high };
  raiseGold(grid);
  return grid;
}

function raiseGold({ rows, columns, executors, count, floor, bits }: Grid): void {
  for (let row = 0; row < rows; row++) {
    const end = row * columns + executors;
    for (let cell = row * columns; cell < end; cell++) {
      if (bits[cell] === FRACTIONAL && (count[cell] as number) > (floor[cell] as number)) {
        bits[cell] = FRACTIONAL | GOLD | RAISED;
      }
    }
  }
}

/** What the bits as they are give to each row, and behind those to each column. */
export function sumTargets({ rows, columns, floor, bits }: Grid): Int32Array {
  const sums = new Int32Array(rows + columns);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column;
      const target = (floor[cell] as number) + (((bits[cell] as number) & RAISED) === 0 ? 0 : 1);
      sum += target;
      sums[rows + column] = (sums[rows + column] as number) + target;
    }
    sums[row] = sum;
  }
  return sums;
}

/** Sets `balance` to what each executor gains or gives of a table by the bits as they are; false if that is nothing. */
export function balanceRow(grid: Grid, row: number, balance: Int32Array): boolean {
  const { columns, executors, count, floor, bits } = grid;
  const start = row * columns;
  let changed = false;
  for (let executor = 0; executor < executors; executor++) {
    const cell = start + executor;
    const raised = ((bits[cell] as number) & RAISED) === 0 ? 0 : 1;
    const gain = (floor[cell] as number) + raised - (count[cell] as number);
    balance[executor] = gain;
    changed ||= gain !== 0;
  }
  return changed;
}

/** An unowned partition that no executor may be given is left out of quotas: nobody can be owed it. */
export function isBarred(table: PlanTable, partition: number, executors: number): boolean {
  return table.owner[partition] === UNOWNED && (table.excluded?.get(partition)?.length ?? 0) >= executors;
}

function countShared(table: PlanTable, executors: number): number {
  const { owner } = table;
  let shared = owner.length;
  for (let partition = 0; partition < owner.length; partition++) if (owner[partition] === FIXED) shared--;
  for (const partition of table.excluded?.keys() ?? []) if (isBarred(table, partition, executors)) shared--;
  return shared;
}

function countOwners({ tables, executors }: PlanInput, columns: number): Int32Array {
  const count = new Int32Array(tables.length * columns);
  tables.forEach((table, row) => {
    const { owner } = table;
    const start = row * columns;
    let unowned = 0;
    for (let partition = 0; partition < owner.length; partition++) {
      const at = owner[partition] as number;
      assert(at < executors.length, `a partition of ${table.table} has the owner ${at} of ${executors.length}`);
      if (at >= 0) count[start + at] = (count[start + at] as number) + 1;
      else if (at === UNOWNED) unowned++;
    }
    for (const partition of table.excluded?.keys() ?? []) if (isBarred(table, partition, executors.length)) unowned--;
    if (columns > executors.length) count[start + columns - 1] = unowned;
  });
  return count;
}

function perColumn({ shares, shareOf }: Quotas, measure: (share: Share) => number): Int32Array {
  const measured = shares.map(measure);
  return shareOf.map((index) => measured[index] as number);
}

/** A cell's quota is its column's share of its table. Tables of one size have the same bounds. */
function setBounds({ shares, shareOf, columns }: Quotas, size: Int32Array, floor: Int32Array, bits: Uint8Array): void {
  const bySize = new Map<number, { readonly floors: Int32Array; readonly fractional: Uint8Array }>();
  for (let row = 0; row < size.length; row++) {
    const partitions = size[row] as number;
    const known = bySize.get(partitions) ?? roundShares(shares, partitions);
    bySize.set(partitions, known);
    const { floors, fractional } = known;
    const start = row * columns;
    for (let column = 0; column < columns; column++) {
      const index = shareOf[column] as number;
      floor[start + column] = floors[index] as number;
      bits[start + column] = fractional[index] as number;
    }
  }
}

function roundShares(shares: readonly Share[], size: number): { floors: Int32Array; fractional: Uint8Array } {
  const floors = Int32Array.from(shares, (share) => floorOf(share, size));
  const isFractional = (share: Share, index: number): boolean => ceilOf(share, size) > (floors[index] as number);
  return {
    floors,
    fractional: Uint8Array.from(shares, (share, index) => (isFractional(share, index) ? FRACTIONAL : 0)),
  };
}
