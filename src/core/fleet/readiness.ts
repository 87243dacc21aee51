import { addHeld } from "../../ledger/held-sets.ts";
import type { HeldSet, Holder } from "../../ledger/state.ts";
import type { Grant } from "../../model/grant.ts";
import type { TableName } from "../../model/ids.ts";
import type { Member, Readiness } from "./member.ts";

/** What an executor has loaded of what it owns, by epoch (PROTOCOL §2.3 rule 8). Readiness that no grant matches is ignored. */

type Sets = ReadonlyMap<TableName, readonly HeldSet[]>;

export function noReadiness(): Readiness {
  return { sets: new Map(), since: undefined };
}

/** After a hello that was not resumed: what it does not report again by the ack of the full push is withdrawn. */
export function doubtReadiness(member: Member): void {
  member.ready.since = new Map();
}

/** The full push is acknowledged: what was reported since the hello stands, the rest is withdrawn. */
export function settleReadiness(member: Member): void {
  if (member.ready.since === undefined) return;
  member.ready = { sets: member.ready.since, since: undefined };
}

export function addReady(member: Member, holder: Holder | undefined, reported: readonly Grant[]): void {
  member.ready.sets = add(member.ready.sets, holder, reported);
  if (member.ready.since !== undefined) member.ready.since = add(member.ready.since, holder, reported);
}

/** How many of the partitions it owns are ready under their present epoch. */
export function readyCount(member: Member, holder: Holder | undefined): number {
  let count = 0;
  for (const [table, owned] of holder?.owned ?? []) {
    for (const set of owned) {
      for (const ready of member.ready.sets.get(table) ?? []) {
        if (ready.epoch === set.epoch) count += ready.partitions.intersect(set.partitions).size;
      }
    }
  }
  return count;
}

function add(sets: Sets, holder: Holder | undefined, reported: readonly Grant[]): Sets {
  const next = new Map(sets);
  for (const { table, epoch, partitions } of reported) {
    const owned = holder?.owned.get(table)?.find((set) => set.epoch === epoch);
    const fresh = owned?.partitions.intersect(partitions);
    if (fresh === undefined || fresh.isEmpty) continue;
    // What it owned under epochs that are over is dropped on the way.
    const current = (next.get(table) ?? []).filter((set) =>
      holder?.owned.get(table)?.some((own) => own.epoch === set.epoch),
    );
    next.set(table, addHeld(current, { epoch, partitions: fresh }));
  }
  return next;
}
