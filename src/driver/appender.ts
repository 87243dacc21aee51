import type { Change } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import { type Clock, type LogPort, type Reign, type Store, StoreError, type Timer } from "./ports.ts";

/** Wait before the second look into a store that could not be read, doubled with each, and the longest. */
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/** How an append ended. `unknownMs`: for how long nobody could say; 0 if the store said so itself. */
export type Outcome =
  | { readonly type: "committed"; readonly change: Change; readonly unknownMs: number }
  | { readonly type: "failed"; readonly change: Change; readonly error: string; readonly unknownMs: number }
  /** Somebody else may write now, or the store is broken: nothing of this reign counts any more. */
  | { readonly type: "deposed"; readonly error: Error };

export interface AppenderOptions {
  readonly clock: Clock;
  readonly store: Store;
  readonly reign: Reign;
  readonly log: LogPort;
  readonly onSettled: (outcome: Outcome) => void;
}

/**
 * Carries appends out, one at a time, and finds out what became of one whose call failed without saying: it reads the store
 * until that answers. Meanwhile `isUnknown` is true, and nothing may be sent to anybody.
 */
export class Appender {
  readonly #options: AppenderOptions;
  #unknownSince: number | undefined;
  #retry: Timer | undefined;
  #isBusy = false;
  #isClosed = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  get isUnknown(): boolean {
    return this.#unknownSince !== undefined;
  }

  append(change: Change): void {
    assert(!this.#isBusy, `revision ${change.revision} is to be appended while another append is under way`);
    this.#isBusy = true;
    void this.#append(change).then((outcome) => {
      this.#isBusy = false;
      this.#unknownSince = undefined;
      if (!this.#isClosed) this.#options.onSettled(outcome);
    });
  }

  /** Stops looking; no outcome is reported after this. */
  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
  }

  async #append(change: Change): Promise<Outcome> {
    const { store, reign, clock, log } = this.#options;
    try {
      await store.append(reign, change);
      return { type: "committed", change, unknownMs: 0 };
    } catch (error) {
      if (error instanceof StoreError && error.code === "not-written") {
        return { type: "failed", change, error: error.message, unknownMs: 0 };
      }
      if (error instanceof StoreError) return { type: "deposed", error };
      const since = clock.now();
      this.#unknownSince = since;
      log.log("error", "store.failed", { revision: change.revision, outcome: "unknown", error: messageOf(error) });
      const found = await this.#find(change);
      const unknownMs = clock.now() - since;
      if (found === undefined) return { type: "failed", change, error: messageOf(error), unknownMs };
      if (found.term === reign.term) return { type: "committed", change, unknownMs };
      return { type: "deposed", error: new Error(`revision ${change.revision} was written by term ${found.term}`) };
    }
  }

  /** The change that the store has at this revision, undefined if it has none. Resolves only when the store has said so. */
  async #find({ revision }: Change): Promise<Change | undefined> {
    const { store, log } = this.#options;
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS)) {
      try {
        for await (const change of store.read(revision, revision)) return change;
        return undefined;
      } catch (error) {
        log.log("warn", "store.failed", { revision, outcome: "unknown", error: messageOf(error), retryMs });
        await this.#pause(retryMs);
      }
    }
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#isClosed) this.#retry = this.#options.clock.setTimer(delayMs, resolve);
    });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
