/** PROTOCOL §11: exponential backoff with full jitter, from 100 ms to 10 s. */

const FIRST_MS = 100;
const LONGEST_MS = 10_000;

export class Backoff {
  #failures = 0;

  nextMs(capMs = LONGEST_MS): number {
    const ceiling = Math.min(FIRST_MS * 2 ** this.#failures++, LONGEST_MS, capMs);
    return Math.random() * ceiling;
  }

  reset(): void {
    this.#failures = 0;
  }
}
