import type { ExecutorState, UnownedReason } from "./change.ts";
import type { ExecutorId, InstanceId, Revision, TableName } from "./ids.ts";
import type { PartitionSet } from "./partition-set.ts";

/** What the scheduler is doing, in one word. */
export type StatusState =
  | "pending"
  | "forming"
  | "recovering"
  | "held"
  | "paused"
  | "store-failed"
  | "working"
  | "converged";

/** The body of `GET /v1/status`. */
export interface Status {
  readonly cluster: string;
  readonly incarnation: string;
  readonly term: number;
  readonly role: "leader" | "standby";
  readonly revision: Revision;
  readonly state: StatusState;
  readonly converged: boolean;
  /** Why it is not converged, in words; empty when it is. */
  readonly waitingFor: readonly string[];
  readonly windows: readonly { readonly kind: "formation" | "join" | "recovery"; readonly closesInMs: number }[];
  readonly tables: readonly TableStatus[];
  readonly executors: readonly ExecutorStatus[];
  readonly alarms: readonly { readonly code: string; readonly text: string }[];
}

export interface TableStatus {
  readonly table: TableName;
  readonly count: number;
  readonly owned: number;
  readonly releasing: number;
  readonly preparing: number;
  readonly unowned: readonly UnownedStatus[];
}

export interface UnownedStatus {
  readonly partitions: PartitionSet;
  readonly reason: UnownedReason;
  /** Whom a reserved place is kept for. */
  readonly to?: ExecutorId;
  /** For how long it is still kept, in ms; absent while an earlier process has not given it back. */
  readonly keptMs?: number;
}

export interface ExecutorStatus {
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly state: ExecutorState;
  readonly cordoned: boolean;
  readonly connected: boolean;
  readonly suspect: boolean;
  /** Partitions owned, over all tables. */
  readonly owned: number;
  /** Those of them that it has reported ready. */
  readonly ready: number;
  readonly leaseLeftMs: number;
  /** Revision of the last push it acknowledged; null before the first. */
  readonly acked: Revision | null;
  readonly unacked?: { readonly revision: Revision; readonly sinceMs: number };
}

/** A value as it stands in JSON: partition sets are text. */
export type AsJson<T> = T extends string
  ? T
  : T extends PartitionSet
    ? string
    : T extends readonly (infer Item)[]
      ? readonly AsJson<Item>[]
      : T extends object
        ? { readonly [Key in keyof T]: AsJson<T[Key]> }
        : T;
