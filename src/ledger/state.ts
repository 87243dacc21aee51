import { enableMapSet } from "immer";
import type { ExecutorRecord, TableRecord, UnownedReason } from "../model/change.ts";
import { byId, type Epoch, type ExecutorId, type InstanceId, type Revision, type TableName } from "../model/ids.ts";
import type { PartitionSet } from "../model/partition-set.ts";

/**
 * Ownership as the changes up to `revision` left it. Immutable: a fold gives a new state that shares what it did not touch.
 *
 * The same facts stand here twice, each for its reader: `chunks` answers "who has this partition" for the plan, `holders`
 * answers "what has this process" for delivery. The fold keeps both, and an invariant compares them in tests.
 */
export interface LedgerState {
  readonly incarnation: string;
  readonly revision: Revision;
  /** Tables were declared once, be it as none. */
  readonly declared: boolean;
  readonly tables: ReadonlyMap<TableName, TableState>;
  /** Executors by hash of their id: one Map of all would cost immer a copy of all at each change. */
  readonly executors: readonly ReadonlyMap<ExecutorId, ExecutorRecord>[];
  /** Processes that hold something, by slot; a free slot is undefined and the lowest is used again. */
  readonly holders: readonly (Holder | undefined)[];
  /** Slot of each process in `holders`, by hash of the executor's id; the key is holderKey. */
  readonly slots: readonly ReadonlyMap<string, number>[];
}

export interface TableState {
  readonly record: TableRecord;
  /** CHUNK_SIZE partitions each. */
  readonly chunks: readonly Chunk[];
  readonly owned: number;
  readonly releasing: number;
  /** What nobody owns, retired numbers apart, each partition in one entry. */
  readonly unowned: readonly UnownedSet[];
}

export interface UnownedSet {
  readonly reason: UnownedReason;
  /** Whom a reserved place is kept for. */
  readonly to?: ExecutorId;
  readonly partitions: PartitionSet;
}

/** Columns of consecutive partitions. Never written to once it stands in a state. */
export interface Chunk {
  readonly state: Uint8Array;
  /** Slot in `holders`; -1 where unowned. */
  readonly holder: Int32Array;
  /** Revision that granted; 0 where never granted. Kept when a grant ends: the next must be above it. */
  readonly epoch: Float64Array;
}

export const CHUNK_SIZE = 1024;
export const STATE_UNOWNED = 0;
export const STATE_OWNED = 1;
export const STATE_RELEASING = 2;

/** What one process of an executor holds. */
export interface Holder {
  readonly slot: number;
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly owned: ReadonlyMap<TableName, readonly HeldSet[]>;
  readonly releasing: ReadonlyMap<TableName, readonly HeldSet[]>;
  /** Partitions in `owned` and in `releasing`. */
  readonly ownedCount: number;
  readonly releasingCount: number;
}

/** Partitions under one epoch; of those releasing, with whom they were meant for. Ascending by epoch, then `to`. */
export interface HeldSet {
  readonly epoch: Epoch;
  readonly to?: ExecutorId;
  readonly partitions: PartitionSet;
}

/** 65,000 executors make buckets of about 250, which immer copies in some microseconds. */
const EXECUTOR_BUCKETS = 256;

enableMapSet();

/** The ledger before its first change. `floor` is the revision that the first change follows. */
export function emptyLedger(incarnation: string, floor: Revision): LedgerState {
  return {
    incarnation,
    revision: floor,
    declared: false,
    tables: new Map(),
    executors: Array.from({ length: EXECUTOR_BUCKETS }, () => new Map()),
    holders: [],
    slots: Array.from({ length: EXECUTOR_BUCKETS }, () => new Map()),
  };
}

/** Names one process: ids hold no space. */
export function holderKey(executor: ExecutorId, instance: InstanceId): string {
  return `${executor} ${instance}`;
}

export function bucketOf(executor: ExecutorId): number {
  let hash = 2166136261;
  for (let i = 0; i < executor.length; i++) hash = Math.imul(hash ^ executor.charCodeAt(i), 16777619);
  return (hash >>> 0) % EXECUTOR_BUCKETS;
}

export function executorRecord(ledger: LedgerState, executor: ExecutorId): ExecutorRecord | undefined {
  return ledger.executors[bucketOf(executor)]?.get(executor);
}

/** Every executor of the ledger, ascending by id. */
export function executorRecords(ledger: LedgerState): ExecutorRecord[] {
  return ledger.executors.flatMap((bucket) => [...bucket.values()]).sort((a, b) => byId(a.executor, b.executor));
}

/** Every table of the ledger, ascending by name. */
export function tableStates(ledger: LedgerState): TableState[] {
  return [...ledger.tables.values()].sort((a, b) => byId(a.record.table, b.record.table));
}

/** What this process holds; undefined if nothing. */
export function findHolder(ledger: LedgerState, executor: ExecutorId, instance: InstanceId): Holder | undefined {
  const slot = ledger.slots[bucketOf(executor)]?.get(holderKey(executor, instance));
  return slot === undefined ? undefined : ledger.holders[slot];
}

/** Every process that holds something, ascending by executor, then instance. */
export function holdersInOrder(ledger: LedgerState): Holder[] {
  return ledger.holders
    .filter((holder) => holder !== undefined)
    .sort((a, b) => byId(a.executor, b.executor) || byId(a.instance, b.instance));
}

/** How many numbers of a table are in use: all but the retired ones. */
export function partitionCount(record: TableRecord): number {
  return record.count - (record.retired?.size ?? 0);
}
