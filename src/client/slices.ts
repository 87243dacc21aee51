import type { ClientClock } from "./ports.ts";

/**
 * Longest that one slice calls handlers, but for the call that goes on beyond it. A frame or timer waits for no more than
 * that and what the calls leave to microtasks: far below the shortest sensible renew period, and far above what yielding costs.
 */
export const SLICE_MS = 10;

/** What is worked off first: that signals abort, then that what was asked back is given back, then the rest. */
export type Urgency = "abort" | "unload" | "load";

interface Batch {
  readonly size: number;
  /** Works on the item of that number. */
  readonly work: (index: number) => void;
  next: number;
}

/** The batches of one urgency, in the order in which they came. */
type Queue = Batch[];

/**
 * Works through long lists in slices of bounded time, so that renews, frames and questions come in between however much
 * one push has brought. What is added to an idle one begins in a microtask; each further slice is a timer's turn.
 */
export class Slices {
  readonly #clock: ClientClock;
  readonly #whenIdle: () => void;
  readonly #abort: Queue = [];
  readonly #unload: Queue = [];
  readonly #load: Queue = [];
  #isPlanned = false;

  /** `whenIdle` is called whenever the last of it has been done. */
  constructor(clock: ClientClock, whenIdle: () => void) {
    this.#clock = clock;
    this.#whenIdle = whenIdle;
  }

  /** True if nothing is left to be worked on. */
  get isIdle(): boolean {
    return this.#nextQueue() === undefined;
  }

  /** Has `work` called for each item, in their order. It must not throw; it may add more. */
  add<T>(urgency: Urgency, items: readonly T[], work: (item: T) => void): void {
    this.#queueOf(urgency).push({ size: items.length, work: (index) => work(items[index] as T), next: 0 });
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => this.#run());
  }

  /** As `add` with the highest urgency, but one slice of them is done when this returns. */
  begin<T>(items: readonly T[], work: (item: T) => void): void {
    const until = this.#clock.now() + SLICE_MS;
    let done = 0;
    for (const item of items) {
      if (done > 0 && this.#clock.now() >= until) break;
      work(item);
      done++;
    }
    if (done < items.length) this.add("abort", items.slice(done), work);
  }

  #run(): void {
    const until = this.#clock.now() + SLICE_MS;
    do {
      const queue = this.#nextQueue();
      const batch = queue?.[0];
      if (queue === undefined || batch === undefined) {
        this.#isPlanned = false;
        return this.#whenIdle();
      }
      const index = batch.next++;
      if (batch.next >= batch.size) queue.shift();
      if (index < batch.size) batch.work(index);
    } while (this.#clock.now() < until);
    this.#clock.setTimer(0, () => this.#run());
  }

  #nextQueue(): Queue | undefined {
    if (this.#abort.length > 0) return this.#abort;
    if (this.#unload.length > 0) return this.#unload;
    return this.#load.length > 0 ? this.#load : undefined;
  }

  #queueOf(urgency: Urgency): Queue {
    switch (urgency) {
      case "abort":
        return this.#abort;
      case "unload":
        return this.#unload;
      case "load":
        return this.#load;
      default:
        return urgency satisfies never;
    }
  }
}
