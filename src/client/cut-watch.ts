import type { Handle } from "./handle.ts";
import { type Reading, sleptSince } from "./lease.ts";

/**
 * Tells when any of the watched handles may be overdue, so that all of them need not be looked at whenever something wakes.
 * It may tell too early, and does so of handles that have ended since, but never too late: it has the earliest of each bound.
 */
export class CutWatch {
  #at = Number.POSITIVE_INFINITY;
  #wallAt = Number.POSITIVE_INFINITY;
  /** Where a limit began from which most sleep counts: wall time was least ahead of monotonic time there. */
  #from: Reading | undefined;

  /** Monotonic time before which nothing is overdue, unless the machine sleeps; Infinity if nothing is watched. */
  get at(): number {
    return this.#at;
  }

  clear(): void {
    this.#at = Number.POSITIVE_INFINITY;
    this.#wallAt = Number.POSITIVE_INFINITY;
    this.#from = undefined;
  }

  /** To be called again when its limit or patience was set anew. */
  add({ limit, patienceEndsAt }: Handle): void {
    if (patienceEndsAt !== undefined) this.#at = Math.min(this.#at, patienceEndsAt);
    if (limit === undefined) return;
    const { appliedAt, deadlineMs } = limit;
    this.#at = Math.min(this.#at, deadlineMs);
    this.#wallAt = Math.min(this.#wallAt, appliedAt.wall + deadlineMs - appliedAt.now);
    if (this.#from === undefined || sleptSince(appliedAt, this.#from, 0)) this.#from = appliedAt;
  }

  /** False if nothing watched can be overdue at this moment. */
  mayBeDue(at: Reading, marginMs: number): boolean {
    if (at.now >= this.#at || at.wall >= this.#wallAt) return true;
    return this.#from !== undefined && sleptSince(this.#from, at, marginMs);
  }
}
