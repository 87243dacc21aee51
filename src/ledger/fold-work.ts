import type { Draft } from "immer";
import type { TableRecord, UnownedReason } from "../model/change.ts";
import { assert, present } from "../model/errors.ts";
import type { Epoch, ExecutorId, InstanceId, Revision, TableName } from "../model/ids.ts";
import { PartitionSet, PartitionSetBuilder } from "../model/partition-set.ts";
import { type Cell, ChunkWriter } from "./chunks.ts";
import { addHeld, removeHeld } from "./held-sets.ts";
import {
  bucketOf,
  type HeldSet,
  type Holder,
  holderKey,
  type LedgerState,
  STATE_OWNED,
  STATE_RELEASING,
  type TableState,
  type UnownedSet,
} from "./state.ts";

/** Neighbouring facts of a set of partitions that stand alike. */
export interface Group extends Cell {
  readonly partitions: PartitionSet;
}

/** A holder while a fold changes it. */
export interface HolderWork {
  readonly slot: number;
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly owned: Map<TableName, readonly HeldSet[]>;
  readonly releasing: Map<TableName, readonly HeldSet[]>;
  ownedCount: number;
  releasingCount: number;
}

/** A table while a fold changes it. */
export class TableWork {
  record: TableRecord;
  owned: number;
  releasing: number;
  unowned: readonly UnownedSet[];
  readonly #chunks: ChunkWriter;

  constructor(state: TableState) {
    this.record = state.record;
    this.owned = state.owned;
    this.releasing = state.releasing;
    this.unowned = state.unowned;
    this.#chunks = new ChunkWriter(state.chunks);
  }

  get chunks(): ChunkWriter["chunks"] {
    return this.#chunks.chunks;
  }

  /** The new numbers are unowned: nobody was asked yet. */
  grow(from: number, to: number): void {
    this.#chunks.grow(to);
    if (to > from) this.addUnowned({ reason: "no-executor", partitions: PartitionSet.range(from, to - 1) });
  }

