import { computePlan } from "../../src/plan/plan.ts";
import { FIXED, type PlanInput, type PlanResult, type PlanTable, UNOWNED } from "../../src/plan/types.ts";

/** A world by names, as people think of it, and plans of it in the same terms. */
export interface NamedWorld {
  readonly executors: readonly { readonly executor: string; readonly weight?: number; readonly capacity?: number }[];
  readonly tables: readonly NamedTable[];
}

export interface NamedTable {
  readonly table: string;
  /** Per partition, its owner's name; undefined where there is none, null where the planner must leave it alone. */
  readonly owners: readonly (string | undefined | null)[];
  /** Partition → names of executors that must not be given it. */
  readonly excluded?: ReadonlyMap<number, readonly string[]>;
}

/** Sorts what the contract wants sorted. Owners that are not in the world are gone. */
export function toInput(world: NamedWorld): PlanInput {
  const executors = [...world.executors]
    .sort((a, b) => compare(a.executor, b.executor))
    .map((each) => ({ weight: 1, ...each }));
  const index = new Map(executors.map(({ executor }, at) => [executor, at]));
  const indexOf = (name: string): number => index.get(name) ?? UNOWNED;
  const tables = [...world.tables]
    .sort((a, b) => compare(a.table, b.table))
    .map(({ table, owners, excluded }): PlanTable => {
      const owner = Int32Array.from(owners, (name) => (name === null ? FIXED : indexOf(name ?? "")));
      if (excluded === undefined) return { table, owner };
      const pairs = [...excluded].map(([partition, names]): [number, number[]] => [
        partition,
        names
          .map(indexOf)
          .filter((at) => at >= 0)
          .sort((a, b) => a - b),
      ]);
      return { table, owner, excluded: new Map(pairs) };
    });
  return { executors, tables };
}

/** The world after its plan was carried out, tables in order of name. */
export function planWorld(world: NamedWorld): NamedWorld {
  const input = toInput(world);
  const result = computePlan(input);
  const tables = input.tables.map(({ table }, row): NamedTable => {
    const given = world.tables.find((each) => each.table === table);
    const owners = ownersOf(result, row).map((at) => (at === FIXED ? null : input.executors[at]?.executor));
    return { table, owners, ...(given?.excluded === undefined ? {} : { excluded: given.excluded }) };
  });
  return { executors: world.executors, tables };
}

/** The input as it is once its plan was carried out. */
export function afterPlan(input: PlanInput, result: PlanResult = computePlan(input)): PlanInput {
  return {
    executors: input.executors,
    tables: input.tables.map((table, row) => ({ ...table, owner: Int32Array.from(ownersOf(result, row)) })),
  };
}

export function ownersOf(result: PlanResult, row: number): number[] {
  return Array.from(result.tables[row]?.owner ?? []);
}

/** How many partitions each executor owns, by name, over all tables or in one. */
export function loads(world: NamedWorld, table?: string): Record<string, number> {
  const counts: Record<string, number> = Object.fromEntries(world.executors.map(({ executor }) => [executor, 0]));
  for (const each of world.tables) {
    if (table !== undefined && each.table !== table) continue;
    for (const owner of each.owners) if (owner != null) counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

/** What became of the partitions that a living executor owned, and how many nobody owns now. */
export function differences(before: NamedWorld, after: NamedWorld): { moves: number; kept: number; unowned: number } {
  const living = new Set(after.executors.map(({ executor }) => executor));
  const result = { moves: 0, kept: 0, unowned: 0 };
  for (const { table, owners } of after.tables) {
    const former = before.tables.find((each) => each.table === table)?.owners ?? [];
    owners.forEach((owner, partition) => {
      const from = former[partition];
      if (owner === undefined) result.unowned++;
      if (from == null || !living.has(from)) return;
      if (owner === from) result.kept++;
      else result.moves++;
    });
  }
  return result;
}

/** Plans and says what moved. */
export function step(world: NamedWorld): NamedWorld & ReturnType<typeof differences> {
  const after = planWorld(world);
  return { ...after, ...differences(world, after) };
}

export function table(name: string, partitions: number, owner?: string): NamedTable {
  return { table: name, owners: new Array<string | undefined>(partitions).fill(owner) };
}

export function named(...names: string[]): { executor: string }[] {
  return names.map((executor) => ({ executor }));
}

/** Code unit order, as ids are sorted everywhere. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
