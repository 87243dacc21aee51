/** Both clocks, read at one moment. `now` is monotonic ms with an arbitrary zero, `wall` ms since 1970. */
export interface Reading {
  readonly now: number;
  readonly wall: number;
}

/**
 * True if wall time has advanced more than `marginMs` beyond monotonic time since `from`.
 *
 * The monotonic clock of a suspended machine stands still while leases run out elsewhere; wall time shows it. It is
 * compared with one fixed moment, not with the last look, so that many short suspends add up. A wall clock set back proves nothing.
 */
export function sleptSince(from: Reading, at: Reading, marginMs: number): boolean {
  return at.wall - from.wall - (at.now - from.now) > marginMs;
}

/** A time-bounded right to serve. Immutable; judged by the clock at each use, never by a timer. */
export interface Lease {
  /** When what the deadline rests on was sent. */
  readonly sentAt: Reading;
  /** Monotonic. */
  readonly deadlineMs: number;
  /** σ: the lease counts as lapsed this long before its deadline. */
  readonly marginMs: number;
}

/**
 * The lease after an answer that is good for `durationMs` from when the question was sent. An answer never shortens what
 * an earlier one gave, and then the earlier one's `sentAt` stays the one that counts.
 */
export function extendLease(lease: Lease | undefined, sentAt: Reading, durationMs: number, marginMs: number): Lease {
  const deadlineMs = sentAt.now + durationMs;
  if (lease !== undefined && lease.deadlineMs >= deadlineMs) return { ...lease, marginMs };
  return { sentAt, deadlineMs, marginMs };
}

/** The monotonic moment from which on the lease counts as lapsed. */
export function lapseAt(lease: Lease): number {
  return lease.deadlineMs - lease.marginMs;
}

export function hasLapsed(lease: Lease, at: Reading): boolean {
  return at.now >= lapseAt(lease) || sleptSince(lease.sentAt, at, lease.marginMs);
}

/** Until when a revoked partition may be served at most. */
export interface StopLimit {
  /** When the first push that named the epoch was applied. */
  readonly appliedAt: Reading;
  /** Monotonic: the earliest of applied-at + `stopMs` over all of those pushes. */
  readonly deadlineMs: number;
}

/** The limit after a push that names the epoch, be it again: a repeat may bring it nearer, never further away. */
export function tightenLimit(limit: StopLimit | undefined, appliedAt: Reading, stopMs: number): StopLimit {
  const deadlineMs = appliedAt.now + stopMs;
  if (limit === undefined) return { appliedAt, deadlineMs };
  return { appliedAt: limit.appliedAt, deadlineMs: Math.min(limit.deadlineMs, deadlineMs) };
}

/**
 * True once monotonic or wall time, whichever ran faster, has used the limit up. The scheduler counts `stopMs` with its own
 * margin, which covers no sleep of this machine: what the lease's margin forgives would be served too long here.
 */
export function hasPassed({ appliedAt, deadlineMs }: StopLimit, at: Reading, marginMs: number): boolean {
  const wallMs = at.wall - appliedAt.wall;
  return at.now >= deadlineMs || wallMs >= deadlineMs - appliedAt.now || sleptSince(appliedAt, at, marginMs);
}
