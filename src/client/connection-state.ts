import type { ExecutorTraits } from "../model/change.ts";
import type { ExecutorId, InstanceId, Revision } from "../model/ids.ts";
import type { LeaveFrame } from "../protocol/frames.ts";

export interface ConnectionOptions {
  /** As `sessionAddress` gives them, at least one. */
  readonly urls: readonly string[];
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly traits: ExecutorTraits;
  /** True if dialling again may come with another token. */
  readonly canRenewToken: boolean;
  /** How long a handle that was stopped outright is waited for before its partition may start anew. */
  readonly patienceMs: number;
}

export type LeaveMode = LeaveFrame["mode"];

/** What an executor may change of what its hello said. */
export type ChangeableTraits = Partial<Pick<ExecutorTraits, "address" | "labels" | "weight" | "capacity">>;

/** What the connection knows of itself at one moment. */
export interface ConnectionStatus {
  /** `pending`: welcomed, and nothing decided for this executor yet; it never means that it owns nothing. */
  readonly state: "connecting" | "pending" | "assigned" | "closed";
  /** Where it is connected, or is going to be. */
  readonly url: string;
  readonly session?: string;
  /** Why it is pending, in the scheduler's words. */
  readonly waitingFor?: string;
  readonly incarnation?: string;
  /** Revision of the last push applied. */
  readonly revision?: Revision;
  readonly leaving?: LeaveMode;
  /** Time left until the lease counts as lapsed; 0 without one. Nothing is served then. */
  readonly leaseLeftMs: number;
  /** Partitions granted and not given up, and those of them that are loaded. */
  readonly owned: number;
  readonly ready: number;
  /** Why the last socket ended, or could not be opened; absent while all is well. */
  readonly lastProblem?: string;
}
