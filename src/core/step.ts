import { executorRecord } from "../ledger/state.ts";
import type { ExecutorId, SessionId } from "../model/ids.ts";
import { backoffKey } from "./backoff.ts";
import { handleAppendFailed, handleCommitted } from "./committed.ts";
import { checkOverdue, deliver } from "./delivery.ts";
import type { Effect } from "./effects.ts";
import type { Event } from "./events.ts";
import { handleHello } from "./fleet/hello.ts";
import { checkLoss, checkSilence, detachSession, dropReplacement, forgetMember, memberOf } from "./fleet/suspicion.ts";
import { endByLease, endStopped } from "./handoff.ts";
import { reconcile } from "./reconcile.ts";
import { announceRecovery, endRecovery } from "./recovery.ts";
import { handleAck, handleLeave, handleRenew, handleReport, handleUpdate } from "./reports.ts";
import { finishIfDone, handleShutdown, sendAway } from "./shutdown.ts";
import type { Command, CoreState } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/** What came of a turn. `wakeAt` is when to run the next one even if nothing happens, Infinity for never; early or late is harmless. */
export interface StepResult {
  readonly state: CoreState;
  readonly effects: readonly Effect[];
  readonly wakeAt: number;
}

/**
 * One turn of the scheduler. Pure: everything it knows is in its arguments, everything it does is in its result, and equal
 * arguments give equal results. The state is consumed: go on with the one that is returned.
 *
 * Order within a turn: events as they came, then what is due by the clock, then one decision, then pushes. So a renewal that
 * came late, but came, counts before the deadline that it moves.
 */
export function step(state: CoreState, events: readonly Event[], now: number): StepResult {
  const turn: Turn = { state, now, effects: [] };
  announceRecovery(turn);
  for (const event of events) handle(turn, event);
  expire(turn);
  reconcile(turn);
  deliver(turn);
  finishIfDone(turn);
  return { state, effects: turn.effects, wakeAt: state.deadlines.next() };
}

function handle(turn: Turn, event: Event): void {
  switch (event.type) {
    case "hello.received":
      return handleHello(turn, event);
    case "renew.received":
      return handleRenew(turn, event.session, event.n);
    case "ack.received":
      return handleAck(turn, event.session, event.revision);
    case "report.received":
      return handleReport(turn, event);
    case "update.received":
      return handleUpdate(turn, event);
    case "leave.received":
      return handleLeave(turn, event.session, event.mode);
    case "session.closed":
      return handleClosed(turn, event.session);
    case "change.committed":
      return handleCommitted(turn, event.change);
    case "append.failed":
      return handleAppendFailed(turn, event.error);
    case "table.put": {
      const { type: _type, ...put } = event;
      return command(turn, { kind: "put", ...put });
    }
    case "table.deleted": {
      const { type: _type, ...deletion } = event;
      return command(turn, { kind: "delete", ...deletion });
    }
    case "tables.declared":
      return command(turn, { kind: "declare", request: event.request, specs: event.specs });
    case "loop.stalled":
      return holdExpiries(turn, event.stalledMs);
    case "shutdown.requested":
      return handleShutdown(turn);
    default:
      return event satisfies never;
  }
}

function handleClosed(turn: Turn, session: SessionId): void {
  const { state } = turn;
  const executor = state.sessions.get(session);
  if (executor === undefined) return;
  const member = memberOf(state, session);
  state.sessions.delete(session);
  if (member !== undefined) {
    detachSession(turn, member);
    forgetMember(state, executor);
  } else if (state.replacements.get(executor)?.hello.session === session) {
    dropReplacement(turn, executor);
  }
}

function command(turn: Turn, added: Command): void {
  turn.state.commands = [...turn.state.commands, added];
  turn.state.stale = true;
}

/** Longest addition for a stall, beside one renew period. */
const STALL_CREDIT_MS = 10_000;

/** What executors sent during a stall waits in the sockets: nobody's time runs out before it was read and answered. */
function holdExpiries(turn: Turn, stalledMs: number): void {
  const { state, now } = turn;
  const heldMs = state.settings.lease.renewMs + Math.min(stalledMs, STALL_CREDIT_MS);
  state.holdUntil = Math.max(state.holdUntil, now + heldMs);
  log(turn, "warn", "loop.stalled", { stalledMs: Math.round(stalledMs), heldMs });
}

/** Deadlines that end something by the silence of an executor; they wait out a hold. */
const HELD = new Set(["silence", "loss", "lease", "ack", "stop", "recovery"]);

function expire(turn: Turn): void {
  const { state, now } = turn;
  for (const key of state.deadlines.take(now)) {
    const [kind = "", ...rest] = key.split(" ");
    if (HELD.has(kind) && now < state.holdUntil) state.deadlines.set(key, state.holdUntil);
    else expireOne(turn, kind, rest);
  }
}

/** Each looks at the state and does what is due by now; one that came early arms itself again. */
function expireOne(turn: Turn, kind: string, rest: readonly string[]): void {
  const { state } = turn;
  const executor = rest[0] as ExecutorId;
  const member = state.members.get(executor);
  switch (kind) {
    case "silence":
      if (member !== undefined) checkSilence(turn, member);
      return;
    case "loss":
      if (member !== undefined) checkLoss(turn, member);
      return;
    case "ack":
      if (member !== undefined) checkOverdue(turn, member);
      return;
    case "push":
      state.undelivered.add(executor);
      return;
    case "lease":
      return expireLease(turn, rest.join(" "));
    case "stop":
      return expireStop(turn, rest.join(" "));
    case "reserve":
      state.reservations.delete(executor);
      state.stale = true;
      return;
    case "forget":
      return forgetExecutor(turn, executor);
    case "backoff":
      return expireBackoff(turn, rest);
    case "recovery":
      if (state.recovery !== undefined) endRecovery(turn, state.recovery);
      return;
    case "goaway":
      return sendAway(turn, rest.join(" ") as SessionId);
    default:
      // window, drain, append, quarantine, shutdown: the turn itself looks at them.
      state.stale = true;
  }
}

function expireLease(turn: Turn, key: string): void {
  const track = turn.state.instances.get(key);
  if (track !== undefined) endByLease(turn, track);
}

function expireStop(turn: Turn, key: string): void {
  const track = turn.state.instances.get(key);
  if (track !== undefined) endStopped(turn, track);
}

function expireBackoff(turn: Turn, rest: readonly string[]): void {
  const [executor = "", table = "", partition = ""] = rest;
  const key = backoffKey(executor as ExecutorId, table as never, Number(partition));
  if (turn.state.backoffs.has(key)) turn.state.stale = true;
}

/** Forgets an executor that is gone, once it has no session and nothing is held by it or kept for it. */
function forgetExecutor(turn: Turn, executor: ExecutorId): void {
  const { state } = turn;
  const isThere = state.members.get(executor)?.session !== undefined;
  const holds = state.ledger.holders.some((holder) => holder?.executor === executor);
  if (isThere || holds || state.reservations.has(executor)) {
    const retryMs = Math.max(state.settings.executors.forgetMs, state.settings.lease.durationMs);
    state.deadlines.set(`forget ${executor}`, turn.now + retryMs);
    return;
  }
  if (executorRecord(state.ledger, executor) === undefined) return forgetMember(state, executor, true);
  state.forgettable.add(executor);
  state.stale = true;
}
