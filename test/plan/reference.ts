import { FIXED, type PlanInput, type PlanResult, UNOWNED } from "../../src/plan/types.ts";
import { ownersOf } from "./world.ts";

/**
 * What a plan has to reach, found in another way than the planner does: quotas by repeated sharing in plain fractions, and
 * the best plan as a flow of single partitions with shortest paths by Bellman and Ford. Slow, for small worlds.
 */

/** Weights of test worlds are whole multiples of this, so that quotas are exact here without any reading of decimals. */
export const WEIGHT_STEP = 0.001;

/** What a plan is judged by, the most important first. */
export interface Judgement {
  readonly unowned: number;
  /** By how much totals, and cells, are outside of floor and ceiling of their quotas. */
  readonly unfairTotals: number;
  readonly unfairCells: number;
  readonly moves: number;
}

/** A fraction; the denominator is above 0. */
interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

export interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** Bounds of totals and cells. The last column, present where room is short, is what nobody owns. */
export interface ReferenceBounds {
  readonly totals: readonly Bounds[];
  /** By table, then column. */
  readonly cells: readonly (readonly Bounds[])[];
}

export function referenceBounds(input: PlanInput): ReferenceBounds {
  const sizes = input.tables.map((_, row) => shared(input, row).length);
  const total = sizes.reduce((sum, each) => sum + each, 0);
  const quotas = total === 0 ? input.executors.map(() => ({ over: 0n, under: 1n })) : shareOut(input, BigInt(total));
  const part = ({ over, under }: Fraction, size: number): Bounds =>
    bounds({ over: over * BigInt(size), under: under * BigInt(Math.max(1, total)) });
  return {
    totals: quotas.map(bounds),
    cells: sizes.map((size) => quotas.map((quota) => part(quota, size))),
  };
}

/** Partitions of a table that a plan is about. */
function shared({ tables, executors }: PlanInput, row: number): number[] {
  const table = tables[row];
  return [...(table?.owner.keys() ?? [])].filter((partition) => {
    const owner = table?.owner[partition];
    const excluded = table?.excluded?.get(partition)?.length ?? 0;
    return owner !== FIXED && !(owner === UNOWNED && excluded === executors.length);
  });
}

/** Shares by weight; who gets more than it can hold gets that and is out, and the rest is shared again. */
function shareOut({ executors }: PlanInput, total: bigint): Fraction[] {
  const weights = executors.map(({ weight }) => BigInt(Math.round(weight / WEIGHT_STEP)));
  const quotas = new Map<number, Fraction>();
  for (;;) {
    const active = [...executors.keys()].filter((at) => !quotas.has(at));
    const weight = active.reduce((sum, at) => sum + (weights[at] ?? 0n), 0n);
    const left = [...quotas.values()].reduce((rest, { over }) => rest - over, total);
    const full = active.filter((at) => {
      const capacity = executors[at]?.capacity;
      return capacity !== undefined && BigInt(capacity) * weight < left * (weights[at] ?? 0n);
    });
    if (full.length === 0) {
      const result = [...executors.keys()].map(
        (at) => quotas.get(at) ?? { over: left * (weights[at] ?? 0n), under: weight },
      );
      return active.length > 0 || left === 0n ? result : [...result, { over: left, under: 1n }];
    }
    for (const at of full) quotas.set(at, { over: BigInt(executors[at]?.capacity ?? 0), under: 1n });
  }
}

function bounds({ over, under }: Fraction): Bounds {
  const low = Number(over / under);
  return { low, high: over % under === 0n ? low : low + 1 };
}

/** Counts of a plan by table and executor; where `columns` is one more, the last is what nobody owns. */
export function countPlan(input: PlanInput, result: PlanResult, columns: number): number[][] {
  return input.tables.map((_, row) => {
    const counts = new Array<number>(columns).fill(0);
    const owners = ownersOf(result, row);
    for (const partition of shared(input, row)) {
      const owner = owners[partition] ?? UNOWNED;
      const column = owner === UNOWNED ? input.executors.length : owner;
      if (column < columns) counts[column] = (counts[column] ?? 0) + 1;
    }
    return counts;
  });
}

export function judgePlan(input: PlanInput, result: PlanResult): Judgement {
  const { totals, cells } = referenceBounds(input);
  const counts = countPlan(input, result, totals.length);
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  const off = (value: number, { low, high }: Bounds): number => Math.max(0, low - value, value - high);
  const owners = input.tables.map((_, row) => ownersOf(result, row));
  return {
    unowned: sum(owners.map((owner) => owner.filter((at) => at === UNOWNED).length)),
    unfairTotals: sum(totals.map((bound, column) => off(sum(counts.map((row) => row[column] ?? 0)), bound))),
    unfairCells: sum(cells.flatMap((row, at) => row.map((bound, column) => off(counts[at]?.[column] ?? 0, bound)))),
    moves: sum(
      input.tables.map(
        ({ owner }, row) => [...owner].filter((at, partition) => at >= 0 && at !== owners[row]?.[partition]).length,
      ),
    ),
  };
}

