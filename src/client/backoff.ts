import { RECONNECT_MAX_MS, RECONNECT_MIN_MS } from "../protocol/limits.ts";
import type { ClientRandom } from "./ports.ts";

/** Exponential backoff with full jitter: each wait is anything from 0 to a ceiling that doubles. */
export class Backoff {
  readonly #random: ClientRandom;
  #failures = 0;

  constructor(random: ClientRandom) {
    this.#random = random;
  }

  /** The next wait in ms, at most `capMs`. */
  nextMs(capMs = RECONNECT_MAX_MS): number {
    const ceiling = Math.min(RECONNECT_MIN_MS * 2 ** this.#failures, RECONNECT_MAX_MS, capMs);
    this.#failures++;
    return this.#random.next() * ceiling;
  }

  reset(): void {
    this.#failures = 0;
  }
}
