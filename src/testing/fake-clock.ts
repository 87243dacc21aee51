import type { Clock, Timer } from "../driver/ports.ts";

/** Wall time at which a fake clock starts: 2026-01-01T00:00:00Z. Any fixed time would do. */
const WALL_START_MS = 1_767_225_600_000;

/** Longest delay of the clock port, as in Node: 2^31 − 1 ms. */
const MAX_DELAY_MS = 2_147_483_647;

/** Most timers that one `advance` fires: one that re-arms itself with delay 0 is reported instead of hanging the test. */
const MAX_FIRED = 1_000_000;

interface Pending {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to move. It has the shape of the driver's clock port and of the client's.
 *
 * Timers fire in the order of their due times, those due at once in the order they were set, and each sees `now()` at its
 * own due time. Time starts at 0.
 */
export class FakeClock implements Clock {
  #now = 0;
  #wallOffset = WALL_START_MS;
  #order = 0;
  readonly #pending = new Set<Pending>();

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now + this.#wallOffset;
  }

  /** Throws RangeError for a delay that Node's timers would not keep. */
  setTimer(delayMs: number, callback: () => void): Timer {
    if (!(delayMs >= 0 && delayMs <= MAX_DELAY_MS)) throw new RangeError(`not a timer's delay: ${delayMs}`);
    const pending: Pending = { due: this.#now + delayMs, order: this.#order++, callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Lets `ms` pass, monotonic and wall alike, and fires what becomes due, timers set meanwhile included. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let fired = 0; this.#fireNext(until); fired++) {
      if (fired === MAX_FIRED)
        throw new Error(`more than ${MAX_FIRED} timers within ${ms} ms: does one re-arm itself?`);
    }
    // A callback may have stalled the clock beyond.
    this.#now = Math.max(this.#now, until);
  }

  /** As `advance`, but lets promises settle before the first timer, between timers and at the end. */
  async advanceAsync(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    for (let fired = 0; this.#fireNext(until); fired++) {
      if (fired === MAX_FIRED)
        throw new Error(`more than ${MAX_FIRED} timers within ${ms} ms: does one re-arm itself?`);
      await settle();
    }
    // A callback may have stalled the clock beyond.
    this.#now = Math.max(this.#now, until);
    await settle();
  }

  /** Lets `ms` pass while the event loop is blocked or the process stopped: no timer fires until the next `advance`. */
  stall(ms: number): void {
    this.#now += ms;
  }

  /** Sets wall time forward (or back, if negative) while monotonic time stands: a suspend, or someone setting the clock. */
  jumpWall(ms: number): void {
    this.#wallOffset += ms;
  }

  /** How many timers are set and have not fired. */
  get pendingTimers(): number {
    return this.#pending.size;
  }

  /** Time of the next timer; undefined if there is none. */
  get nextDue(): number | undefined {
    return this.#next()?.due;
  }

  #fireNext(until: number): boolean {
    const next = this.#next();
    if (next === undefined || next.due > until) return false;
    this.#pending.delete(next);
    // A timer that a stall delayed fires late, never in the past.
    this.#now = Math.max(this.#now, next.due);
    next.callback();
    return true;
  }

  #next(): Pending | undefined {
    let first: Pending | undefined;
    for (const timer of this.#pending) {
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** Waits until every promise that can settle without I/O or timers has done so. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
