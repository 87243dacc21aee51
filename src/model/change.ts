import type { Handoff } from "./grant.ts";
import type { Epoch, ExecutorId, InstanceId, Revision, TableName } from "./ids.ts";
import type { PartitionSet } from "./partition-set.ts";

/** Why a change was made. */
export type CauseKind =
  | "formation"
  | "join"
  | "loss"
  | "leave"
  | "drain"
  | "restart"
  | "replacement"
  | "table"
  | "executor"
  | "balance"
  | "failed"
  | "operator"
  | "recovery";

export interface Cause {
  readonly kind: CauseKind;
  readonly executors?: readonly ExecutorId[];
  readonly tables?: readonly TableName[];
  /** Who asked for it, for operator verbs. */
  readonly by?: string;
  readonly note?: string;
}

/** Why nobody owns a partition. `forming` is never written to the ledger: it is what status says while a window is open. */
export type UnownedReason =
  | "forming"
  | "no-executor"
  | "no-eligible-executor"
  | "capacity"
  | "reserved"
  | "backoff"
  | "poison"
  | "held"
  | "paused";

/** Who made a table: the configuration file, or the HTTP API. */
export type TableOrigin = "file" | "api";

/** What a table is asked to be. A table has `count` numbered partitions, or one for each of `keys`. */
export interface TableSpec {
  readonly table: TableName;
  readonly count: number;
  readonly keys?: readonly string[];
  readonly handoff: Handoff;
  readonly stopMs: number;
  readonly balance: "count" | "load";
  readonly selector: Readonly<Record<string, string>>;
}

/** A table as the ledger has it. */
export interface TableRecord extends TableSpec {
  /** The revision that made it: tells two lives of one name apart. */
  readonly created: Revision;
  readonly origin: TableOrigin;
  /** Numbers of removed keys, never used again. */
  readonly retired?: PartitionSet;
  /** Deleted, but some partition's grant has not ended yet. */
  readonly removing?: true;
}

export type ExecutorState = "live" | "draining" | "cordoned" | "lost" | "left";

/** What an executor says of itself in its hello, and may change by update. */
export interface ExecutorTraits {
  /** Opaque to the scheduler, never dialled. */
  readonly address?: string;
  readonly zone?: string;
  readonly slot?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Share relative to others. Default 1. */
  readonly weight: number;
  /** Most partitions over all tables. Absent: no limit. */
  readonly capacity?: number;
}

/** An executor as the ledger has it. */
export interface ExecutorRecord extends ExecutorTraits {
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly state: ExecutorState;
  /** Instances that were replaced, newest last, at most MAX_REPLACED. A hello of one of them is refused. */
  readonly replaced: readonly InstanceId[];
}

/** How many replaced instances of an executor are remembered. */
export const MAX_REPLACED = 64;

/** Partitions given to an executor; their epoch is the change's revision. Ends what was releasing. */
export interface OwnEntry {
  readonly table: TableName;
  readonly partitions: PartitionSet;
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
}

/** Partitions asked back from their owner. `to` is the plan of that moment, not a promise. */
export interface ReleaseEntry {
  readonly table: TableName;
  readonly partitions: PartitionSet;
  readonly executor: ExecutorId;
  readonly to?: ExecutorId;
}

/** Partitions that nobody owns any more. Ends what was releasing. `to`: whom a reserved place is kept for. */
export interface UnownEntry {
  readonly table: TableName;
  readonly partitions: PartitionSet;
  readonly reason: UnownedReason;
  readonly to?: ExecutorId;
}

/** Partitions of one executor, for the overlap handoff. */
export interface HoldingEntry {
  readonly table: TableName;
  readonly partitions: PartitionSet;
  readonly executor: ExecutorId;
}

export interface EndedEntry extends HoldingEntry {
  readonly epoch: Epoch;
}

export interface PrepareEntry extends HoldingEntry {
  readonly to?: ExecutorId;
  readonly reason?: string;
}

/** A table entry of a change: the record, or its removal. */
export type TableEntry = TableRecord | { readonly table: TableName; readonly removed: true };

/** An executor entry of a change: the record, or its being forgotten. */
export type ExecutorEntry = ExecutorRecord | { readonly executor: ExecutorId; readonly removed: true };

/**
 * What one revision did: the one record that is appended, folded, pushed, streamed and printed.
 *
 * The arrays are folded in the order of the members here. In memory every array is present; on the wire and in the store
 * an empty one may be left out.
 */
export interface Change {
  readonly revision: Revision;
  readonly term: number;
  /** Wall time in ms since 1970, for display only. */
  readonly at: number;
  readonly cause: readonly Cause[];
  readonly executors: readonly ExecutorEntry[];
  readonly tables: readonly TableEntry[];
  readonly release: readonly ReleaseEntry[];
  readonly unown: readonly UnownEntry[];
  readonly own: readonly OwnEntry[];
  readonly prepare: readonly PrepareEntry[];
  readonly unprepare: readonly PrepareEntry[];
  readonly ready: readonly HoldingEntry[];
  readonly unready: readonly HoldingEntry[];
  readonly ended: readonly EndedEntry[];
  /** Set once: tables were declared, be it as none. */
  readonly declared?: true;
}

/** A change that does nothing, to be filled. */
export function emptyChange(revision: Revision, term: number): Change {
  return {
    revision,
    term,
    at: 0,
    cause: [],
    executors: [],
    tables: [],
    release: [],
    unown: [],
    own: [],
    prepare: [],
    unprepare: [],
    ready: [],
    unready: [],
    ended: [],
  };
}
