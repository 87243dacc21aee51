import { mayOwn } from "./exclusions.ts";
import { type PlanInput, type PlanTable, UNOWNED } from "./types.ts";

/**
 * Places what a plan under exclusions left over although there is room: hard rules first, then placing, then fairness.
 *
 * `before` is the ownership the plan began with: what an executor had then it may have. Returns `placed` with its owners
 * replaced where they changed.
 */
export function repair(placed: PlanInput, before: PlanInput): PlanInput {
  const leftovers = new Leftovers(placed, before);
  leftovers.shed();
  leftovers.place();
  return { executors: placed.executors, tables: leftovers.tables };
}

class Leftovers {
  readonly tables: PlanTable[];
  readonly #before: readonly PlanTable[];
  readonly #capacity: readonly number[];
  readonly #weight: readonly number[];
  readonly #total: Float64Array;

  constructor({ executors, tables }: PlanInput, before: PlanInput) {
    // Copies, so that owners can be written to.
    this.tables = tables.map((table) => ({ ...table, owner: table.owner.slice() }));
    this.#before = before.tables;
    this.#capacity = executors.map(({ capacity = Number.POSITIVE_INFINITY }) => Math.floor(capacity));
    this.#weight = executors.map(({ weight }) => weight);
    this.#total = new Float64Array(executors.length);
    for (const { owner } of tables) for (const at of owner) if (at >= 0) this.#add(at, 1);
  }

  /** Nobody may hold more than its capacity, whatever fairness would need for that. */
  shed(): void {
    for (const { owner } of this.tables.toReversed()) {
      for (let partition = owner.length - 1; partition >= 0; partition--) {
        const at = owner[partition] as number;
        if (at < 0 || (this.#total[at] as number) <= (this.#capacity[at] as number)) continue;
        owner[partition] = UNOWNED;
        this.#add(at, -1);
      }
    }
  }

  /** Gives each free partition to the executor with the least for its weight, of those that may have it and have room. */
  place(): void {
    this.tables.forEach(({ owner }, row) => {
      const before = this.#before[row] as PlanTable;
      for (let partition = 0; partition < owner.length; partition++) {
        if (owner[partition] !== UNOWNED) continue;
        const taker = this.#taker(before, partition);
        if (taker === undefined) continue;
        owner[partition] = taker;
        this.#add(taker, 1);
      }
    });
  }

  #taker(before: PlanTable, partition: number): number | undefined {
    let best: number | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (let executor = 0; executor < this.#capacity.length; executor++) {
      if (!this.#hasRoom(executor) || !mayOwn(before, partition, executor)) continue;
      const level = ((this.#total[executor] as number) + 1) / (this.#weight[executor] as number);
      if (level >= least) continue;
      best = executor;
      least = level;
    }
    return best;
  }

  #hasRoom(executor: number): boolean {
    return (this.#total[executor] as number) < (this.#capacity[executor] as number);
  }

  #add(executor: number, change: number): void {
    this.#total[executor] = (this.#total[executor] as number) + change;
  }
}
