import { mayOwn, mayOwnOf } from "./exclusions.ts";
import { buildGrid, FRACTIONAL, type Grid } from "./grid.ts";
import { type PlanInput, type PlanTable, UNOWNED } from "./types.ts";

/** A partition of any table, by its place among all of them. */
export type Item = number;

/** An ownership that is being changed one partition at a time, with what is to be known of it at each step. */
export class Holdings {
  readonly tables: readonly PlanTable[];
  /** Per executor, its partitions; at the end what it gained, since giving that on is no further move. */
  readonly held: readonly Item[][];
  readonly total: Int32Array;
  readonly #executors: PlanInput["executors"];
  readonly #before: readonly PlanTable[];
  readonly #grid: Grid;
  readonly #first: Int32Array;
  readonly #rowOf: Int32Array;

  /** What an executor had in `before` it may have again. Throws if there is nothing to place. */
  constructor(placed: PlanInput, before: PlanInput, grid: Grid) {
    this.#executors = placed.executors;
    this.#before = before.tables;
    this.#grid = grid;
    this.tables = placed.tables.map((table) => ({ ...table, owner: table.owner.slice() }));
    this.held = placed.executors.map(() => []);
    this.total = new Int32Array(placed.executors.length);
    this.#first = new Int32Array(this.tables.length);
    let items = 0;
    this.tables.forEach(({ owner }, row) => {
      this.#first[row] = items;
      items += owner.length;
    });
    this.#rowOf = new Int32Array(items);
    this.tables.forEach(({ owner }, row) => {
      const first = this.#first[row] as number;
      this.#rowOf.fill(row, first, first + owner.length);
    });
    for (const gained of [false, true]) this.#gather(gained);
  }

  #gather(gained: boolean): void {
    for (let item = 0; item < this.#rowOf.length; item++) {
      const owner = this.ownerOf(item);
      if (owner < 0 || (this.#ownerBefore(item) !== owner) !== gained) continue;
      this.held[owner]?.push(item);
      this.total[owner] = (this.total[owner] as number) + 1;
    }
  }

  /** Partitions that nobody owns, in order. */
  unowned(): Item[] {
    return [...this.#rowOf.keys()].filter((item) => this.ownerOf(item) === UNOWNED);
  }

  ownerOf(item: Item): number {
    const row = this.#rowOf[item] as number;
    return this.tables[row]?.owner[item - (this.#first[row] as number)] as number;
  }

  mayOwn(item: Item, executor: number): boolean {
    const row = this.#rowOf[item] as number;
    return mayOwn(this.#before[row] as PlanTable, item - (this.#first[row] as number), executor);
  }

  /** Those of `candidates`, ascending, that may own a partition. */
  mayOwnOf(item: Item, candidates: readonly number[]): number[] {
    const row = this.#rowOf[item] as number;
    return mayOwnOf(this.#before[row] as PlanTable, item - (this.#first[row] as number), candidates);
  }

  hasRoom(executor: number): boolean {
    return (this.total[executor] as number) < this.capacityOf(executor);
  }

  capacityOf(executor: number): number {
    return Math.floor(this.#executors[executor]?.capacity ?? Number.POSITIVE_INFINITY);
  }

  /** How full an executor would be with one more, by its weight. */
  levelOf(executor: number): number {
    return ((this.total[executor] as number) + 1) / (this.#executors[executor]?.weight as number);
  }

  /** By how much a total is above its upper, or below its lower bound. */
  over(executor: number): number {
    return (this.total[executor] as number) - (this.#grid.high[executor] as number);
  }

  under(executor: number): number {
    return (this.#grid.low[executor] as number) - (this.total[executor] as number);
  }

  /** Whether a partition can go from one executor to another, or from nobody, and its table stays as even as it is. */
  isEven(item: Item, from: number, to: number): boolean {
    const { floor, bits, count, columns } = this.#grid;
    const start = (this.#rowOf[item] as number) * columns;
    const cell = start + to;
    if ((count[cell] as number) >= (floor[cell] as number) + ((bits[cell] as number) & FRACTIONAL)) return false;
    return from < 0 || (count[start + from] as number) > (floor[start + from] as number);
  }

  /** Gives a partition to an executor, or to nobody. */
  give(item: Item, to: number): void {
    const row = this.#rowOf[item] as number;
    const from = this.ownerOf(item);
    this.#count(row, from, -1);
    this.#count(row, to, 1);
    const held = this.held[from];
    held?.splice(held.lastIndexOf(item), 1);
    this.held[to]?.push(item);
    const { owner } = this.tables[row] as PlanTable;
    owner[item - (this.#first[row] as number)] = to;
  }

  #count(row: number, executor: number, change: number): void {
    if (executor < 0) return;
    const cell = row * this.#grid.columns + executor;
    this.#grid.count[cell] = (this.#grid.count[cell] as number) + change;
    this.total[executor] = (this.total[executor] as number) + change;
  }

  #ownerBefore(item: Item): number {
    const row = this.#rowOf[item] as number;
    return this.#before[row]?.owner[item - (this.#first[row] as number)] as number;
  }
}

/** The holdings of an ownership, or undefined if there is nothing to place. */
export function holdingsOf(placed: PlanInput, before: PlanInput): Holdings | undefined {
  const grid = buildGrid(placed);
  return grid === undefined ? undefined : new Holdings(placed, before, grid);
}
