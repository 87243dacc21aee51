import {
  executorRecords,
  findHolder,
  type LedgerState,
  type TableState,
  tableStates,
  type UnownedSet,
} from "../ledger/state.ts";
import type { ExecutorRecord, TableRecord } from "../model/change.ts";
import type { Revision } from "../model/ids.ts";
import type { ExecutorStatus, Status, StatusState, TableStatus, UnownedStatus } from "../model/status.ts";
import { waitingFor } from "./fleet/assigned.ts";
import { leaseLeftMs } from "./fleet/lease.ts";
import { isCordoned, type Member } from "./fleet/member.ts";
import { readyCount } from "./fleet/readiness.ts";
import { isForming, windowClosesAt } from "./fleet/windows.ts";
import { type CoreState, isRegistered, membersInOrder, ROLLED_BACK, registration, STORE_FAILED } from "./state.ts";

/** Reasons for which waiting changes nothing: they do not stand in the way of being converged. */
const SETTLED_REASONS = new Set(["capacity", "no-eligible-executor", "poison", "paused"]);

/** What the scheduler knows, for people and scripts. Pure; cost is the size of ledger and fleet. */
export function describe(state: CoreState, now: number): Status {
  const tables = tableStates(state.ledger).map((table) => describeTable(state, table, now));
  const executors = describeExecutors(state, now);
  const waiting = reasonsToWait(state, now, tables, executors);
  return {
    cluster: state.settings.cluster,
    incarnation: state.ledger.incarnation,
    term: state.term,
    role: "leader",
    revision: state.ledger.revision,
    state: stateWord(state, waiting.length === 0),
    converged: waiting.length === 0,
    waitingFor: waiting,
    windows: describeWindows(state, now),
    tables,
    executors,
    alarms: describeAlarms(state, now),
  };
}

/** Every table of the ledger, ascending by name, those being removed included. */
export function listTables(state: CoreState): readonly TableRecord[] {
  return tableStates(state.ledger).map((table) => table.record);
}

export function currentRevision(state: CoreState): Revision {
  return state.ledger.revision;
}

/** The ledger itself, for checkpoints. */
export function currentLedger(state: CoreState): LedgerState {
  return state.ledger;
}

function describeWindows(state: CoreState, now: number): Status["windows"] {
  const { recovery, window } = state;
  const closesInMs = (at: number) => Math.max(0, Math.round(at - now));
  if (recovery !== undefined) return [{ kind: "recovery", closesInMs: closesInMs(recovery.endsAt) }];
  if (window === undefined) return [];
  return [{ kind: window.kind, closesInMs: closesInMs(windowClosesAt(state, window)) }];
}

/** Longest time an append may take before the status speaks of it. */
const SLOW_APPEND_MS = 2_000;

function describeAlarms({ alarms, append }: CoreState, now: number): Status["alarms"] {
  const told = [...alarms].sort().map(([key, text]) => ({ code: key.split(" ")[0] ?? key, text }));
  const slowMs = append === undefined ? 0 : now - append.since;
  if (slowMs < SLOW_APPEND_MS) return told;
  return [
    ...told,
    { code: "store-slow", text: `the store has been writing for ${(slowMs / 1000).toFixed(1)} s; leases go on` },
  ];
}

function describeTable(state: CoreState, { record, owned, releasing, unowned }: TableState, now: number): TableStatus {
  return {
    table: record.table,
    count: record.count - (record.retired?.size ?? 0),
    owned,
    releasing,
    preparing: 0,
    unowned: unowned.map((set) => describeUnowned(state, set, now)),
  };
}

/** As the ledger has it, with what only the present moment knows: that a window is open, how long a place is still kept. */
function describeUnowned(state: CoreState, set: UnownedSet, now: number): UnownedStatus {
  if (set.reason !== "reserved") return isForming(state) ? { partitions: set.partitions, reason: "forming" } : set;
  const until = set.to === undefined ? undefined : state.reservations.get(set.to);
  return until === undefined ? set : { ...set, keptMs: Math.max(0, Math.round(until - now)) };
}

