import { assert } from "./errors.ts";

/**
 * A set of partition numbers, immutable, kept as ascending disjoint ranges that never touch.
 *
 * The text form `"0-15,20,31-40"` is canonical: equal sets are equal strings, so text can be compared and hashed.
 * `toJSON` gives that text, so a set may stand anywhere in an object that is going to the wire or to the store.
 */

/** Most partitions of a table: 2^20. A set that names a higher number is refused. */
export const MAX_PARTITIONS = 1_048_576;

/** A text that is not a canonical partition set. `at` is the character where it went wrong, from 0. */
export class PartitionSetError extends Error {
  override readonly name = "PartitionSetError";
  constructor(
    readonly problem: string,
    readonly at: number,
  ) {
    super(`not a partition set: ${problem} at character ${at}; write ascending, merged ranges such as "0-15,20"`);
  }
}

export class PartitionSet {
  static readonly empty = new PartitionSet(new Uint32Array(0));

  /** Flat pairs: lowest and highest number of each range, both inclusive. */
  readonly #bounds: Uint32Array;
  #size = -1;
  #text: string | undefined;

  private constructor(bounds: Uint32Array) {
    this.#bounds = bounds;
  }

  /** Reads the canonical text form. Throws PartitionSetError, also for a set that is written in another than its canonical way. */
  static parse(text: string): PartitionSet {
    if (text === "") return PartitionSet.empty;
    const set = new PartitionSet(scan(text));
    set.#text = text;
    return set;
  }

  /** The numbers `low` to `high`, both inclusive; empty if `high < low`. */
  static range(low: number, high: number): PartitionSet {
    if (high < low) return PartitionSet.empty;
    assertRange(low, high);
    return new PartitionSet(Uint32Array.of(low, high));
  }

  /** The numbers 0 to `count - 1`. */
  static upTo(count: number): PartitionSet {
    return PartitionSet.range(0, count - 1);
  }

  /** The set of the given numbers, in any order, repeated or not. */
  static of(numbers: Iterable<number>): PartitionSet {
    // Not a Uint32Array: that would turn a number that is no partition into one that is.
    const sorted = Float64Array.from(numbers).sort();
    const builder = new PartitionSetBuilder();
    for (const partition of sorted) builder.add(partition);
    return builder.build();
  }

  /** Wraps bounds that are canonical already. Only the operations of this file call it. */
  static fromBounds(bounds: Uint32Array): PartitionSet {
    return bounds.length === 0 ? PartitionSet.empty : new PartitionSet(bounds);
  }

  get isEmpty(): boolean {
    return this.#bounds.length === 0;
  }

  /** How many partitions the set has. */
  get size(): number {
    if (this.#size < 0) {
      let size = 0;
      for (const [low, high] of this.ranges()) size += high - low + 1;
      this.#size = size;
    }
    return this.#size;
  }

  /** The lowest number; undefined in an empty set. */
  get first(): number | undefined {
    return this.#bounds[0];
  }

  /** The highest number; undefined in an empty set. */
  get last(): number | undefined {
    return this.#bounds.at(-1);
  }

  get rangeCount(): number {
    return this.#bounds.length / 2;
  }

