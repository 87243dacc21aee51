/**
 * Points in time at which the core must look again, each under a key. A binary heap with lazy removal: moving a deadline
 * further away, as each renewal does, costs one map write.
 *
 * A deadline that comes early or late is harmless: whoever handles it looks at the state and arms it again if need be.
 */
export class Deadlines {
  readonly #due = new Map<string, number>();
  readonly #heap: Entry[] = [];

  /** Arms or moves a deadline. Infinity clears it. */
  set(key: string, at: number): void {
    if (at === Number.POSITIVE_INFINITY) {
      this.clear(key);
      return;
    }
    const before = this.#due.get(key);
    this.#due.set(key, at);
    // Its entry in the heap is no later than it must be: it is put back when it surfaces.
    if (before === undefined || at < before) this.#push({ key, at });
  }

  clear(key: string): void {
    this.#due.delete(key);
  }

  /** Takes out what is due at `now`, ordered by time, then key. */
  take(now: number): string[] {
    const due: Entry[] = [];
    for (let top = this.#settle(); top !== undefined && top.at <= now; top = this.#settle()) {
      this.#pop();
      this.#due.delete(top.key);
      due.push(top);
    }
    return due.map((entry) => entry.key);
  }

  /** The earliest deadline; Infinity if there is none. */
  next(): number {
    return this.#settle()?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Drops what was cleared from the top of the heap and puts back what was moved. */
  #settle(): Entry | undefined {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      const at = this.#due.get(top.key);
      if (at === top.at) return top;
      this.#pop();
      if (at !== undefined && at > top.at) this.#push({ key: top.key, at });
    }
    return undefined;
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

interface Entry {
  readonly key: string;
  readonly at: number;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.key < b.key);
}
