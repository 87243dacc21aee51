import { byId } from "../model/ids.ts";
import type { PartitionSet } from "../model/partition-set.ts";
import type { HeldSet } from "./state.ts";

/** Adds partitions to the entry of the same epoch and `to`, or as a new entry in its place of the order. */
export function addHeld(sets: readonly HeldSet[], added: HeldSet): HeldSet[] {
  const at = sets.findIndex((set) => compareHeld(set, added) >= 0);
  const there = at < 0 ? undefined : sets[at];
  if (at < 0 || there === undefined) return [...sets, added];
  if (compareHeld(there, added) !== 0) return [...sets.slice(0, at), added, ...sets.slice(at)];
  return sets.with(at, { ...there, partitions: there.partitions.union(added.partitions) });
}

/** Takes partitions out of every entry of an epoch; entries that end up empty go. */
export function removeHeld(sets: readonly HeldSet[], epoch: number, removed: PartitionSet): HeldSet[] {
  return sets.flatMap((set) => {
    if (set.epoch !== epoch) return [set];
    const partitions = set.partitions.difference(removed);
    return partitions.isEmpty ? [] : [{ ...set, partitions }];
  });
}

function compareHeld(a: HeldSet, b: HeldSet): number {
  return a.epoch - b.epoch || byId(a.to ?? "", b.to ?? "");
}
