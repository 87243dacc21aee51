import type { PlanExecutor, PlanInput, PlanTable } from "../../src/plan/types.ts";
import { UNOWNED } from "../../src/plan/types.ts";

/** Worlds to plan for: tables of different sizes, so that quotas are no whole numbers. */

export interface WorldSize {
  readonly partitions: number;
  readonly executors: number;
  readonly tables: number;
}

/** DESIGN §5: the largest world that a plan is measured on. */
export const MILLION: WorldSize = { partitions: 1_000_000, executors: 10_000, tables: 100 };
/** The same with the executors of the row in which a tenth of them leaves. */
export const THOUSAND_EXECUTORS: WorldSize = { ...MILLION, executors: 1_000 };

/** Sizes that differ by up to 30 % from their mean and add up exactly; the same at each call. */
export function tableSizes({ partitions, tables }: WorldSize): readonly number[] {
  const mean = partitions / tables;
  let seed = 42;
  const sizes = Array.from({ length: tables }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return Math.round(mean * (0.7 + (0.6 * seed) / 0x7fff_ffff));
  });
  const missing = partitions - sizes.reduce((sum, size) => sum + size, 0);
  return sizes.map(
    (size, at) => size + Math.floor(missing / tables) + (at < missing - Math.floor(missing / tables) * tables ? 1 : 0),
  );
}

export function idOf(kind: string, number: number): string {
  return `${kind}${String(number).padStart(6, "0")}`;
}

/** A world in which nobody owns anything. */
export function coldWorld(size: WorldSize): PlanInput {
  return {
    executors: Array.from({ length: size.executors }, (_, at) => executor(at)),
    tables: tableSizes(size).map((count, at) => table(at, new Int32Array(count).fill(UNOWNED))),
  };
}

/** A world with the given owners, one array per table. */
export function ownedWorld(executors: number, owners: readonly Int32Array[]): PlanInput {
  return {
    executors: Array.from({ length: executors }, (_, at) => executor(at)),
    tables: owners.map((owner, at) => table(at, owner)),
  };
}

/** With one more executor, which owns nothing, in the place `at`: everyone behind it is renumbered. */
export function joined({ executors, tables }: PlanInput, at: number): PlanInput {
  const newcomer = { executor: `${executors[at - 1]?.executor ?? "A"}x`, weight: 1 };
  return {
    executors: executors.toSpliced(at, 0, newcomer),
    tables: tables.map((each) => ({ ...each, owner: each.owner.map((owner) => (owner >= at ? owner + 1 : owner)) })),
  };
}

/** Without the executors that `leaves` picks: what they own is free. */
export function left({ executors, tables }: PlanInput, leaves: (at: number) => boolean): PlanInput {
  const staying = executors.filter((_, at) => !leaves(at));
  let next = 0;
  const renumbered = Int32Array.from(executors, (_, at) => (leaves(at) ? UNOWNED : next++));
  const renumber = (owner: number): number => (owner < 0 ? owner : (renumbered[owner] as number));
  return { executors: staying, tables: tables.map((each) => ({ ...each, owner: each.owner.map(renumber) })) };
}

/** The floor of everything that has to look at each owner once: how many partitions each executor has. */
export function histogram({ executors, tables }: PlanInput): Int32Array {
  const counts = new Int32Array(executors.length);
  for (const { owner } of tables) {
    for (let partition = 0; partition < owner.length; partition++) {
      const at = owner[partition] as number;
      if (at >= 0) counts[at] = (counts[at] as number) + 1;
    }
  }
  return counts;
}

/** Partitions that were owned and have another owner after. */
export function countMoves(before: PlanInput, after: readonly { readonly owner: Int32Array }[]): number {
  let moves = 0;
  before.tables.forEach(({ owner }, table) => {
    const target = after[table]?.owner;
    for (let at = 0; at < owner.length; at++) if (owner[at] !== UNOWNED && owner[at] !== target?.[at]) moves++;
  });
  return moves;
}

function executor(at: number): PlanExecutor {
  return { executor: idOf("E", at), weight: 1 };
}

function table(at: number, owner: Int32Array): PlanTable {
  return { table: idOf("t", at), owner };
}
