import { MAX_MESSAGE_BURST, MAX_MESSAGES_PER_SECOND } from "../protocol/limits.ts";

/** Counts what one session sends: a burst may be spent at once, and comes back by so many a second. */
export class RateLimit {
  #left = MAX_MESSAGE_BURST;
  #countedAt: number;

  constructor(now: number) {
    this.#countedAt = now;
  }

  /** False if this message is one too many. */
  take(now: number): boolean {
    const regained = ((now - this.#countedAt) * MAX_MESSAGES_PER_SECOND) / 1_000;
    this.#left = Math.min(MAX_MESSAGE_BURST, this.#left + regained);
    this.#countedAt = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
