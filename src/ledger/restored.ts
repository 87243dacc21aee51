import { type Change, emptyChange } from "../model/change.ts";
import type { Revision } from "../model/ids.ts";
import { fromCheckpoint, type LedgerCheckpoint, toCheckpoint } from "./checkpoint.ts";
import { fold } from "./fold.ts";
import { emptyLedger, holdersInOrder, type LedgerState } from "./state.ts";

/** What a store had of a ledger. `floor`: the revision that it starts after without a checkpoint. */
export interface StoredLedger {
  readonly incarnation: string;
  readonly floor: Revision;
  readonly checkpoint?: LedgerCheckpoint;
  readonly changes: readonly Change[];
}

export function readLedger({ incarnation, floor, checkpoint, changes }: StoredLedger): LedgerState {
  const start = checkpoint === undefined ? emptyLedger(incarnation, floor) : fromCheckpoint(checkpoint);
  return changes.reduce(fold, start);
}

/**
 * The ledger that a restored store begins with: nobody owns anything by the new incarnation, but whoever owned something
 * may go on serving it until its lease is out. So everything owned is asked back, meant for the same executor again.
 */
export function restoredCheckpoint(
  ledger: LedgerState,
  { incarnation, revision }: { readonly incarnation: string; readonly revision: Revision },
): LedgerCheckpoint {
  const release = holdersInOrder(ledger).flatMap(({ executor, owned }) =>
    [...owned].flatMap(([table, sets]) =>
      sets.map(({ partitions }) => ({ table, partitions, executor, to: executor })),
    ),
  );
  const asked = fold(ledger, { ...emptyChange(ledger.revision + 1, 0), release });
  return toCheckpoint({ ...asked, incarnation, revision });
}
