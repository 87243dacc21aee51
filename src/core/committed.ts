import { fold } from "../ledger/fold.ts";
import { executorRecord, findHolder, type LedgerState } from "../ledger/state.ts";
import type { Change, ExecutorEntry } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import { byId, type ExecutorId, type InstanceId } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { dropFailures } from "./backoff.ts";
import { handleHello, welcomeReplacement } from "./fleet/hello.ts";
import { dropReplacement, forgetMember, hear, reviveUndecided, suspect } from "./fleet/suspicion.ts";
import { endByLease, endNeverSent, forgetEnded, forgetInstance } from "./handoff.ts";
import { noteReturn } from "./recovery.ts";
import { type CoreState, instanceState, isRegistered, membersInOrder, STORE_FAILED, sumTotals } from "./state.ts";
import { log, mergeCauses, type Turn } from "./turn.ts";

/** A change is durable: fold it, let what depended on it happen, and have everyone it touches told. */
export function handleCommitted(turn: Turn, change: Change): void {
  const { state } = turn;
  const append = state.append;
  assert(
    append?.change.revision === change.revision,
    `change ${change.revision} was committed, but another one was asked for`,
  );
  const before = state.ledger;
  state.append = undefined;
  state.alarms.delete(STORE_FAILED);
  state.ledger = fold(before, change);
  state.totals = sumTotals(state.ledger);
  state.stale = true;
  logCommitted(turn, change);
  const asked = new Set(change.release.map((entry) => entry.executor));
  for (const holder of before.holders) {
    if (holder !== undefined && asked.has(holder.executor)) endWhatNeedsNobody(turn, holder.executor, holder.instance);
  }
  for (const { table, partitions } of [...change.unown, ...change.own]) forgetEnded(state, table, partitions);
  keepStopLimits(state, before, change);
  dropRemovedTables(state, change);
  for (const entry of change.executors) followEntry(turn, entry, executorRecord(before, entry.executor)?.state);
  noteFormer(state, before, change);
  noteTouched(state, change);
  notePlacesGone(state, before, change);
  for (const { request, answer } of append.answers) turn.effects.push({ type: "request.answered", request, answer });
  for (const track of [...state.instances.values()]) forgetInstance(state, track);
}

/** From a failed append to the next try: a store that fails at once must not keep the loop busy. */
const APPEND_RETRY_MS = 1_000;

/** The change did not land: what it rested on is decided again, a little later. */
export function handleAppendFailed(turn: Turn, error: string): void {
  const { state } = turn;
  const append = state.append;
  if (append === undefined) return;
  state.append = undefined;
  state.appendAt = turn.now + APPEND_RETRY_MS;
  state.deadlines.set("append", state.appendAt);
  state.alarms.set(STORE_FAILED, `the store does not take changes: ${error}`);
  state.commands = [...append.commands, ...state.commands];
  state.failures = [...append.failures, ...state.failures];
  for (const member of membersInOrder(state)) reviveUndecided(turn, member);
  for (const { executor } of append.change.executors) {
    forgetMember(state, executor);
    const replacement = state.replacements.get(executor);
    if (replacement === undefined) continue;
    if (!state.sessions.has(replacement.hello.session)) dropReplacement(turn, executor);
    else if (!isRegistered(executorRecord(state.ledger, executor))) {
      // It waited to replace a process whose registration did not land: there is nothing to replace.
      state.replacements.delete(executor);
      handleHello(turn, replacement.hello);
    }
  }
  state.stale = true;
  log(turn, "error", "store.failed", { revision: append.change.revision, error });
}

/** Grants that end without a word of their process: by a lease that is over already, or because they never went out. */
function endWhatNeedsNobody(turn: Turn, executor: ExecutorId, instance: InstanceId): void {
  endNeverSent(turn, executor, instance);
  endByLease(turn, instanceState(turn.state, executor, instance));
}

/** A stop limit that was shortened counts for later revokes: those that are out keep the longer one. */
function keepStopLimits(state: CoreState, before: LedgerState, change: Change): void {
  for (const entry of change.tables) {
    const known = before.tables.get(entry.table);
    if (known === undefined || known.releasing === 0 || "removed" in entry) continue;
    if (entry.stopMs < known.record.stopMs) {
      state.stopFloors.set(entry.table, Math.max(known.record.stopMs, state.stopFloors.get(entry.table) ?? 0));
    }
  }
}

function dropRemovedTables(state: CoreState, change: Change): void {
  for (const entry of change.tables) {
    if ("removed" in entry) {
      const ended = new Map(state.ended);
      ended.delete(entry.table);
      state.ended = ended;
      state.stopFloors.delete(entry.table);
      dropFailures(state, { table: entry.table });
    }
  }
  for (const table of [...state.stopFloors.keys()]) {
    if ((state.ledger.tables.get(table)?.releasing ?? 0) === 0) state.stopFloors.delete(table);
  }
}

