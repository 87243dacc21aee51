import type { Handoff } from "../model/grant.ts";
import type { Epoch, TableName } from "../model/ids.ts";
import { hasPassed, type Reading, type StopLimit } from "./lease.ts";

/**
 * How far a handle has come.
 *
 * - `waiting`: an earlier handle of the partition has neither ended nor been cut.
 * - `loading`: the owner's code is loading the partition.
 * - `loaded`, `failed`: it said so.
 * - `stopping`: told to stop; the owner's code has not said that it has.
 * - `ended`: nothing of it is left.
 */
export type HandleState = "waiting" | "loading" | "loaded" | "failed" | "stopping" | "ended";

/** One load of a partition in this process: from the push that brought it to the end of its unload. */
export interface Handle {
  readonly table: TableName;
  readonly partition: number;
  readonly key: string | undefined;
  readonly handoff: Handoff;
  /** The revision that made the table: tells lives of one name apart. */
  readonly created: number;
  /** Epoch of the grant; undefined while it is only prepared. */
  readonly granted: Epoch | undefined;
  /** Epoch of a preparation that no grant has ended. */
  readonly prepared: Epoch | undefined;
  readonly state: HandleState;
  /** True once the owner's code has loaded it: then there is something to unload, even if it failed later. */
  readonly resident: boolean;
  /** Only while stopping: it was revoked and may still be served up to its limit. */
  readonly serving: boolean;
  /** Only while stopping: its time is up, and nobody waits for it any more. */
  readonly cut: boolean;
  readonly limit: StopLimit | undefined;
  /** Monotonic: when a handle that was stopped outright is waited for no longer. */
  readonly patienceEndsAt: number | undefined;
  /** Why it could not be loaded or go on. */
  readonly failure: HandleFailure | undefined;
}

export interface HandleFailure {
  readonly reason: string;
  readonly retryable: boolean;
}

/** A handle in the hands of the holdings, which alone write to it. */
export type OpenHandle = { -readonly [Member in keyof Handle]: Handle[Member] };

/** What a handle starts from. */
export interface HandleBirth extends Pick<Handle, "table" | "partition" | "key" | "handoff" | "created"> {
  readonly granted?: Epoch;
  readonly prepared?: Epoch;
}

/** Member by member, since a push may bring hundreds of thousands. */
export function newHandle({ table, partition, key, handoff, created, granted, prepared }: HandleBirth): OpenHandle {
  return {
    table,
    partition,
    key,
    handoff,
    created,
    granted,
    prepared,
    state: "waiting",
    resident: false,
    serving: false,
    cut: false,
    limit: undefined,
    patienceEndsAt: undefined,
    failure: undefined,
  };
}

/** The epoch that the owner's code is told: that of the grant, or of the preparation until there is one. */
export function epochOf(handle: Handle): Epoch {
  return handle.granted ?? handle.prepared ?? 0;
}

/** The lowest epoch under which anything of the handle is held. */
export function lowestEpochOf(handle: Handle): Epoch {
  const { granted, prepared } = handle;
  if (granted === undefined || prepared === undefined) return epochOf(handle);
  return Math.min(granted, prepared);
}

/** True if every epoch of the handle is at most `epoch`. */
export function isCoveredBy(handle: Handle, epoch: Epoch): boolean {
  return (handle.granted ?? 0) <= epoch && (handle.prepared ?? 0) <= epoch;
}

/** Orders handles as lists on the wire are: by table, then partition. */
export function byPlace(a: Handle, b: Handle): number {
  return a.table < b.table ? -1 : a.table > b.table ? 1 : a.partition - b.partition;
}

/** True if a stopping handle is past its limit, or past the patience for one that has none. */
export function isOverdue({ limit, patienceEndsAt }: Handle, at: Reading, marginMs: number): boolean {
  if (patienceEndsAt !== undefined && at.now >= patienceEndsAt) return true;
  return limit !== undefined && hasPassed(limit, at, marginMs);
}
