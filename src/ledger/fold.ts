import { produce } from "immer";
import type { Change, ExecutorEntry, OwnEntry, ReleaseEntry, TableEntry, UnownEntry } from "../model/change.ts";
import { assert, present } from "../model/errors.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { FoldWork, type TableWork } from "./fold-work.ts";
import { bucketOf, executorRecord, type LedgerState, STATE_OWNED, STATE_RELEASING, STATE_UNOWNED } from "./state.ts";

/**
 * Applies one change. The change must be the next one and fit the state: every entry is checked, and one that does not
 * fit is a broken invariant, never a caller's mistake.
 *
 * Order: executors, tables, release, unown, own; so one change may take partitions from an executor that is lost and give
 * them to others. Cost: what the change touches, chunks of CHUNK_SIZE and holders whole.
 */
export function fold(ledger: LedgerState, change: Change): LedgerState {
  assert(
    change.revision === ledger.revision + 1,
    `change ${change.revision} does not follow revision ${ledger.revision}`,
  );
  const overlap = [change.prepare, change.unprepare, change.ready, change.unready, change.ended];
  assert(
    overlap.every((entries) => entries.length === 0),
    `change ${change.revision} has entries of overlap tables, which are not supported yet`,
  );
  const work = new FoldWork(ledger, change.revision);
  for (const entry of change.tables) foldTable(work, entry);
  for (const entry of change.release) foldRelease(work, entry);
  for (const entry of change.unown) foldUnown(work, entry);
  const written = new Map(change.executors.map((entry) => [entry.executor, entry]));
  for (const entry of change.own) foldOwn(work, entry, written.get(entry.executor), ledger);
  const next = produce(ledger, (draft) => {
    draft.revision = change.revision;
    if (change.declared === true || change.tables.length > 0) draft.declared = true;
    for (const entry of change.executors) {
      const bucket = present(draft.executors[bucketOf(entry.executor)], "bucket");
      if ("removed" in entry) bucket.delete(entry.executor);
      else bucket.set(entry.executor, entry as never);
    }
    work.writeTo(draft);
  });
  return next;
}

function foldTable(work: FoldWork, entry: TableEntry): void {
  if ("removed" in entry) {
    const table = work.table(entry.table);
    assert(table.owned === 0, `table ${entry.table} is removed while partitions are owned`);
    for (const group of table.groups(PartitionSet.upTo(table.record.count))) {
      if (group.state === STATE_RELEASING) work.dropReleasing(work.holder(group.holder), entry.table, group);
    }
    work.removeTable(entry.table);
  } else {
    work.putTable(entry);
  }
}

/** Owned → releasing, under the same epoch. */
function foldRelease(work: FoldWork, entry: ReleaseEntry): void {
  const table = work.table(entry.table);
  for (const group of table.groups(entry.partitions)) {
    const holder = work.holder(group.holder);
    assert(
      group.state === STATE_OWNED && holder.executor === entry.executor,
      `${entry.table}/${group.partitions} is not ${entry.executor}'s to release`,
    );
    work.dropOwned(holder, entry.table, group);
    work.addReleasing(holder, entry.table, group, entry.to);
    table.set(group.partitions, { state: STATE_RELEASING, holder: group.holder, epoch: group.epoch });
  }
}

/** Releasing → unowned, or another reason for what is unowned. */
function foldUnown(work: FoldWork, entry: UnownEntry): void {
  const table = work.table(entry.table);
  for (const group of table.groups(entry.partitions)) {
    vacate(work, table, entry.table, group);
    table.set(group.partitions, { state: STATE_UNOWNED, holder: -1, epoch: group.epoch });
  }
  // A retired number is not declared any more: it is over when its last grant is.
  table.addUnowned({
    reason: entry.reason,
    partitions: entry.partitions.difference(table.record.retired ?? PartitionSet.empty),
    ...(entry.to === undefined ? {} : { to: entry.to }),
  });
}

/** Releasing or unowned → owned, under the change's revision as epoch. */
function foldOwn(work: FoldWork, entry: OwnEntry, written: ExecutorEntry | undefined, ledger: LedgerState): void {
  const record = written !== undefined && !("removed" in written) ? written : executorRecord(ledger, entry.executor);
  assert(
    record?.instance === entry.instance,
    `${entry.table}/${entry.partitions} is given to an instance of ${entry.executor} that is not registered`,
  );
  const table = work.table(entry.table);
  assert(table.record.removing === undefined, `a partition of ${entry.table} is given while the table is removed`);
  for (const group of table.groups(entry.partitions)) {
    assert(group.epoch < work.revision, `epoch of ${entry.table}/${group.partitions} does not rise`);
    vacate(work, table, entry.table, group);
  }
  const holder = work.holderOf(entry.executor, entry.instance);
  table.set(entry.partitions, { state: STATE_OWNED, holder: holder.slot, epoch: work.revision });
  work.addOwned(holder, entry.table, { epoch: work.revision, partitions: entry.partitions });
}

/** Takes partitions from where they stand; what is owned cannot be taken without a release. */
function vacate(
  work: FoldWork,
  table: TableWork,
  name: TableEntry["table"],
  group: ReturnType<TableWork["groups"]>[number],
): void {
  assert(group.state !== STATE_OWNED, `${name}/${group.partitions} is taken from an owner that was not asked for it`);
  if (group.state === STATE_RELEASING) work.dropReleasing(work.holder(group.holder), name, group);
  else table.takeUnowned(group.partitions);
}
