import { FRACTIONAL, GOLD, type Grid, RAISED, sumTargets } from "./grid.ts";

const UNSEEN = -1;

/**
 * The flow behind a grid's bits: nodes are the rows, the columns and a hub. A residual arc leads from a row to a column
 * whose cell can be raised, back where it can be lowered; from a column to the hub where its total may be one higher, back
 * where it may be one lower. All arcs carry one unit.
 */
export class BitNetwork {
  readonly hub: number;
  /** Per node, units that it has too many, negative where it lacks some. They add up to 0. */
  readonly excess: Int32Array;
  readonly potential: Int32Array;
  /** Per column, whether its total is one above its lower bound, and whether it may be. */
  readonly above: Uint8Array;
  readonly room: Uint8Array;
  readonly #grid: Grid;
  readonly #level: Int32Array;
  readonly #queue: Int32Array;
  /** Per node, the next neighbour to try; all before it lead nowhere in this phase. */
  readonly #next: Int32Array;
  readonly #path: Int32Array;

  /** Notes what is wrong with the sums of a grid of which just the gold cells are raised. */
  constructor(grid: Grid) {
    const { rows, columns } = grid;
    const nodes = rows + columns + 1;
    this.#grid = grid;
    this.hub = nodes - 1;
    this.potential = new Int32Array(nodes);
    this.above = new Uint8Array(columns);
    this.room = new Uint8Array(columns);
    this.#level = new Int32Array(nodes);
    this.#queue = new Int32Array(nodes);
    this.#next = new Int32Array(nodes);
    this.#path = new Int32Array(nodes);
    this.excess = new Int32Array(nodes);
    this.excess.set(sumTargets(grid));
    this.#judgeSums();
  }

  /** Sends units from excess to lack over paths of least cost, until nothing more can be sent. */
  settle(): void {
    while (this.unmet > 0) {
      const depth = this.#search();
      if (depth !== UNSEEN) this.#block(depth);
      else if (!this.#raisePotentials()) return;
    }
  }

  /** Units that are not where they should be. */
  get unmet(): number {
    return this.excess.reduce((sum, each) => sum + Math.max(0, each), 0);
  }

  /**
   * From sums to what is wrong with them: what a row still has to place; of a column what is over the upper bound or below the
   * lower one; the hub has what is between.
   */
  #judgeSums(): void {
    const { rows, columns, low, high, size } = this.#grid;
    const { excess, above, room, hub } = this;
    let wanted = 0;
    for (let row = 0; row < rows; row++) {
      wanted += size[row] as number;
      excess[row] = (size[row] as number) - (excess[row] as number);
    }
    for (let column = 0; column < columns; column++) {
      const least = low[column] as number;
      const over = (excess[rows + column] as number) - least;
      room[column] = (high[column] as number) - least;
      above[column] = Math.min(Math.max(over, 0), room[column] as number);
      excess[rows + column] = over - (above[column] as number);
      wanted -= least + (above[column] as number);
    }
    excess[hub] = -wanted;
  }

