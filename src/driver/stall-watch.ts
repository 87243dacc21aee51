import type { Clock, Timer } from "./ports.ts";

/** Longest time between two looks at the clock. */
const MAX_TICK_MS = 1_000;
/** Looks per renew period: what is counted as a stall was one for at least this share less of the period. */
const TICKS_PER_PERIOD = 4;

/**
 * Notices that the event loop stood still. While it did, frames of executors waited in the sockets, so no time-out of
 * theirs may count before those were read (PROTOCOL §4).
 */
export class StallWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #tickMs: number;
  readonly #onStall: () => void;
  #aliveAt: number;
  #stalledMs = 0;
  #timer: Timer | undefined;

  /** A stall is what took longer than `limitMs`. `onStall` is called when an idle loop finds one. */
  constructor(clock: Clock, limitMs: number, onStall: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#tickMs = Math.max(1, Math.min(MAX_TICK_MS, Math.floor(limitMs / TICKS_PER_PERIOD)));
    this.#onStall = onStall;
    this.#aliveAt = clock.now();
  }

  start(): void {
    this.#aliveAt = this.#clock.now();
    this.#tick();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Length of the stall that was found since the last call, or that ends now; 0 if there was none. */
  take(now: number): number {
    this.#look(now);
    const stalledMs = this.#stalledMs;
    this.#stalledMs = 0;
    return stalledMs;
  }

  #tick(): void {
    this.#timer = this.#clock.setTimer(this.#tickMs, () => {
      this.#look(this.#clock.now());
      this.#tick();
      if (this.#stalledMs > 0) this.#onStall();
    });
  }

  #look(now: number): void {
    const gapMs = now - this.#aliveAt;
    this.#aliveAt = now;
    if (gapMs > this.#limitMs) this.#stalledMs = Math.max(this.#stalledMs, gapMs);
  }
}