/** Costs so far apart that they are compared one after the other: no test world has a thousand of anything. */
const MOVE = 1;
const UNFAIR_CELL = 1e3;
const UNFAIR_TOTAL = 1e6;
const UNPLACED = 1e9;

/** The best that any plan can reach: partitions → cells → columns → sink, at least cost. */
export function bestPlan(input: PlanInput): Judgement {
  const { totals, cells } = referenceBounds(input);
  const executors = input.executors.length;
  const flow = new CostFlow();
  const [source, sink] = [flow.node(), flow.node()];
  const columns = [...Array(executors + 1).keys()].map(() => flow.node());
  columns.forEach((node, column) => {
    const { low, high } = totals[column] ?? { low: 0, high: 0 };
    const most = Math.floor(input.executors[column]?.capacity ?? 1e6);
    const each = column === executors ? UNPLACED : 0;
    flow.arc(node, sink, low, each - UNFAIR_TOTAL);
    flow.arc(node, sink, high - low, each);
    flow.arc(node, sink, Math.max(0, most - high), each + UNFAIR_TOTAL);
  });
  let partitions = 0;
  input.tables.forEach(({ owner, excluded }, row) => {
    const nodes = columns.map((to, column) => {
      const node = flow.node();
      const { low, high } = cells[row]?.[column] ?? { low: 0, high: 0 };
      flow.arc(node, to, low, -UNFAIR_CELL);
      flow.arc(node, to, high - low, 0);
      flow.arc(node, to, 1e6, UNFAIR_CELL);
      return node;
    });
    for (const partition of shared(input, row)) {
      const from = flow.node();
      flow.arc(source, from, 1, 0);
      partitions++;
      nodes.forEach((to, column) => {
        const keeps = owner[partition] === column;
        if (keeps || !excluded?.get(partition)?.includes(column)) flow.arc(from, to, 1, keeps ? -MOVE : 0);
      });
    }
  });
  const routed = flow.sendAll(source, sink);
  if (routed !== partitions) throw new Error(`only ${routed} of ${partitions} partitions have somewhere to go`);
  const plan = input.tables.map(({ owner }) => Int32Array.from(owner));
  for (const { row, partition, column } of routes(input, flow, executors)) {
    const table = plan[row];
    if (table !== undefined) table[partition] = column === executors ? UNOWNED : column;
  }
  return judgePlan(input, { tables: plan.map((owner) => ({ owner, unowned: [] })) });
}

/** Reads off which column each partition went to, in the order in which `bestPlan` made the arcs. */
function routes(
  input: PlanInput,
  flow: CostFlow,
  executors: number,
): { row: number; partition: number; column: number }[] {
  const found: { row: number; partition: number; column: number }[] = [];
  let node = 2 + executors + 1;
  input.tables.forEach((_, row) => {
    const firstCell = node;
    node += executors + 1;
    for (const partition of shared(input, row)) {
      const to = flow.usedArc(node++);
      found.push({ row, partition, column: to - firstCell });
    }
  });
  return found;
}

interface Arc {
  readonly from: number;
  readonly to: number;
  readonly cost: number;
  room: number;
  readonly back: boolean;
}

/** Minimum-cost flow by cheapest paths, one after the other. Arc 2k and 2k + 1 are each other's reverse. */
class CostFlow {
  readonly #arcs: Arc[] = [];
  #nodes = 0;

  node(): number {
    return this.#nodes++;
  }

  arc(from: number, to: number, room: number, cost: number): void {
    if (room <= 0) return;
    this.#arcs.push({ from, to, cost, room, back: false }, { from: to, to: from, cost: -cost, room: 0, back: true });
  }

  sendAll(source: number, sink: number): number {
    for (let sent = 0; ; sent++) {
      const path = this.#cheapest(source, sink);
      if (path === undefined) return sent;
      for (const at of path) {
        const [arc, reverse] = [this.#arcs[at], this.#arcs[at ^ 1]];
        if (arc !== undefined) arc.room--;
        if (reverse !== undefined) reverse.room++;
      }
    }
  }

  usedArc(from: number): number {
    return this.#arcs.find((arc) => arc.from === from && !arc.back && arc.room === 0)?.to ?? -1;
  }

  #cheapest(source: number, sink: number): number[] | undefined {
    const distance = new Float64Array(this.#nodes).fill(Number.POSITIVE_INFINITY);
    const via = new Int32Array(this.#nodes).fill(-1);
    distance[source] = 0;
    for (let changed = true; changed; ) {
      changed = false;
      this.#arcs.forEach(({ from, to, cost, room }, at) => {
        const reached = (distance[from] ?? 0) + cost;
        if (room <= 0 || !(reached < (distance[to] ?? 0))) return;
        distance[to] = reached;
        via[to] = at;
        changed = true;
      });
    }
    if (distance[sink] === Number.POSITIVE_INFINITY) return undefined;
    const path: number[] = [];
    for (let node = sink; node !== source; ) {
      const at = via[node] ?? -1;
      path.push(at);
      node = this.#arcs[at]?.from ?? source;
    }
    return path;
  }
}
