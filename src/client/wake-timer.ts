import type { ClientClock, ClientTimer } from "./ports.ts";

/** Longest delay a timer keeps: 2^31 − 1 ms. What is due later wakes early, and early wake-ups are harmless. */
const MAX_DELAY_MS = 2_147_483_647;

/** One timer for everything that is due: it wakes at the earliest time it was given since it last woke, or earlier. */
export class WakeTimer {
  readonly #clock: ClientClock;
  readonly #wake: () => void;
  #timer: ClientTimer | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(clock: ClientClock, wake: () => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Sees to it that it wakes at `at` or before. Infinity: needs no waking. */
  by(at: number): void {
    if (at >= this.#at) return;
    this.cancel();
    this.#at = at;
    const delay = Math.ceil(Math.min(Math.max(0, at - this.#clock.now()), MAX_DELAY_MS));
    this.#timer = this.#clock.setTimer(delay, () => {
      this.#timer = undefined;
      this.#at = Number.POSITIVE_INFINITY;
      this.#wake();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
  }
}
