import type { Grant } from "../model/grant.ts";
import type { Epoch, TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import type { Push } from "../protocol/paging.ts";
import type { Handle } from "./handle.ts";

export type Keys = ReadonlyMap<TableName, ReadonlyMap<number, string>>;

/** Keys of partitions by table and number. */
export function keysOf(push: Pick<Push, "keys">): Keys {
  const keys = new Map<TableName, Map<number, string>>();
  for (const { table, partition, key } of push.keys) {
    const ofTable = keys.get(table) ?? new Map<number, string>();
    keys.set(table, ofTable.set(partition, key));
  }
  return keys;
}

interface Listed {
  partitions: PartitionSet;
  readonly byEpoch: Map<Epoch, PartitionSet>;
}

/**
 * Answers whether a push lists what a handle holds in any of its three lists: in an exclusive table under the same epoch,
 * in an overlap table under any.
 */
export function listingOf(push: Pick<Push, "grant" | "prepare" | "revoke">): (handle: Handle) => boolean {
  const tables = new Map<TableName, Listed>();
  for (const list of [push.grant, push.prepare, push.revoke] satisfies (readonly Grant[])[]) {
    for (const { table, partitions, epoch } of list) {
      const listed = tables.get(table) ?? { partitions: PartitionSet.empty, byEpoch: new Map() };
      tables.set(table, listed);
      listed.partitions = listed.partitions.union(partitions);
      listed.byEpoch.set(epoch, partitions.union(listed.byEpoch.get(epoch) ?? PartitionSet.empty));
    }
  }
  return ({ table, partition, handoff, granted }) => {
    const listed = tables.get(table);
    const set =
      handoff === "overlap" ? listed?.partitions : granted === undefined ? undefined : listed?.byEpoch.get(granted);
    return set?.has(partition) ?? false;
  };
}
