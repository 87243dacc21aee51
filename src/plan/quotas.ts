import { assert } from "../model/errors.ts";
import { type Share, share, toCommonScale } from "./ratio.ts";
import type { PlanExecutor } from "./types.ts";

/** What is due to whom, as parts of all partitions. */
export interface Quotas {
  /** One per executor, in order; where room is short, one more behind them for what finds no place. */
  readonly columns: number;
  /** Per column, index in `shares`. */
  readonly shareOf: Int32Array;
  /** Distinct shares. Over all columns they add up to exactly 1. */
  readonly shares: readonly Share[];
}

/** Executors of one weight and capacity. */
interface Class {
  readonly weight: number;
  /** At most the number of partitions: more makes no difference. */
  readonly capacity: number;
  readonly index: number;
  size: number;
}

/**
 * Shares in proportion to weight, water-filled under capacity: who would get more than it can hold gets just that, and the
 * rest is shared among the others in the same way. Works on classes of equal executors, in exact arithmetic.
 *
 * `total` is the number of partitions to share out, above 0. Throws InvariantError for a weight that is not above 0 or a
 * capacity below 0.
 */
export function computeQuotas(executors: readonly PlanExecutor[], total: number): Quotas {
  const { classes, classOf } = classify(executors, total);
  const { shares, unplaced } = fill(classes, BigInt(total));
  if (unplaced === 0n) return { columns: executors.length, shareOf: classOf, shares };
  const shareOf = new Int32Array(executors.length + 1);
  shareOf.set(classOf);
  shareOf[executors.length] = shares.length;
  return { columns: shareOf.length, shareOf, shares: [...shares, share(unplaced, BigInt(total))] };
}

function classify(executors: readonly PlanExecutor[], total: number): { classes: Class[]; classOf: Int32Array } {
  const byKey = new Map<string, Class>();
  const classOf = Int32Array.from(executors, ({ executor, weight, capacity = total }) => {
    assert(Number.isFinite(weight) && weight > 0, `the weight of ${executor} is ${weight}, not above 0`);
    assert(capacity >= 0, `the capacity of ${executor} is ${capacity}, below 0`);
    const room = Math.min(Math.floor(capacity), total);
    const key = `${weight} ${room}`;
    const known = byKey.get(key) ?? { weight, capacity: room, index: byKey.size, size: 0 };
    byKey.set(key, known);
    known.size++;
    return known.index;
  });
  return { classes: [...byKey.values()], classOf };
}

/** The share of each class, and how many partitions find no room. */
function fill(classes: readonly Class[], total: bigint): { shares: Share[]; unplaced: bigint } {
  const weights = toCommonScale(classes.map(({ weight }) => weight));
  const weightOf = ({ index }: Class): bigint => weights[index] as bigint;
  let left = total;
  let weightLeft = classes.reduce((sum, each) => sum + weightOf(each) * BigInt(each.size), 0n);
  const full = new Set<Class>();
  // Who is full at the lowest level of water comes first; as soon as one is not full, none of those behind is.
  for (const each of [...classes].sort((a, b) => compareLevels(a, b, weightOf))) {
    if (BigInt(each.capacity) * weightLeft > left * weightOf(each)) break;
    full.add(each);
    left -= BigInt(each.capacity) * BigInt(each.size);
    weightLeft -= weightOf(each) * BigInt(each.size);
  }
  const shares = classes.map((each) =>
    full.has(each) ? share(BigInt(each.capacity), total) : share(left * weightOf(each), total * weightLeft),
  );
  return { shares, unplaced: full.size === classes.length ? left : 0n };
}

/** Order of capacity per weight, exactly: doubles decide where they are clearly apart. */
function compareLevels(a: Class, b: Class, weightOf: (of: Class) => bigint): number {
  const levelA = a.capacity / a.weight;
  const levelB = b.capacity / b.weight;
  if (Math.abs(levelA - levelB) > 1e-12 * (levelA + levelB)) return levelA - levelB;
  const difference = BigInt(a.capacity) * weightOf(b) - BigInt(b.capacity) * weightOf(a);
  return difference > 0n ? 1 : difference < 0n ? -1 : a.index - b.index;
}