  /** Splits a set by how its partitions stand: same state, holder and epoch in one group. */
  groups(partitions: PartitionSet): Group[] {
    const groups = new Map<string, { cell: Cell; builder: PartitionSetBuilder }>();
    for (const partition of partitions) {
      const cell = this.#chunks.read(partition);
      const key = `${cell.state} ${cell.holder} ${cell.epoch}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { cell, builder: new PartitionSetBuilder().add(partition) });
      else group.builder.add(partition);
    }
    return [...groups.values()].map(({ cell, builder }) => ({ ...cell, partitions: builder.build() }));
  }

  /** Writes the new standing. A partition that becomes unowned keeps the epoch it had: the next grant must be above it. */
  set(partitions: PartitionSet, cell: Cell): void {
    for (const partition of partitions) {
      const before = this.#chunks.read(partition);
      this.#count(before.state, -1);
      this.#count(cell.state, 1);
      this.#chunks.write(partition, cell);
    }
  }

  addUnowned(added: UnownedSet): void {
    if (added.partitions.isEmpty) return;
    const at = this.unowned.findIndex((set) => set.reason === added.reason && set.to === added.to);
    const there = this.unowned[at];
    this.unowned =
      there === undefined
        ? [...this.unowned, added].sort(compareUnowned)
        : this.unowned.with(at, { ...there, partitions: there.partitions.union(added.partitions) });
  }

  takeUnowned(partitions: PartitionSet): void {
    this.unowned = this.unowned.flatMap((set) => {
      const left = set.partitions.difference(partitions);
      return left.isEmpty ? [] : [{ ...set, partitions: left }];
    });
  }

  #count(state: number, by: number): void {
    if (state === STATE_OWNED) this.owned += by;
    else if (state === STATE_RELEASING) this.releasing += by;
  }
}

/** Copies of what one fold touches, each made once, written into the draft at the end. */
export class FoldWork {
  readonly #tables = new Map<TableName, TableWork | undefined>();
  readonly #holders = new Map<number, HolderWork>();
  readonly #added = new Map<string, HolderWork>();

  constructor(
    private readonly ledger: LedgerState,
    readonly revision: Revision,
  ) {}

  table(name: TableName): TableWork {
    const work = this.#tables.get(name);
    if (work !== undefined) return work;
    const state = this.#tables.has(name) ? undefined : this.ledger.tables.get(name);
    assert(state !== undefined, `table ${name} is not in the ledger`);
    const fresh = new TableWork(state);
    this.#tables.set(name, fresh);
    return fresh;
  }

  putTable(record: TableRecord): void {
    const isKnown = this.ledger.tables.has(record.table);
    const work = isKnown
      ? this.table(record.table)
      : new TableWork({ record, chunks: [], owned: 0, releasing: 0, unowned: [] });
    work.grow(isKnown ? work.record.count : 0, record.count);
    work.record = record;
    // Also a number that is new may be retired: its key came and went before this change.
    if (record.retired !== undefined) work.takeUnowned(record.retired);
    this.#tables.set(record.table, work);
  }

  removeTable(name: TableName): void {
    this.#tables.set(name, undefined);
  }

  holder(slot: number): HolderWork {
    const work = this.#holders.get(slot);
    if (work !== undefined) return work;
    const holder = this.ledger.holders[slot];
    assert(holder !== undefined, `holder ${slot} is not in the ledger`);
    const copy = { ...holder, owned: new Map(holder.owned), releasing: new Map(holder.releasing) };
    this.#holders.set(slot, copy);
    return copy;
  }

  /** The holder of a process, in the lowest free slot if it has none. */
  holderOf(executor: ExecutorId, instance: InstanceId): HolderWork {
    const key = holderKey(executor, instance);
    const slot = this.ledger.slots[bucketOf(executor)]?.get(key);
    if (slot !== undefined) return this.holder(slot);
    const added = this.#added.get(key);
    if (added !== undefined) return added;
    const fresh: HolderWork = {
      slot: this.#freeSlot(),
      executor,
      instance,
      owned: new Map(),
      releasing: new Map(),
      ownedCount: 0,
      releasingCount: 0,
    };
    this.#added.set(key, fresh);
    this.#holders.set(fresh.slot, fresh);
    return fresh;
  }

  addOwned(holder: HolderWork, table: TableName, set: HeldSet): void {
    holder.owned.set(table, addHeld(holder.owned.get(table) ?? [], set));
    holder.ownedCount += set.partitions.size;
  }

  dropOwned(holder: HolderWork, table: TableName, group: Group): void {
    holder.ownedCount -= group.partitions.size;
    drop(holder.owned, table, group.epoch, group.partitions);
  }

  addReleasing(holder: HolderWork, table: TableName, group: Group, to: ExecutorId | undefined): void {
    const set = { epoch: group.epoch, partitions: group.partitions, ...(to === undefined ? {} : { to }) };
    holder.releasing.set(table, addHeld(holder.releasing.get(table) ?? [], set));
    holder.releasingCount += group.partitions.size;
  }

  dropReleasing(holder: HolderWork, table: TableName, group: Group): void {
    holder.releasingCount -= group.partitions.size;
    drop(holder.releasing, table, group.epoch, group.partitions);
  }

  writeTo(draft: Draft<LedgerState>): void {
    for (const [name, work] of this.#tables) {
      if (work === undefined) draft.tables.delete(name);
      else draft.tables.set(name, tableState(work) as never);
    }
    for (const work of this.#holders.values()) {
      const slots = present(draft.slots[bucketOf(work.executor)], "bucket");
      const key = holderKey(work.executor, work.instance);
      if (work.ownedCount + work.releasingCount === 0) {
        draft.holders[work.slot] = undefined;
        slots.delete(key);
      } else {
        draft.holders[work.slot] = { ...work } satisfies Holder as never;
        slots.set(key, work.slot);
      }
    }
  }

  #freeSlot(): number {
    const { holders } = this.ledger;
    let slot = this.#lowestFree;
    while (slot < holders.length && holders[slot] !== undefined) slot++;
    this.#lowestFree = slot + 1;
    return slot;
  }

  #lowestFree = 0;
}

function tableState({ record, chunks, owned, releasing, unowned }: TableWork) {
  return { record, chunks, owned, releasing, unowned };
}

function drop(
  sets: Map<TableName, readonly HeldSet[]>,
  table: TableName,
  epoch: Epoch,
  partitions: PartitionSet,
): void {
  const left = removeHeld(sets.get(table) ?? [], epoch, partitions);
  if (left.length === 0) sets.delete(table);
  else sets.set(table, left);
}

function compareUnowned(a: UnownedSet, b: UnownedSet): number {
  return compareText(a.reason, b.reason) || compareText(a.to ?? "", b.to ?? "");
}

function compareText(a: UnownedReason | string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
