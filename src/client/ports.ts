import type { Handle } from "./handle.ts";

/** The seams of the connection: time, chance and sockets come in through these, so that a simulation can run the same code. */

/** Time. `now` is monotonic ms with an arbitrary zero, `wall` ms since 1970; the lease rule compares the two. */
export interface ClientClock {
  now(): number;
  wall(): number;
  /** Calls back once, not before `delayMs` (0 to 2^31−1) have passed. */
  setTimer(delayMs: number, callback: () => void): ClientTimer;
}

export interface ClientTimer {
  cancel(): void;
}

/** Chance. */
export interface ClientRandom {
  /** In [0, 1). */
  next(): number;
}

/**
 * Opens a WebSocket with the protocol's subprotocol. Never throws, and calls no handler before it has returned. After
 * `ended` it calls none.
 */
export type Dial = (url: string, handlers: SocketHandlers) => ClientSocket;

export interface SocketHandlers {
  /** The upgrade is done; frames may be sent. */
  opened(): void;
  received(text: string): void;
  ended(end: SocketEnd): void;
}

export interface ClientSocket {
  /** Sends a text frame; does nothing on a socket that is not open. */
  send(text: string): void;
  /** Closes, within a bounded time, whatever the peer does. Also ends a socket that is still being opened. */
  close(code: number, reason: string): void;
}

/** How a socket ended. */
export type SocketEnd =
  /** By a close frame, or without one: code 1006. */
  | { readonly kind: "closed"; readonly code: number; readonly reason: string }
  /** The upgrade was answered with this HTTP status. */
  | { readonly kind: "refused"; readonly status: number; readonly detail: string; readonly retryAfterMs?: number }
  /** No connection came about. */
  | { readonly kind: "failed"; readonly detail: string };

export type ClientLogLevel = "debug" | "info" | "warn" | "error";

/** Where log lines go. `event` is a stable name, `fields` plain data. */
export interface ClientLog {
  log(level: ClientLogLevel, event: string, fields: Readonly<Record<string, unknown>>): void;
}

/** What a connection needs of the world. */
export interface ConnectionPorts {
  readonly clock: ClientClock;
  readonly random: ClientRandom;
  readonly dial: Dial;
  readonly log: ClientLog;
}

/**
 * Why a handle is stopped. `revoked`: may be served until its limit; all others: not served from this moment on.
 *
 * - `dropped`: the scheduler's whole picture does not have it, or has it under a new epoch.
 * - `lapsed`: the lease ran out by this process's own clock.
 * - `ended`: the scheduler counts the lease as ended (4410).
 * - `incarnation`: the scheduler has another store.
 * - `replaced`: a newer instance of this executor took its place (4409).
 * - `refused`: the scheduler refuses this executor.
 * - `closed`: the owner closed the connection, or has left.
 */
export type StopReason = "revoked" | "dropped" | "lapsed" | "ended" | "incarnation" | "replaced" | "refused" | "closed";

/** How long a lease holds, for owners who guard it in another process. */
export interface LeaseNotice {
  /** Until it counts as lapsed, the margin taken off already. */
  readonly leftMs: number;
  /** How often it is renewed. */
  readonly renewMs: number;
  /** By so much wall time may run ahead of monotonic time before the lease counts as lapsed. */
  readonly marginMs: number;
}

/** Carries out what the connection decides. Called synchronously; must not throw, and works on handles in later turns. */
export interface ConnectionOwner {
  /** Unload these; `connection.unloaded` when done. Every signal is aborted before any of them is unloaded. */
  stop(handles: readonly Handle[], reason: StopReason): void;
  /** These are out of time and not waited for any more. */
  cut(handles: readonly Handle[]): void;
  /** Load these; `connection.loaded` or `connection.failed` when done. */
  start(handles: readonly Handle[]): void;
  /** Something that `connection.status` tells has changed. */
  changed(): void;
  /** An answer came, and with it the lease holds as told from now. */
  leased(notice: LeaseNotice): void;
  /** The connection is over for good; nothing is served any more. Called once. */
  finished(closing: Closing): void;
}

/** How the connection ended for good. */
export type Closing =
  | { readonly kind: "left" }
  | { readonly kind: "closed" }
  /** It was to leave for a restart, and its lease ran out, or there was none, before the scheduler had answered. */
  | { readonly kind: "lapsed" }
  | { readonly kind: "replaced"; readonly detail: string }
  | { readonly kind: "unauthenticated"; readonly detail: string }
  | { readonly kind: "refused"; readonly code: number; readonly detail: string };