  /** Binary search: O(log ranges). */
  has(partition: number): boolean {
    const bounds = this.#bounds;
    let from = 0;
    let to = bounds.length / 2;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((bounds[2 * middle + 1] as number) < partition) from = middle + 1;
      else to = middle;
    }
    return from < bounds.length / 2 && (bounds[2 * from] as number) <= partition;
  }

  union(other: PartitionSet): PartitionSet {
    if (other.isEmpty) return this;
    if (this.isEmpty) return other;
    return combine(this.#bounds, other.#bounds, (a, b) => a || b);
  }

  intersect(other: PartitionSet): PartitionSet {
    if (this.isEmpty || other.isEmpty) return PartitionSet.empty;
    return combine(this.#bounds, other.#bounds, (a, b) => a && b);
  }

  difference(other: PartitionSet): PartitionSet {
    if (this.isEmpty || other.isEmpty) return this;
    return combine(this.#bounds, other.#bounds, (a, b) => a && !b);
  }

  equals(other: PartitionSet): boolean {
    if (this === other) return true;
    const [a, b] = [this.#bounds, other.#bounds];
    return a.length === b.length && a.every((bound, index) => bound === b[index]);
  }

  /** Each range as [lowest, highest], ascending. */
  *ranges(): IterableIterator<readonly [number, number]> {
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i += 2) yield [bounds[i] as number, bounds[i + 1] as number];
  }

  /** Writes `value` at every number of the set that the column has. */
  fill(column: Int32Array, value: number): void {
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i += 2) column.fill(value, bounds[i], (bounds[i + 1] as number) + 1);
  }

  *[Symbol.iterator](): IterableIterator<number> {
    for (const [low, high] of this.ranges()) for (let p = low; p <= high; p++) yield p;
  }

  toString(): string {
    this.#text ??= Array.from(this.ranges(), ([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(",");
    return this.#text;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** Builds a set from numbers that come in ascending order; ones that are in it already change nothing. */
export class PartitionSetBuilder {
  readonly #bounds: number[] = [];

  add(partition: number): this {
    return this.addRange(partition, partition);
  }

  /** Adds `low` to `high`, nothing if `high < low`; `low` must not be below the start of the last range so far. */
  addRange(low: number, high: number): this {
    if (high < low) return this;
    assertRange(low, high);
    const bounds = this.#bounds;
    const last = bounds.length - 1;
    const end = bounds[last];
    assert(
      end === undefined || low >= (bounds[last - 1] as number),
      "numbers of a partition set come in descending order",
    );
    if (end === undefined || low > end + 1) bounds.push(low, high);
    else if (high > end) bounds[last] = high;
    return this;
  }

  build(): PartitionSet {
    return PartitionSet.fromBounds(Uint32Array.from(this.#bounds));
  }
}

/** Such numbers come from this program, never from a peer: text is checked as it is read. */
function assertRange(low: number, high: number): void {
  assert(
    Number.isInteger(low) && Number.isInteger(high) && low >= 0 && high < MAX_PARTITIONS,
    "a number in a partition set is not an integer from 0 to 1,048,575",
  );
}

/** Sweeps over both lists of bounds at once; `keep` decides from membership in each. O(ranges of both). */
function combine(a: Uint32Array, b: Uint32Array, keep: (inA: boolean, inB: boolean) => boolean): PartitionSet {
  const out: number[] = [];
  let i = 0;
  let j = 0;
  let inside = false;
  while (i < a.length || j < b.length) {
    // A position at which membership may change: a range's start, or the number after its end.
    const edge = Math.min(edgeAt(a, i), edgeAt(b, j));
    while (i < a.length && edgeAt(a, i) === edge) i++;
    while (j < b.length && edgeAt(b, j) === edge) j++;
    const next = keep((i & 1) === 1, (j & 1) === 1);
    if (next !== inside) out.push(next ? edge : edge - 1);
    inside = next;
  }
  return PartitionSet.fromBounds(Uint32Array.from(out));
}

function edgeAt(bounds: Uint32Array, index: number): number {
  const bound = bounds[index];
  return bound === undefined ? Number.POSITIVE_INFINITY : bound + (index & 1);
}

const ZERO = 48;
const DASH = 45;
const COMMA = 44;

/** One pass over the characters; refuses signs, spaces, leading zeros, touching or descending ranges, numbers past the limit. */
function scan(text: string): Uint32Array {
  let bounds = new Uint32Array(16);
  let used = 0;
  let at = 0;
  while (true) {
    const start = at;
    const low = scanNumber(text, at);
    at += digits(low);
    let high = low;
    if (text.charCodeAt(at) === DASH) {
      high = scanNumber(text, at + 1);
      if (high <= low) throw new PartitionSetError("a range that does not rise", start);
      at += 1 + digits(high);
    }
    if (used > 0 && low <= (bounds[used - 1] as number) + 1) {
      throw new PartitionSetError("ranges that are not ascending, disjoint and merged", start);
    }
    if (used === bounds.length) {
      const grown = new Uint32Array(used * 2);
      grown.set(bounds);
      bounds = grown;
    }
    bounds[used++] = low;
    bounds[used++] = high;
    if (at === text.length) return bounds.slice(0, used);
    if (text.charCodeAt(at) !== COMMA) throw new PartitionSetError("an unexpected character", at);
    at++;
  }
}

function scanNumber(text: string, from: number): number {
  let value = 0;
  let at = from;
  for (; at < text.length; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
    if (value >= MAX_PARTITIONS) throw new PartitionSetError(`a number above ${MAX_PARTITIONS - 1}`, from);
  }
  if (at === from) throw new PartitionSetError("a number is missing", from);
  if (text.charCodeAt(from) === ZERO && at > from + 1) throw new PartitionSetError("a leading zero", from);
  return value;
}

function digits(value: number): number {
  let count = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) count++;
  return count;
}
