import { assert } from "../model/errors.ts";
import type { Clock, Timer } from "./ports.ts";
import { MAX_DELAY_MS } from "./real-clock.ts";

/** As in Node. A core that asks for a time in the past is turned again, but the sockets get their turn too. */
const MIN_DELAY_MS = 1;

/**
 * The one timer of the core. It fires at or before the time asked for: an early turn is harmless, and a timer that is not
 * set anew when its time moves on cannot be kept from firing by those who keep moving it.
 */
export class WakeTimer {
  readonly #clock: Clock;
  readonly #onWake: () => void;
  #armed: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, onWake: () => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /** Wakes at `wakeAt`, or before; Infinity: not at all. */
  arm(wakeAt: number, now: number): void {
    assert(!Number.isNaN(wakeAt), "a wake-up time that is not a number");
    if (this.#armed !== undefined && this.#armed.at <= wakeAt && wakeAt !== Number.POSITIVE_INFINITY) return;
    this.cancel();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(Math.max(MIN_DELAY_MS, wakeAt - now), MAX_DELAY_MS);
    const timer = this.#clock.setTimer(delayMs, () => {
      this.#armed = undefined;
      this.#onWake();
    });
    this.#armed = { at: now + delayMs, timer };
  }

  cancel(): void {
    this.#armed?.timer.cancel();
    this.#armed = undefined;
  }
}
