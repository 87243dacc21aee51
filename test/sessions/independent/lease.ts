/** PROTOCOL §5: the lease, by the client's own clocks. */

/** Both clocks at one moment, in ms. */
export interface Moment {
  readonly mono: number;
  readonly wall: number;
}

export function readMoment(): Moment {
  return { mono: performance.now(), wall: Date.now() };
}

/** A point of monotonic time that also counts as reached when wall time has run more than a margin ahead since `since`. */
export interface Deadline {
  readonly at: number;
  readonly since: Moment;
}

export function hasRunAhead(since: Moment, now: Moment, marginMs: number): boolean {
  return now.wall - since.wall - (now.mono - since.mono) > marginMs;
}

/** Whether a revoked partition's time is up. */
export function hasPassed({ at, since }: Deadline, now: Moment, marginMs: number): boolean {
  return now.mono >= at || hasRunAhead(since, now, marginMs);
}

export class Lease {
  #deadline: Deadline | undefined;
  /** σ: kept when the lease goes, since stop limits are judged by it, too. */
  marginMs = 0;

  get isHeld(): boolean {
    return this.#deadline !== undefined;
  }

  /** Monotonic time of the lapse; Infinity without a lease. */
  get lapsesAt(): number {
    return this.#deadline === undefined ? Number.POSITIVE_INFINITY : this.#deadline.at - this.marginMs;
  }

  /** An answer came to what was sent at `sentAt`. */
  extend(sentAt: Moment, durationMs: number): void {
    const at = sentAt.mono + durationMs;
    if (this.#deadline === undefined || at > this.#deadline.at) this.#deadline = { at, since: sentAt };
  }

  drop(): void {
    this.#deadline = undefined;
  }

  hasLapsed(now: Moment): boolean {
    if (this.#deadline === undefined) return false;
    return now.mono >= this.lapsesAt || hasRunAhead(this.#deadline.since, now, this.marginMs);
  }
}
