import type { LogLevel, SessionEffect } from "../core/effects.ts";
import type { Event, StampProof } from "../core/events.ts";
import type { Change, TableOrigin, TableRecord, TableSpec } from "../model/change.ts";
import type { EvenkeelError } from "../model/errors.ts";
import type { Revision, TableName } from "../model/ids.ts";
import type { Status } from "../model/status.ts";

/**
 * The seams of the scheduler: everything that is not a pure function of its input goes through one of these. Production
 * has one adapter of each, tests another; nothing else may differ between the two.
 */

export type { LogLevel, Push, Refused, SessionEffect, Welcome } from "../core/effects.ts";
export type { Event, HelloReceived, ReportReceived, StampProof } from "../core/events.ts";
export type { ExecutorStatus, Status, TableStatus } from "../model/status.ts";

/** Time. `now` is monotonic ms with an arbitrary zero; every decision rests on it. `wall` is ms since 1970, for display only. */
export interface Clock {
  now(): number;
  wall(): number;
  /** Calls back once, not before `delayMs` (0 to 2^31−1) have passed. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Chance. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A fresh id, unique for ever, valid as an id of the model. */
  id(): string;
}

/**
 * The durable, ordered log of changes. One suite (src/testing) is passed by every adapter.
 *
 * - `acquire` waits until this process may write and gives a reign whose term is above every earlier one.
 * - `append` resolves when the change is durable. It refuses (StoreError `stale-reign`, `gap`) a reign that is over and a
 *   revision that is not the next. StoreError `not-written` says that the change did not land and never will, `broken` that
 *   the store can no longer be trusted; any other rejection leaves the outcome unknown.
 */
export interface Store {
  acquire(): Promise<Reign>;
  /** The newest checkpoint, if any, and every change after it. */
  load(reign: Reign): Promise<Loaded>;
  append(reign: Reign, change: Change): Promise<void>;
  /** Changes `from` to `to`, both inclusive, as far as they are kept. */
  read(from: Revision, to: Revision): AsyncIterable<Change>;
  /** Every change from `from` on, also those yet to come, until `signal` aborts. */
  follow(from: Revision, signal: AbortSignal): AsyncIterable<Change>;
  /** Keeps a fold of everything up to `checkpoint.revision`; a later load starts there. */
  checkpoint(reign: Reign, checkpoint: Checkpoint): Promise<void>;
  /** Makes the largest lease ever issued durable, before the first of that length is handed out, or when longer ones have run out. */
  setMaxLease(reign: Reign, durationMs: number): Promise<void>;
  /** The leases of before a restore have run out: the next start need not wait for them. */
  endQuarantine(reign: Reign): Promise<void>;
  /** Gives the right to write up. Idempotent. */
  release(reign: Reign): Promise<void>;
}

/** A time in which one scheduler, and no other, may write. */
export interface Reign {
  readonly term: number;
  readonly incarnation: string;
  /** Key of the stamps; lives in the store. */
  readonly stampKey: Uint8Array;
  /** Resolves with the reason when the reign is over; never for a store that is never lost. */
  readonly lost: Promise<string>;
}

export interface Loaded {
  readonly checkpoint?: Checkpoint;
  readonly changes: readonly Change[];
  /** Revision that the ledger starts after when it has neither checkpoint nor changes. */
  readonly floor: Revision;
  /** The largest lease ever issued on this store, in ms; 0 if none. */
  readonly maxLeaseMs: number;
  /** After a restore: the largest lease of the lost original, in ms. Nothing is granted until one of that length has run out. */
  readonly quarantineMs?: number;
}

/** A ledger at one revision, in a form that only the ledger reads. Plain JSON data, sets in their text form. */
export interface Checkpoint {
  readonly revision: Revision;
  readonly state: unknown;
}

export class StoreError extends Error {
  override readonly name = "StoreError";
  constructor(
    readonly code: "stale-reign" | "gap" | "not-written" | "broken",
    message: string,
  ) {
    super(message);
  }
}

/** What the gateway needs of the scheduler. */
export interface SessionHost {
  /** Events of sessions, in the order of their frames. Handled in a later turn, never inside this call. */
  post(event: Event): void;
  /** Takes the adapter that carries session effects out. Called once, before the first event. */
  attachSessions(port: SessionPort): void;
  /** True while hellos are taken. */
  ready(): boolean;
}

/** Carries out session effects. Must not throw; an effect for a session that is gone is dropped. */
export interface SessionPort {
  deliver(effect: SessionEffect): void;
}

/** What HTTP needs of the scheduler. */
export interface SchedulerApi {
  status(): Status;
  tables(): readonly TableRecord[];
  ready(): boolean;
  revision(): Revision;
  /** Resolves when the table is committed as asked, or at once when it is so already. Throws EvenkeelError. */
  putTable(
    spec: TableSpec,
    origin: TableOrigin,
    ifRevision?: Revision,
  ): Promise<{ readonly table: TableRecord; readonly revision: Revision }>;
  /** Resolves when the deletion is committed. Throws EvenkeelError. */
  deleteTable(table: TableName, ifRevision?: Revision): Promise<{ readonly revision: Revision }>;
}

/** Decides who may come in, before anything else of a request is looked at. */
export interface Access {
  /** Undefined if the request may go on, else why not: `unauthenticated`, `forbidden`, or `invalid` for a token in the URL. */
  refuse(request: AccessRequest): EvenkeelError | undefined;
}

/** What access is decided by: headers and the query of the URL (without `?`), as they came. */
export interface AccessRequest {
  readonly query: string;
  readonly origin?: string | undefined;
  readonly host?: string | undefined;
}

/** Where log lines go. `fields` may hold partition sets; the adapter shortens long ones. */
export interface LogPort {
  log(level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Makes and checks the stamps of PROTOCOL §4. */
export interface Stamps {
  mint(revision: Revision): string;
  /** What a stamp proves; undefined if it was not made with this store's key in this incarnation. */
  verify(stamp: string): StampProof | undefined;
}
