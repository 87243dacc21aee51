import { readCell } from "../ledger/chunks.ts";
import {
  executorRecord,
  holdersInOrder,
  type LedgerState,
  STATE_OWNED,
  STATE_RELEASING,
  STATE_UNOWNED,
  tableStates,
} from "../ledger/state.ts";
import { assert } from "../model/errors.ts";
import type { TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { type CoreState, isRegistered } from "./state.ts";

/**
 * What must hold after every turn, checked in tests and in simulation. Throws InvariantError. Costs the size of the state,
 * so production does not run it; `fold` itself refuses a change that would break ownership.
 */
export function checkInvariants(state: CoreState): void {
  checkLedger(state.ledger);
  for (const [table, ended] of state.ended) {
    const releasing = releasingOf(state.ledger, table);
    assert(
      ended.difference(releasing).isEmpty,
      `${table}/${ended.difference(releasing)} has ended but is not being given back`,
    );
  }
  for (const [session, executor] of state.sessions) {
    const known =
      state.members.get(executor)?.session === session || state.replacements.get(executor)?.hello.session === session;
    assert(known, `session ${session} is nobody's`);
  }
  for (const member of state.members.values()) {
    const { delivery, session } = member;
    assert(
      session === undefined || state.sessions.get(session) === member.executor,
      `member ${member.executor} has a session that is not open`,
    );
    if (delivery.acked !== undefined && delivery.unacked !== undefined) {
      assert(
        delivery.acked.revision <= delivery.unacked.revision,
        `${member.executor} was sent an older revision than it acknowledged`,
      );
    }
  }
}

/** The two forms in which the ledger keeps ownership say the same, and every declared partition stands in exactly one place. */
export function checkLedger(ledger: LedgerState): void {
  for (const { record, chunks, owned, releasing, unowned } of tableStates(ledger)) {
    let free = record.retired ?? PartitionSet.empty;
    for (const set of unowned) {
      assert(
        set.partitions.intersect(free).isEmpty,
        `${record.table}/${set.partitions.intersect(free)} is unowned twice, or retired`,
      );
      free = free.union(set.partitions);
    }
    let [ownedCells, releasingCells] = [0, 0];
    for (let partition = 0; partition < record.count; partition++) {
      const { state, epoch } = readCell(chunks, partition);
      assert(epoch <= ledger.revision, `${record.table}/${partition} has an epoch from the future`);
      if (state === STATE_OWNED) ownedCells++;
      if (state === STATE_RELEASING) releasingCells++;
      const retired = record.retired?.has(partition) === true;
      if (!retired)
        assert(
          (state === STATE_UNOWNED) === free.has(partition),
          `${record.table}/${partition} is unowned in one form and not in the other`,
        );
    }
    assert(owned === ownedCells && releasing === releasingCells, `counts of table ${record.table} are wrong`);
    assert(record.removing === undefined || owned === 0, `table ${record.table} is removed and still owned`);
  }
  for (const holder of holdersInOrder(ledger)) {
    for (const [state, sets] of [
      [STATE_OWNED, holder.owned],
      [STATE_RELEASING, holder.releasing],
    ] as const) {
      for (const [table, held] of sets) {
        for (const { epoch, partitions } of held) {
          for (const partition of partitions) {
            const cell = readCell(ledger.tables.get(table)?.chunks ?? [], partition);
            assert(
              cell.state === state && cell.holder === holder.slot && cell.epoch === epoch,
              `${table}/${partition} is held by ${holder.executor} in one form and not in the other`,
            );
          }
        }
      }
    }
    if (holder.ownedCount > 0) {
      const record = executorRecord(ledger, holder.executor);
      assert(
        isRegistered(record) && record.instance === holder.instance,
        `${holder.executor} owns partitions and is not registered with that instance`,
      );
    }
  }
}

function releasingOf(ledger: LedgerState, table: TableName): PartitionSet {
  return holdersInOrder(ledger).reduce(
    (all, holder) => (holder.releasing.get(table) ?? []).reduce((sum, set) => sum.union(set.partitions), all),
    PartitionSet.empty,
  );
}
