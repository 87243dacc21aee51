import { executorRecords, findHolder, type Holder, holdersInOrder, tableStates } from "../ledger/state.ts";
import type { ExecutorRecord } from "../model/change.ts";
import { byId, type ExecutorId } from "../model/ids.ts";
import type { Leaving, Member } from "./fleet/member.ts";
import { newDelivery } from "./fleet/member.ts";
import { noReadiness } from "./fleet/readiness.ts";
import { type CoreState, isRegistered, type Recovery } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/**
 * A start, or a take-over, that finds owners in the ledger. Nobody was heard yet, so all are suspect from this moment; who
 * comes back gets its share as it was, without a new epoch. Until every owner is back, at the latest until no lease of
 * earlier reigns can live, nobody is counted lost and nothing else is placed or moved. A restart by itself moves nothing.
 */
export function beginRecovery(state: CoreState, now: number): void {
  for (const record of executorRecords(state.ledger)) {
    if (isRegistered(record)) expectMember(state, record, now);
    else state.deadlines.set(`forget ${record.executor}`, now + state.settings.executors.forgetMs);
  }
  for (const executor of awaitedPlaces(state)) {
    const until = now + state.settings.loss.returnMs;
    state.reservations.set(executor, until);
    state.deadlines.set(`reserve ${executor}`, until);
  }
  if (state.grantsFrom > now) state.deadlines.set("quarantine", state.grantsFrom);
  const missing = new Set(
    holdersInOrder(state.ledger).flatMap((holder) => (holder.ownedCount > 0 ? [holder.executor] : [])),
  );
  if (missing.size === 0) return;
  const endsAt = Math.max(now, state.leaseFloor);
  state.recovery = { startedAt: now, endsAt, announced: false, owners: missing.size, missing };
  state.deadlines.set("recovery", state.recovery.endsAt);
}

/** Says once, in the first turn, that owners are waited for. */
export function announceRecovery(turn: Turn): void {
  const { recovery } = turn.state;
  if (recovery === undefined || recovery.announced) return;
  recovery.announced = true;
  const waitMs = Math.round(recovery.endsAt - recovery.startedAt);
  log(turn, "info", "recovery.started", { owners: recovery.owners, waitMs });
}

/** An owner, or a new process of its id, is back. */
export function noteReturn(turn: Turn, executor: ExecutorId): void {
  const { recovery } = turn.state;
  if (recovery === undefined) return;
  recovery.missing.delete(executor);
  if (recovery.missing.size === 0) endRecovery(turn, recovery);
}

/** The wait is over. Who is missing is a suspect like any other from here on, and its time may be up at once. */
export function endRecovery(turn: Turn, recovery: Recovery): void {
  const { state, now } = turn;
  state.recovery = undefined;
  state.deadlines.clear("recovery");
  state.stale = true;
  for (const member of state.members.values()) {
    if (member.suspectAt !== undefined) state.deadlines.set(`loss ${member.executor}`, now);
  }
  const missing = [...recovery.missing].sort(byId);
  log(turn, missing.length > 0 ? "warn" : "info", "recovery.ended", {
    owners: recovery.owners,
    missing,
    tookMs: Math.round(now - recovery.startedAt),
  });
}

/** A registered executor of which nothing was heard yet. */
function expectMember(state: CoreState, record: ExecutorRecord, now: number): void {
  const { executor, instance, replaced, state: standing, ...traits } = record;
  const member: Member = {
    executor,
    instance,
    attempt: -1,
    traits,
    session: undefined,
    heardAt: now,
    suspectAt: now,
    admitted: undefined,
    lost: false,
    leaving: standing === "draining" ? leavingOf(state, findHolder(state.ledger, executor, instance), now) : undefined,
    replaced,
    delivery: newDelivery(),
    ready: noReadiness(),
  };
  state.members.set(executor, member);
  state.deadlines.set(`loss ${executor}`, now + state.settings.loss.waitMs);
  if (member.leaving !== undefined) state.deadlines.set(`drain ${executor}`, member.leaving.deadlineAt);
}

/** A leave under way: for a restart everything was asked back at once and meant for itself. */
function leavingOf(state: CoreState, holder: Holder | undefined, now: number): Leaving {
  const meant = [...(holder?.releasing.values() ?? [])].flat();
  const restarts = holder?.ownedCount === 0 && meant.length > 0 && meant.every((set) => set.to === holder.executor);
  return { mode: restarts ? "restart" : "move", deadlineAt: now + state.settings.drain.deadlineMs };
}

/** Executors that a planned restart keeps a place for: what is reserved, or on its way to be. */
function awaitedPlaces(state: CoreState): Set<ExecutorId> {
  const places = new Set<ExecutorId>();
  for (const { unowned } of tableStates(state.ledger)) {
    for (const set of unowned) if (set.reason === "reserved" && set.to !== undefined) places.add(set.to);
  }
  for (const holder of holdersInOrder(state.ledger)) {
    for (const set of [...holder.releasing.values()].flat())
      if (set.to === holder.executor) places.add(holder.executor);
  }
  return places;
}
