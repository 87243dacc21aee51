import type { HeldSet, Holder } from "../ledger/state.ts";
import type { Grant, PartitionKey, Revoke, TableFacts } from "../model/grant.ts";
import { byId, type TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import type { Push } from "./effects.ts";
import { isAssigned } from "./fleet/assigned.ts";
import { type Member, OVERDUE_CORDON } from "./fleet/member.ts";
import { settleReadiness } from "./fleet/readiness.ts";
import { endSession } from "./fleet/suspicion.ts";
import { awaited, startStopLimits } from "./handoff.ts";
import { type CoreState, holderOf, instanceState } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/**
 * Pushes: what each session lacks of the ledger. One push is out per session; what happens meanwhile is merged into the
 * next. Nothing is queued: a push is made from the ledger and from what the executor acknowledged, so a lost one is simply
 * made again.
 */

/** Sends what is missing to every executor that may lack something, ascending by id. */
export function deliver(turn: Turn): void {
  const { state } = turn;
  const executors = [...state.undelivered].sort(byId);
  state.undelivered.clear();
  for (const executor of executors) {
    const member = state.members.get(executor);
    if (member !== undefined) deliverTo(turn, member);
  }
}

/** The push that is out was applied, by an ack or by a resume from its revision. */
export function acknowledge(turn: Turn, member: Member): void {
  const { state } = turn;
  const { delivery } = member;
  const view = delivery.unacked;
  if (view === undefined) return;
  if (delivery.acked === undefined) settleReadiness(member);
  delivery.acked = view;
  delivery.unacked = undefined;
  state.deadlines.clear(`ack ${member.executor}`);
  if (delivery.overdue > 0) {
    if (delivery.overdue >= OVERDUE_CORDON) state.alarms.delete(`overdue ${member.executor}`);
    delivery.overdue = 0;
    delivery.pushAt = Number.NEGATIVE_INFINITY;
    state.stale = true;
  }
  startStopLimits(turn, member.executor, member.instance, view.revoke);
  state.undelivered.add(member.executor);
  log(turn, "debug", "push.acked", {
    executor: member.executor,
    session: member.session,
    revision: view.revision,
    afterMs: Math.round(turn.now - view.sentAt),
  });
}

/** First wait after an overdue ack, doubled with each in a row, and the longest. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** Ends a session whose ack is overdue. It may come back at once; its pushes slow down, its lease goes on. */
export function checkOverdue(turn: Turn, member: Member): void {
  const { state, now } = turn;
  const { delivery, session, executor } = member;
  const view = delivery.unacked;
  if (view === undefined || session === undefined) return;
  const dueAt = view.sentAt + state.settings.delivery.ackTimeoutMs;
  if (now < dueAt) {
    state.deadlines.set(`ack ${executor}`, dueAt);
    return;
  }
  delivery.overdue++;
  delivery.pushAt = now + Math.min(FIRST_WAIT_MS * 2 ** (delivery.overdue - 1), LONGEST_WAIT_MS);
  const cordoned = delivery.overdue >= OVERDUE_CORDON;
  if (cordoned) {
    const text = `${executor} has left ${delivery.overdue} pushes in a row unacknowledged and gets nothing new`;
    state.alarms.set(`overdue ${executor}`, text);
    delivery.refused = view.revoke.length > 0;
    state.stale = true;
  }
  log(turn, "warn", "push.overdue", {
    executor,
    session,
    revision: view.revision,
    inARow: delivery.overdue,
    cordoned,
    refused: delivery.refused,
  });
  if (delivery.overdue === OVERDUE_CORDON)
    log(turn, "warn", "executor.cordoned", { executor, reason: "pushes unacknowledged" });
  endSession(turn, member, 4411, `push ${view.revision} was not acknowledged in time`);
}

function deliverTo(turn: Turn, member: Member): void {
  const { state, now } = turn;
  const { delivery, session, executor } = member;
  if (session === undefined || delivery.unacked !== undefined || member.lost || !isAssigned(state, member)) return;
  const holder = holderOf(state, member);
  const revoke = awaited(state, holder);
  const grant = missingGrants(holder, delivery.acked?.holder);
  const news = delivery.acked === undefined || grant.length > 0 || hasNews(revoke, delivery.acked.revoke);
  if (!news) return;
  if (now < delivery.pushAt) {
    state.deadlines.set(`push ${executor}`, delivery.pushAt);
    state.undelivered.add(executor);
    return;
  }
  const push: Push = {
    revision: state.ledger.revision,
    base: delivery.acked?.revision ?? null,
    grant,
    prepare: [],
    revoke,
    tables: tableFacts(state, [...grant, ...revoke]),
    keys: partitionKeys(state, grant),
    cause: delivery.causes.length > 0 ? delivery.causes : delivery.lastCauses,
  };
  delivery.unacked = { revision: push.revision, holder, revoke, sentAt: now };
  delivery.causes = [];
  const track = instanceState(state, executor, member.instance);
  track.sentRevision = Math.max(track.sentRevision, push.revision);
  state.deadlines.set(`ack ${executor}`, now + state.settings.delivery.ackTimeoutMs);
  turn.effects.push({ type: "session.push", session, executor, ...push });
}

/** Grants that the executor was not told yet, ascending by table, then epoch. */
function missingGrants(holder: Holder | undefined, known: Holder | undefined): Grant[] {
  if (holder === undefined) return [];
  return [...holder.owned]
    .sort(([a], [b]) => byId(a, b))
    .flatMap(([table, sets]) => {
      const told = known?.owned.get(table);
      return told === sets ? [] : sets.flatMap((set) => untold(table, set, told));
    });
}

function untold(table: TableName, { epoch, partitions }: HeldSet, told: readonly HeldSet[] | undefined): Grant[] {
  const known = told?.find((set) => set.epoch === epoch)?.partitions ?? PartitionSet.empty;
  const left = partitions.difference(known);
  return left.isEmpty ? [] : [{ table, partitions: left, epoch }];
}

/** True if something is asked back that the last acknowledged push did not name. */
function hasNews(revoke: readonly Revoke[], told: readonly Revoke[]): boolean {
  return revoke.some((entry) => {
    const known = told.find((other) => other.table === entry.table && other.epoch === entry.epoch);
    return known === undefined || !entry.partitions.difference(known.partitions).isEmpty;
  });
}

function tableFacts(state: CoreState, named: readonly Grant[]): TableFacts[] {
  const names = [...new Set(named.map((grant) => grant.table))].sort(byId);
  return names.flatMap((name) => {
    const record = state.ledger.tables.get(name)?.record;
    return record === undefined
      ? []
      : [{ table: name, count: record.count, created: record.created, handoff: record.handoff }];
  });
}

function partitionKeys(state: CoreState, granted: readonly Grant[]): PartitionKey[] {
  return granted.flatMap(({ table, partitions }) => {
    const keys = state.ledger.tables.get(table)?.record.keys;
    if (keys === undefined) return [];
    return [...partitions].map((partition) => ({ table, partition, key: keys[partition] ?? "" }));
  });
}
