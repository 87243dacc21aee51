import type { ExecutorRecord, TableRecord, UnownedReason } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import type { ExecutorId, InstanceId, Revision, TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { ChunkWriter } from "./chunks.ts";
import type { HolderWork } from "./fold-work.ts";
import { addHeld } from "./held-sets.ts";
import {
  bucketOf,
  emptyLedger,
  executorRecords,
  holderKey,
  holdersInOrder,
  type LedgerState,
  STATE_OWNED,
  STATE_RELEASING,
  STATE_UNOWNED,
  tableStates,
} from "./state.ts";

/** A ledger at one revision as plain JSON data, partition sets in their text form. */
export interface LedgerCheckpoint {
  readonly incarnation: string;
  readonly revision: Revision;
  readonly declared: boolean;
  readonly executors: readonly ExecutorRecord[];
  readonly tables: readonly CheckpointTable[];
  readonly holdings: readonly CheckpointHolding[];
}

interface CheckpointTable {
  readonly record: Omit<TableRecord, "retired"> & { readonly retired?: string };
  readonly unowned: readonly {
    readonly reason: UnownedReason;
    readonly to?: ExecutorId;
    readonly partitions: string;
  }[];
  /** The last epoch of partitions that nobody owns now: the next grant is above it. */
  readonly lastEpochs: readonly { readonly epoch: number; readonly partitions: string }[];
}

interface CheckpointHolding {
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly table: TableName;
  readonly state: "owned" | "releasing";
  readonly epoch: number;
  readonly to?: ExecutorId;
  readonly partitions: string;
}

export function toCheckpoint(ledger: LedgerState): LedgerCheckpoint {
  const holdings = holdersInOrder(ledger).flatMap((holder) =>
    (["owned", "releasing"] as const).flatMap((state) =>
      [...holder[state]].flatMap(([table, sets]) =>
        sets.map(({ partitions, ...set }) => ({
          executor: holder.executor,
          instance: holder.instance,
          table,
          state,
          ...set,
          partitions: partitions.toString(),
        })),
      ),
    ),
  );
  const tables = tableStates(ledger).map(({ record: { retired, ...record }, unowned, chunks }) => ({
    record: retired === undefined ? record : { ...record, retired: retired.toString() },
    unowned: unowned.map((set) => ({ ...set, partitions: set.partitions.toString() })),
    lastEpochs: lastEpochs(new ChunkWriter(chunks), record.count),
  }));
  const { incarnation, revision, declared } = ledger;
  return { incarnation, revision, declared, executors: executorRecords(ledger), tables, holdings };
}

/** The ledger that `toCheckpoint` was made from; holders may stand in other slots. */
export function fromCheckpoint(checkpoint: LedgerCheckpoint): LedgerState {
  const { incarnation, revision, declared } = checkpoint;
  const empty = emptyLedger(incarnation, revision);
  const executors = empty.executors.map((bucket) => new Map(bucket));
  for (const record of checkpoint.executors) executors[bucketOf(record.executor)]?.set(record.executor, record);
  const tables = new Map(checkpoint.tables.map((table) => [table.record.table, readTable(table)]));
  const holders: HolderWork[] = [];
  const slots = empty.slots.map((bucket) => new Map(bucket));
  for (const { executor, instance, table: name, state, partitions: text, ...set } of checkpoint.holdings) {
    const partitions = PartitionSet.parse(text);
    const key = holderKey(executor, instance);
    const slot = slots[bucketOf(executor)]?.get(key) ?? holders.length;
    const holder = holders[slot] ?? newHolder(slot, executor, instance);
    holders[slot] = holder;
    slots[bucketOf(executor)]?.set(key, slot);
    holder[state].set(name, addHeld(holder[state].get(name) ?? [], { ...set, partitions }));
    holder[state === "owned" ? "ownedCount" : "releasingCount"] += partitions.size;
    const table = tables.get(name);
    assert(table !== undefined, `checkpoint ${revision} has holdings of table ${name}, which it does not have`);
    table[state] += partitions.size;
    const code = state === "owned" ? STATE_OWNED : STATE_RELEASING;
    for (const partition of partitions) table.writer.write(partition, { state: code, holder: slot, epoch: set.epoch });
  }
  return {
    ...empty,
    declared,
    executors,
    holders,
    slots,
    tables: new Map([...tables].map(([name, { writer, ...table }]) => [name, { ...table, chunks: writer.chunks }])),
  };
}

function newHolder(slot: number, executor: ExecutorId, instance: InstanceId): HolderWork {
  return { slot, executor, instance, owned: new Map(), releasing: new Map(), ownedCount: 0, releasingCount: 0 };
}

function readTable({ record: { retired, ...plain }, unowned, lastEpochs: epochs }: CheckpointTable) {
  const record: TableRecord = retired === undefined ? plain : { ...plain, retired: PartitionSet.parse(retired) };
  const writer = new ChunkWriter([]);
  writer.grow(record.count);
  for (const { epoch, partitions } of epochs) {
    for (const partition of PartitionSet.parse(partitions)) {
      writer.write(partition, { state: STATE_UNOWNED, holder: -1, epoch });
    }
  }
  const sets = unowned.map((set) => ({ ...set, partitions: PartitionSet.parse(set.partitions) }));
  return { record, writer, owned: 0, releasing: 0, unowned: sets };
}

function lastEpochs(chunks: ChunkWriter, count: number): CheckpointTable["lastEpochs"] {
  const byEpoch = new Map<number, number[]>();
  for (let partition = 0; partition < count; partition++) {
    const { state, epoch } = chunks.read(partition);
    if (state !== STATE_UNOWNED || epoch === 0) continue;
    const partitions = byEpoch.get(epoch);
    if (partitions === undefined) byEpoch.set(epoch, [partition]);
    else partitions.push(partition);
  }
  return [...byEpoch]
    .sort(([a], [b]) => a - b)
    .map(([epoch, partitions]) => ({ epoch, partitions: PartitionSet.of(partitions).toString() }));
}
