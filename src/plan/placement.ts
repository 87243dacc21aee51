import { exchangeLeftovers, mayOwn } from "./exclusions.ts";
import { type PlanTable, UNOWNED } from "./types.ts";

/**
 * Which partitions of one table change hands, once it is known how many each executor is to have more or fewer.
 *
 * `balance` holds per executor what it gains (above 0) or gives (below 0), and is used up: what is left in it found no
 * partition that may go there. Any choice keeps the counts, so it is made for few and long ranges: a gainer first takes what
 * lies next to its own; then ranges that are free, or that a loser can give as a whole; then losers cut from the end of a
 * range, and the gainer goes on into the range behind. A few passes: O(partitions + executors).
 */
export function placeTable(table: PlanTable, balance: Int32Array): Int32Array {
  const move = new TableMove(table, balance);
  move.extend();
  move.takeRanges();
  move.cutRanges();
  move.release();
  move.fill();
  if (table.excluded !== undefined && table.excluded.size > 0) exchangeLeftovers(table, move.owner, balance);
  return move.owner;
}

class TableMove {
  readonly owner: Int32Array;
  readonly #table: PlanTable;
  readonly #balance: Int32Array;
  #gainer = 0;

  constructor(table: PlanTable, balance: Int32Array) {
    this.owner = table.owner.slice();
    this.#table = table;
    this.#balance = balance;
  }

  /** Gainers go on upwards, then downwards, from what they have. */
  extend(): void {
    const { owner } = this;
    for (let at = 1; at < owner.length; at++) this.#extendTo(at, owner[at - 1] as number);
    for (let at = owner.length - 2; at >= 0; at--) this.#extendTo(at, owner[at + 1] as number);
  }

  #extendTo(partition: number, gainer: number): void {
    if (gainer >= 0 && (this.#balance[gainer] as number) > 0) this.#take(partition, gainer);
  }

  /** Gives away ranges that are free, and those that their losers can give up altogether. */
  takeRanges(): void {
    const { owner } = this;
    for (let at = 0; at < owner.length; ) {
      const end = this.#endOfRange(at);
      const from = owner[at] as number;
      const isWhole = from === UNOWNED || (from >= 0 && -(this.#balance[from] as number) >= end - at);
      at = isWhole ? this.#giveRange(at, end) : end;
    }
  }

  /** Losers give the ends of their ranges. */
  cutRanges(): void {
    const { owner } = this;
    for (let at = 0; at < owner.length; ) {
      const end = this.#endOfRange(at);
      const gainer = this.#nextGainer();
      if (gainer === undefined) return;
      const from = owner[at] as number;
      const cut = from < 0 ? 0 : Math.min(-(this.#balance[from] as number), this.#balance[gainer] as number);
      at = cut > 0 ? this.#giveRange(Math.max(at, end - cut), end) : end;
    }
  }

  /** What could not be given yet becomes free, first what anyone may take. */
  release(): void {
    const { owner } = this;
    const { excluded } = this.#table;
    const balance = this.#balance;
    if (!balance.some((each) => each < 0)) return;
    for (const restricted of [false, true]) {
      for (let partition = owner.length - 1; partition >= 0; partition--) {
        const from = owner[partition] as number;
        if (from < 0 || (balance[from] as number) >= 0) continue;
        if (!restricted && excluded?.has(partition) === true) continue;
        owner[partition] = UNOWNED;
        balance[from] = (balance[from] as number) + 1;
      }
    }
  }

  /** Hands out what is free in ascending order, to one gainer after the other. What none of them may take stays free. */
  fill(): void {
    const { owner } = this;
    const balance = this.#balance;
    if (!balance.some((each) => each > 0)) return;
    // A list with links, so that each step takes a partition off it or is one of the excluded pairs.
    const next = new Int32Array(owner.length + 1);
    const head = owner.length;
    let last = head;
    for (let partition = 0; partition < owner.length; partition++) {
      if (owner[partition] !== UNOWNED) continue;
      next[last] = partition;
      last = partition;
    }
    next[last] = head;
    for (let gainer = 0; gainer < balance.length; gainer++) {
      let before = head;
      for (let at = next[head] as number; at !== head && (balance[gainer] as number) > 0; at = next[before] as number) {
        if (this.#take(at, gainer)) next[before] = next[at] as number;
        else before = at;
      }
    }
  }

  /**
   * Gives what can be given from `at` up to `end` to one gainer after the other; the last of them goes on behind it. Returns
   * where to look next.
   */
  #giveRange(at: number, end: number): number {
    let next = at;
    while (next < end) {
      const gainer = this.#nextGainer();
      if (gainer === undefined) return end;
      const start = next;
      while (next < this.owner.length && (this.#balance[gainer] as number) > 0 && this.#take(next, gainer)) next++;
      if (next === start) next++;
    }
    return next;
  }

  /** Takes a partition that is free, or whose owner gives; false if it is neither or not for this gainer. */
  #take(partition: number, gainer: number): boolean {
    const balance = this.#balance;
    const from = this.owner[partition] as number;
    if (from < UNOWNED || (from >= 0 && (balance[from] as number) >= 0)) return false;
    if (!mayOwn(this.#table, partition, gainer)) return false;
    if (from >= 0) balance[from] = (balance[from] as number) + 1;
    balance[gainer] = (balance[gainer] as number) - 1;
    this.owner[partition] = gainer;
    return true;
  }

  #nextGainer(): number | undefined {
    const balance = this.#balance;
    while (this.#gainer < balance.length && (balance[this.#gainer] as number) <= 0) this.#gainer++;
    return this.#gainer < balance.length ? this.#gainer : undefined;
  }

  #endOfRange(start: number): number {
    const { owner } = this;
    let end = start + 1;
    while (end < owner.length && owner[end] === owner[start]) end++;
    return end;
  }
}