function describeExecutors(state: CoreState, now: number): ExecutorStatus[] {
  const present = new Map(membersInOrder(state).map((member) => [member.executor, member]));
  const registered = executorRecords(state.ledger).filter(isRegistered);
  const newcomers = [...present.values()].filter(
    (member) =>
      member.session !== undefined &&
      member.leaving === undefined &&
      !registered.some((record) => record.executor === member.executor),
  );
  return [
    ...registered.map((record) => describeRegistered(state, record, present.get(record.executor), now)),
    ...newcomers.map((member) => describeNewcomer(state, member, now)),
  ].sort((a, b) => (a.executor < b.executor ? -1 : 1));
}

function describeRegistered(
  state: CoreState,
  record: ExecutorRecord,
  member: Member | undefined,
  now: number,
): ExecutorStatus {
  const holder = findHolder(state.ledger, record.executor, record.instance);
  const standing = {
    executor: record.executor,
    instance: record.instance,
    state: record.state,
    owned: holder?.ownedCount ?? 0,
  };
  if (member === undefined) {
    return { ...standing, cordoned: false, connected: false, suspect: true, ready: 0, leaseLeftMs: 0, acked: null };
  }
  return {
    ...standing,
    ...describeSession(state, member, now),
    suspect: member.suspectAt !== undefined,
    ready: readyCount(member, holder),
  };
}

function describeNewcomer(state: CoreState, member: Member, now: number): ExecutorStatus {
  const { executor, instance } = member;
  return {
    executor,
    instance,
    state: "live",
    owned: 0,
    ready: 0,
    suspect: false,
    ...describeSession(state, member, now),
  };
}

function describeSession(state: CoreState, member: Member, now: number) {
  const { acked, unacked } = member.delivery;
  return {
    cordoned: isCordoned(member),
    connected: member.session !== undefined,
    leaseLeftMs: Math.round(leaseLeftMs(state, member, now)),
    acked: acked?.revision ?? null,
    ...(unacked === undefined
      ? {}
      : { unacked: { revision: unacked.revision, sinceMs: Math.round(now - unacked.sentAt) } }),
  };
}

/** Everything that stands between now and converged, in words; the most general first. */
function reasonsToWait(
  state: CoreState,
  now: number,
  tables: readonly TableStatus[],
  executors: readonly ExecutorStatus[],
): string[] {
  const reasons: string[] = [];
  const general = waitingFor(state, undefined, now);
  for (const alarm of [STORE_FAILED, ROLLED_BACK]) {
    const text = state.alarms.get(alarm);
    if (text !== undefined) reasons.push(text);
  }
  if (general !== undefined) reasons.push(general);
  if (state.append !== undefined) reasons.push(`revision ${state.append.change.revision} is being committed`);
  else if (state.stale && general === undefined) reasons.push("a decision is due");
  for (const { table, releasing, unowned } of tables) {
    if (releasing > 0)
      reasons.push(
        `table ${table}: ${releasing === 1 ? "1 partition is" : `${releasing} partitions are`} being given back`,
      );
    for (const { partitions, reason, to } of unowned) {
      if (SETTLED_REASONS.has(reason) || reason === "forming") continue;
      reasons.push(
        `table ${table}: ${partitions.size} partition${partitions.size === 1 ? "" : "s"} unowned: ${reason}${to === undefined ? "" : ` for ${to}`}`,
      );
    }
  }
  for (const executor of executors) {
    const member = state.members.get(executor.executor);
    if (executor.suspect) reasons.push(`executor ${executor.executor}: suspect`);
    else if (executor.unacked !== undefined)
      reasons.push(`executor ${executor.executor}: push ${executor.unacked.revision} is not acknowledged`);
    else if (executor.ready < executor.owned) {
      const missing = executor.owned - executor.ready;
      reasons.push(
        `executor ${executor.executor}: ${missing === 1 ? "1 partition is" : `${missing} partitions are`} not ready`,
      );
    } else if (
      member !== undefined &&
      registration(state, member) !== undefined &&
      state.undelivered.has(member.executor)
    )
      reasons.push(`executor ${executor.executor}: a push is due`);
    if (executor.state === "draining") reasons.push(`executor ${executor.executor}: is leaving`);
  }
  return reasons;
}

function stateWord(state: CoreState, converged: boolean): StatusState {
  if (state.alarms.has(STORE_FAILED) || state.alarms.has(ROLLED_BACK)) return "store-failed";
  if (!state.ledger.declared) return "pending";
  if (state.recovery !== undefined) return "recovering";
  if (isForming(state)) return state.window === undefined ? "pending" : "forming";
  return converged ? "converged" : "working";
}