/** What the ledger now says of an executor, carried over into the fleet. */
function followEntry(turn: Turn, entry: ExecutorEntry, before: string | undefined): void {
  const { state, now } = turn;
  const { executor } = entry;
  if ("removed" in entry) {
    state.forgettable.delete(executor);
    state.former.delete(executor);
    dropFailures(state, { executor });
    forgetMember(state, executor, true);
    return;
  }
  const replacement = state.replacements.get(executor);
  if (replacement?.hello.instance === entry.instance) {
    state.replacements.delete(executor);
    noteReturn(turn, executor);
    welcomeReplacement(turn, replacement.hello);
  }
  if (isRegistered(entry)) {
    followRegistered(turn, executor);
  } else {
    followGone(turn, executor, entry.state, before);
    state.deadlines.set(`forget ${executor}`, now + state.settings.executors.forgetMs);
  }
}

function followRegistered(turn: Turn, executor: ExecutorId): void {
  const { state } = turn;
  const member = state.members.get(executor);
  if (member === undefined) return;
  state.newcomers.delete(executor);
  state.deadlines.clear(`forget ${executor}`);
  if (member.admitted !== undefined) {
    member.admitted = undefined;
    state.reservations.delete(executor);
    state.deadlines.clear(`reserve ${executor}`);
    if (member.session !== undefined) hear(turn, member);
  }
  if (member.session === undefined) suspect(turn, member, "its session ended before it was registered");
  state.undelivered.add(executor);
}

function followGone(turn: Turn, executor: ExecutorId, now: string, before: string | undefined): void {
  const { state } = turn;
  const member = state.members.get(executor);
  if (now !== before) log(turn, now === "lost" ? "warn" : "info", `executor.${now}`, { executor });
  if (member === undefined) return;
  // Its share is gone, and with it what was decided or held against it on account of that, be it decided while this was written.
  member.lost = false;
  member.suspectAt = undefined;
  member.delivery.refused = false;
  if (now === "lost") {
    // Back before its loss was durable: it comes in again like any newcomer.
    if (member.session !== undefined) state.newcomers.add(executor);
  } else if (member.session !== undefined) {
    turn.effects.push({ type: "session.left", session: member.session });
  }
  forgetMember(state, executor);
}

/** What an executor that goes was asked back for, remembered for its return. */
function noteFormer(state: CoreState, before: LedgerState, change: Change): void {
  const going = new Set<ExecutorId>();
  for (const entry of change.executors) {
    if (!("removed" in entry) && entry.state !== "live" && isRegistered(executorRecord(before, entry.executor)))
      going.add(entry.executor);
  }
  for (const holder of before.holders) {
    if (holder === undefined || holder.ownedCount === 0 || !going.has(holder.executor)) continue;
    const sets = [...holder.owned].map(
      ([table, held]) => [table, held.reduce((all, set) => all.union(set.partitions), PartitionSet.empty)] as const,
    );
    state.former.set(holder.executor, new Map(sets));
  }
}

/** Everyone whose ownership the change touches may lack it now, and is told why. */
function noteTouched(state: CoreState, change: Change): void {
  const touched = new Set<ExecutorId>();
  for (const entry of [...change.executors, ...change.release, ...change.own]) touched.add(entry.executor);
  for (const executor of [...touched].sort(byId)) {
    const member = state.members.get(executor);
    if (member === undefined) continue;
    member.delivery.causes = mergeCauses(member.delivery.causes, change.cause);
    member.delivery.lastCauses = change.cause;
    state.undelivered.add(executor);
  }
  // With the first tables declared as none, everyone who waits is told that there is nothing.
  if (change.declared === true || change.tables.length > 0)
    for (const executor of state.members.keys()) state.undelivered.add(executor);
}

/** Who waited for a place that was kept for it may have nothing to wait for any more, and is told so. */
function notePlacesGone(state: CoreState, before: LedgerState, { own, unown }: Change): void {
  if (own.length + unown.length === 0) return;
  for (const holder of before.holders) {
    if (holder === undefined || holder.releasingCount === 0) continue;
    const after = findHolder(state.ledger, holder.executor, holder.instance);
    if (after?.releasingCount !== holder.releasingCount) state.undelivered.add(holder.executor);
  }
  for (const table of new Set([...own, ...unown].map((entry) => entry.table))) {
    for (const { to } of before.tables.get(table)?.unowned ?? []) if (to !== undefined) state.undelivered.add(to);
  }
}

function logCommitted(turn: Turn, change: Change): void {
  const count = (entries: readonly { partitions: { size: number } }[]) =>
    entries.reduce((sum, entry) => sum + entry.partitions.size, 0);
  log(turn, "info", "change.committed", {
    revision: change.revision,
    cause: change.cause,
    executors: change.executors.length,
    tables: change.tables.length,
    own: count(change.own),
    release: count(change.release),
    unown: count(change.unown),
  });
}
