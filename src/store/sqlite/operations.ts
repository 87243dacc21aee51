import type { Revision } from "../../model/ids.ts";
import type { ChangeRow, CheckpointRow } from "./records.ts";

/** What the store asks of the thread that has the file. Everything that goes to and fro is plain data. */
export interface Operations {
  acquire(options: AcquireOptions): Acquired;
  load(): LoadedRows;
  append(change: ChangeRow): void;
  read(from: Revision, to: Revision): ReadRows;
  checkpoint(checkpoint: CheckpointRow): void;
  /** Deletes a batch of old changes. True if there may be more to delete. */
  trim(limits: TrimLimits): boolean;
  setMaxLease(durationMs: number): void;
  endQuarantine(): void;
  release(): void;
}

export type OperationName = keyof Operations;

export interface AcquireOptions {
  readonly path: string;
  /** ms since 1970. */
  readonly now: number;
  /** For a store that is made new. */
  readonly fresh: { readonly incarnation: string; readonly stampKey: string };
}

export interface Acquired {
  readonly term: number;
  readonly incarnation: string;
  /** base64. */
  readonly stampKey: string;
  /** What was found and mended or passed over. */
  readonly warnings: readonly string[];
}

export interface LoadedRows {
  readonly checkpoint?: CheckpointRow;
  readonly changes: readonly ChangeRow[];
  readonly floor: Revision;
  readonly maxLeaseMs: number;
  readonly quarantineMs?: number;
}

/** Some of the changes that were asked for, from the first on. */
export interface ReadRows {
  readonly changes: readonly ChangeRow[];
  /** The oldest change that is kept; one past the last if none is. */
  readonly first: Revision;
}

export interface TrimLimits {
  /** Changes from before this may go; ms since 1970. */
  readonly before: number;
  /** Older ones than so many may go. */
  readonly maxChanges: number;
}

/** Carries operations out, in the order of the calls. */
export interface Executor {
  call<K extends OperationName>(name: K, ...args: Parameters<Operations[K]>): Promise<ReturnType<Operations[K]>>;
  /** Ends the thread, if it is one. Calls under way reject. */
  end(): Promise<void>;
}

/** Makes an executor. `onLost` is told once if it can do nothing more, and why; not after `end`. */
export type StartExecutor = (onLost: (reason: string) => void) => Executor;
