import { exchangeLeftovers, mayOwn } from "./exclusions.ts";
import { type PlanTable, UNOWNED } from "./types.ts";

/**
 * Which partitions of one table change hands, once it is known how many each executor is to have more or fewer.
 *
 * `balance` holds per executor what it gains (above 0) or gives (below 0), and is used up: what is left in it found no
 * partition that may go there. Ranges stay long: a gainer first takes what lies next to its own runs, then losers give from
 * their highest numbers, and what is free is handed out in ascending order. O(partitions + executors).
 */
export function placeTable(table: PlanTable, balance: Int32Array): Int32Array {
  const owner = table.owner.slice();
  const move = new TableMove(table, owner, balance);
  for (let partition = 1; partition < owner.length; partition++) move.extend(partition, partition - 1);
  for (let partition = owner.length - 2; partition >= 0; partition--) move.extend(partition, partition + 1);
  move.release();
  move.fill();
  if (table.excluded !== undefined && table.excluded.size > 0) exchangeLeftovers(table, owner, balance);
  return owner;
}

class TableMove {
  readonly #table: PlanTable;
  readonly #owner: Int32Array;
  readonly #balance: Int32Array;

  constructor(table: PlanTable, owner: Int32Array, balance: Int32Array) {
    this.#table = table;
    this.#owner = owner;
    this.#balance = balance;
  }

  /** Lets a gainer that owns `beside` take `partition`, if that is to be had. */
  extend(partition: number, beside: number): void {
    const balance = this.#balance;
    const gainer = this.#owner[beside] as number;
    if (gainer < 0 || (balance[gainer] as number) <= 0) return;
    const from = this.#owner[partition] as number;
    if (from < UNOWNED || (from >= 0 && (balance[from] as number) >= 0)) return;
    if (!mayOwn(this.#table, partition, gainer)) return;
    if (from >= 0) balance[from] = (balance[from] as number) + 1;
    this.#take(partition, gainer);
  }

  /** Losers give what they have to, first what anyone may take. */
  release(): void {
    const { excluded } = this.#table;
    const owner = this.#owner;
    const balance = this.#balance;
    const passes = excluded === undefined || excluded.size === 0 ? [false] : [false, true];
    for (const restricted of passes) {
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
    const owner = this.#owner;
    const balance = this.#balance;
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
        if (mayOwn(this.#table, at, gainer)) {
          this.#take(at, gainer);
          next[before] = next[at] as number;
        } else before = at;
      }
    }
  }

  #take(partition: number, gainer: number): void {
    this.#owner[partition] = gainer;
    this.#balance[gainer] = (this.#balance[gainer] as number) - 1;
  }
}
