/** What is to happen at a real moment; those of one moment in the order they were entered. */
interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

export interface Planned {
  cancel(): void;
}

/**
 * Rounds of microtasks after each event: promises of the code under test settle within the moment that set them off. The
 * longest chain, an append whose outcome is looked up, takes about fifteen.
 */
const SETTLING_ROUNDS = 24;

/** Most events of one moment: more is a loop that lets no time pass. */
const MAX_AT_ONCE = 20_000;

/** Real time, in ms, which no process can see, and everything that is to happen in it. */
export class Timeline {
  #now = 0;
  #order = 0;
  #atOnce = 0;
  /** A binary heap, earliest first. */
  readonly #heap: Entry[] = [];

  get now(): number {
    return this.#now;
  }

  at(time: number, run: () => void): Planned {
    const entry = { at: Math.max(time, this.#now), order: this.#order++, run, isCancelled: false };
    this.#push(entry);
    return {
      cancel: () => {
        entry.isCancelled = true;
      },
    };
  }

  after(delayMs: number, run: () => void): Planned {
    return this.at(this.#now + delayMs, run);
  }

  /** Lets time pass, event by event. */
  async advance(durationMs: number): Promise<void> {
    const until = this.#now + durationMs;
    await settle();
    for (let top = this.#heap[0]; top !== undefined && top.at <= until; top = this.#heap[0]) {
      this.#pop();
      if (top.isCancelled) continue;
      this.#atOnce = top.at > this.#now ? 0 : this.#atOnce + 1;
      if (this.#atOnce > MAX_AT_ONCE) throw new Error(`events without end at ${this.#now}`);
      this.#now = top.at;
      top.run();
      await settle();
    }
    this.#now = until;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!isBefore(entry, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Entry)) child++;
      const below = heap[child] as Entry;
      if (!isBefore(below, last)) break;
      heap[index] = below;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

async function settle(): Promise<void> {
  for (let round = 0; round < SETTLING_ROUNDS; round++) await undefined;
}