  /** Levels of a breadth-first search over arcs of reduced cost 0. The level of the first lack, UNSEEN if there is none. */
  #search(): number {
    const { excess, hub } = this;
    const level = this.#level.fill(UNSEEN);
    const queue = this.#queue;
    let filled = 0;
    for (let node = 0; node <= hub; node++) {
      if ((excess[node] as number) <= 0) continue;
      level[node] = 0;
      queue[filled++] = node;
    }
    let depth = UNSEEN;
    for (let at = 0; at < filled; at++) {
      const node = queue[at] as number;
      const reached = level[node] as number;
      if (reached === depth) break;
      for (let next = this.#after(node, this.#first(node)); next !== UNSEEN; next = this.#after(node, next + 1)) {
        if (level[next] !== UNSEEN) continue;
        level[next] = reached + 1;
        queue[filled++] = next;
        if ((excess[next] as number) < 0) depth = reached + 1;
      }
    }
    return depth;
  }

  /** Lowest number that a neighbour of a node can have. */
  #first(node: number): number {
    const { rows } = this.#grid;
    return node < rows || node === this.hub ? rows : 0;
  }

  /** The next neighbour of a node, from number `from` on, over a residual arc of reduced cost 0; UNSEEN if there is none. */
  #after(node: number, from: number): number {
    if (node < this.#grid.rows) return this.#afterRow(node, from);
    return node === this.hub ? this.#afterHub(from) : this.#afterColumn(node, from);
  }

  #afterRow(row: number, from: number): number {
    const { rows, columns, bits } = this.#grid;
    const potential = this.potential;
    const own = potential[row] as number;
    const offset = row * columns - rows;
    for (let node = from; node < this.hub; node++) {
      const bit = bits[offset + node] as number;
      if ((bit & (FRACTIONAL | RAISED)) !== FRACTIONAL) continue;
      if (own - (potential[node] as number) === (bit === FRACTIONAL ? 0 : 1)) return node;
    }
    return UNSEEN;
  }

  #afterColumn(node: number, from: number): number {
    const { rows, columns, bits } = this.#grid;
    const potential = this.potential;
    const own = potential[node] as number;
    const column = node - rows;
    for (let row = from; row < rows; row++) {
      const bit = bits[row * columns + column] as number;
      if ((bit & RAISED) === 0) continue;
      if ((potential[row] as number) - own === ((bit & GOLD) === 0 ? 0 : 1)) return row;
    }
    const open = from <= this.hub && (this.above[column] as number) < (this.room[column] as number);
    return open && potential[this.hub] === own ? this.hub : UNSEEN;
  }

  #afterHub(from: number): number {
    const { rows } = this.#grid;
    const own = this.potential[this.hub] as number;
    for (let node = from; node < this.hub; node++) {
      if (this.above[node - rows] === 1 && this.potential[node] === own) return node;
    }
    return UNSEEN;
  }

  /** A blocking flow: depth-first along rising levels, each arc tried once. */
  #block(depth: number): void {
    const { excess, hub } = this;
    const next = this.#next;
    for (let node = 0; node <= hub; node++) next[node] = this.#first(node);
    for (let node = 0; node <= hub; node++) {
      if (this.#level[node] !== 0) continue;
      while ((excess[node] as number) > 0 && this.#sendFrom(node, depth)) {}
    }
  }

  /** Sends one unit from a node with too many; false if there is no way left. */
  #sendFrom(source: number, depth: number): boolean {
    const path = this.#path;
    const next = this.#next;
    const level = this.#level;
    path[0] = source;
    let length = 0;
    while (length >= 0) {
      const node = path[length] as number;
      if (length > 0 && (this.excess[node] as number) < 0) {
        this.#push(length);
        return true;
      }
      let neighbour = length < depth ? this.#after(node, next[node] as number) : UNSEEN;
      while (neighbour !== UNSEEN && level[neighbour] !== length + 1) neighbour = this.#after(node, neighbour + 1);
      if (neighbour !== UNSEEN) {
        next[node] = neighbour;
        path[++length] = neighbour;
      } else {
        level[node] = UNSEEN;
        length--;
      }
    }
    return false;
  }

  #push(length: number): void {
    const { rows, columns, bits } = this.#grid;
    const { excess, above, hub } = this;
    const path = this.#path;
    for (let step = 0; step < length; step++) {
      const from = path[step] as number;
      const to = path[step + 1] as number;
      if (to === hub) above[from - rows] = 1;
      else if (from === hub) above[to - rows] = 0;
      else {
        const cell = from < rows ? from * columns + to - rows : to * columns + from - rows;
        bits[cell] = (bits[cell] as number) ^ RAISED;
      }
    }
    const source = path[0] as number;
    const sink = path[length] as number;
    excess[source] = (excess[source] as number) - 1;
    excess[sink] = (excess[sink] as number) + 1;
  }

  /**
   * Makes the cheapest arcs out of what was reached free, by raising all that was not. False if there is no such arc: what
   * is still over fits nowhere.
   */
  #raisePotentials(): boolean {
    const potential = this.potential;
    const level = this.#level;
    const step = this.#leastWayOut();
    if (step === Number.POSITIVE_INFINITY) return false;
    for (let node = 0; node <= this.hub; node++) {
      if (level[node] === UNSEEN) potential[node] = (potential[node] as number) + step;
    }
    return true;
  }

  /** Least reduced cost of a residual arc from a node that was reached to one that was not. */
  #leastWayOut(): number {
    const { rows, columns, bits } = this.#grid;
    const { potential, above, room, hub } = this;
    const level = this.#level;
    let least = Number.POSITIVE_INFINITY;
    const note = (from: number, to: number, cost: number): void => {
      if (level[from] === UNSEEN || level[to] !== UNSEEN) return;
      least = Math.min(least, cost + (potential[from] as number) - (potential[to] as number));
    };
    for (let column = 0; column < columns; column++) {
      const node = rows + column;
      if ((above[column] as number) < (room[column] as number)) note(node, hub, 0);
      if (above[column] === 1) note(hub, node, 0);
    }
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const bit = bits[row * columns + column] as number;
        const cost = (bit & GOLD) === 0 ? 0 : 1;
        if ((bit & RAISED) !== 0) note(rows + column, row, cost);
        else if (bit !== 0) note(row, rows + column, -cost);
      }
    }
    return least;
  }
}
