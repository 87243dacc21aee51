import {
  CHUNK_SIZE,
  type Chunk,
  executorRecord,
  type Holder,
  type LedgerState,
  STATE_OWNED,
  type TableState,
  tableStates,
} from "../ledger/state.ts";
import type { ExecutorId, InstanceId, TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { FIXED, type PlanExecutor, type PlanInput, type PlanTable, UNOWNED } from "../plan/types.ts";
import { backedOff } from "./backoff.ts";
import { isCordoned, type Member } from "./fleet/member.ts";
import { type CoreState, isRegistered, membersInOrder } from "./state.ts";

/** What the planner is asked: who may be given partitions, and where each partition stands. */
export interface PlanRequest {
  readonly input: PlanInput;
  readonly eligible: readonly Eligible[];
  readonly tables: readonly TableState[];
  /** Owned partitions that must be asked back wherever they go: their owner failed to take them. */
  readonly failed: ReadonlyMap<TableName, PartitionSet>;
}

/** An executor that may be given partitions. */
export interface Eligible {
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly capacity: number;
}

/** Builds the request from the ledger as the draft leaves it. */
export function planRequest(state: CoreState, ledger: LedgerState, now: number): PlanRequest {
  const members = membersInOrder(state).filter((member) => isEligible(ledger, member));
  const eligible = members.map(({ executor, instance, traits }) => ({
    executor,
    instance,
    capacity: traits.capacity ?? Number.POSITIVE_INFINITY,
  }));
  const index = new Map(eligible.map(({ executor }, at) => [executor, at]));
  const tables = tableStates(ledger).filter((table) => table.record.removing === undefined && table.record.count > 0);
  const failed = failedPartitions(state);
  const owners = standing(state, ledger, tables, index, failed);
  const backoffs = backedOff(state, now);
  return {
    eligible,
    tables,
    failed,
    input: {
      executors: members.map(planExecutor),
      tables: tables.map(({ record }): PlanTable => {
        const excluded = backoffs.get(record.table);
        const owner = owners.get(record.table) ?? new Int32Array();
        return excluded === undefined
          ? { table: record.table, owner }
          : { table: record.table, owner, excluded: excludedIndexes(excluded, index) };
      }),
    },
  };
}

function planExecutor({ executor, traits: { weight, capacity } }: Member): PlanExecutor {
  return { executor, weight, ...(capacity === undefined ? {} : { capacity }) };
}

/** Live in the ledger under this very process, heard, and neither leaving nor cordoned. */
function isEligible(ledger: LedgerState, member: Member): boolean {
  const record = executorRecord(ledger, member.executor);
  return (
    record?.state === "live" &&
    record.instance === member.instance &&
    member.session !== undefined &&
    member.suspectAt === undefined &&
    member.leaving === undefined &&
    !member.lost &&
    !isCordoned(member)
  );
}

function failedPartitions(state: CoreState): Map<TableName, PartitionSet> {
  const failed = new Map<TableName, PartitionSet>();
  for (const { table, partitions } of state.failures) {
    failed.set(table, partitions.union(failed.get(table) ?? PartitionSet.empty));
  }
  return failed;
}

/**
 * Per table, where each partition stands for the planner. Handoffs that were begun count as done; a place that is kept for
 * someone who is away is not the planner's to give.
 */
function standing(
  state: CoreState,
  ledger: LedgerState,
  tables: readonly TableState[],
  index: ReadonlyMap<ExecutorId, number>,
  failed: ReadonlyMap<TableName, PartitionSet>,
): Map<TableName, Int32Array> {
  const owners = new Map(tables.map(({ record }) => [record.table, new Int32Array(record.count).fill(FIXED)]));
  for (const { record, unowned } of tables) {
    for (const set of unowned) fill(owners.get(record.table), set.partitions, keptFor(state, ledger, set.to, index));
  }
  const standingOf = new Int32Array(ledger.holders.length).fill(FIXED);
  for (const holder of ledger.holders) {
    if (holder === undefined) continue;
    standingOf[holder.slot] = ownerStanding(state, ledger, holder, index);
    if (holder.releasingCount === 0) continue;
    for (const [table, sets] of holder.releasing) {
      for (const set of sets)
        fill(owners.get(table), set.partitions, takerStanding(state, ledger, holder, set.to, index));
    }
  }
  for (const { record, chunks } of tables) fillOwned(owners.get(record.table), chunks, standingOf);
  for (const [table, partitions] of failed) fill(owners.get(table), partitions, UNOWNED);
  for (const { record } of tables) fill(owners.get(record.table), record.retired ?? PartitionSet.empty, FIXED);
  return owners;
}

/** An owner keeps; a suspect or cordoned one is left alone; one that leaves must be emptied. */
function ownerStanding(
  state: CoreState,
  ledger: LedgerState,
  holder: Holder,
  index: ReadonlyMap<ExecutorId, number>,
): number {
  const at = index.get(holder.executor);
  if (at !== undefined) return at;
  const record = executorRecord(ledger, holder.executor);
  const leaving = state.members.get(holder.executor)?.leaving !== undefined;
  return leaving || record?.state === "draining" || !isRegistered(record) ? UNOWNED : FIXED;
}

/** What is being given back goes to whom it was meant for, if that one can take it. */
function takerStanding(
  state: CoreState,
  ledger: LedgerState,
  holder: Holder,
  to: ExecutorId | undefined,
  index: ReadonlyMap<ExecutorId, number>,
): number {
  const at = to === undefined ? undefined : index.get(to);
  if (at !== undefined) return at;
  return to === holder.executor ? keptFor(state, ledger, to, index) : UNOWNED;
}

/** A reserved place: its executor's again once it is there, nobody's while it is waited for, free afterwards. */
export function keptFor(
  state: CoreState,
  ledger: LedgerState,
  to: ExecutorId | undefined,
  index: ReadonlyMap<ExecutorId, number>,
): number {
  if (to === undefined) return UNOWNED;
  const at = index.get(to);
  if (at !== undefined) return at;
  const member = state.members.get(to);
  // To leave for good, or to be cordoned, wins over a place that is kept.
  if (member !== undefined && (member.leaving?.mode === "move" || isCordoned(member))) return UNOWNED;
  return state.reservations.has(to) || isRegistered(executorRecord(ledger, to)) ? FIXED : UNOWNED;
}

function excludedIndexes(
  excluded: ReadonlyMap<number, readonly ExecutorId[]>,
  index: ReadonlyMap<ExecutorId, number>,
): Map<number, number[]> {
  return new Map(
    [...excluded].map(([partition, executors]) => [
      partition,
      executors.flatMap((executor) => index.get(executor) ?? []).sort((a, b) => a - b),
    ]),
  );
}

/** Reads what is owned from the chunks, in order: the holders' own lists would be met cell by cell, all over memory. */
function fillOwned(owner: Int32Array | undefined, chunks: readonly Chunk[], standingOf: Int32Array): void {
  if (owner === undefined) return;
  let at = 0;
  for (const { state, holder } of chunks) {
    for (let cell = 0; cell < CHUNK_SIZE && at < owner.length; cell++, at++) {
      if (state[cell] === STATE_OWNED) owner[at] = standingOf[holder[cell] as number] as number;
    }
  }
}

function fill(owner: Int32Array | undefined, partitions: PartitionSet, value: number): void {
  if (owner !== undefined) partitions.fill(owner, value);
}
