import type { ExecutorId, SessionId } from "../model/ids.ts";
import { forgetFailures, noteFailure } from "./backoff.ts";
import { acknowledge } from "./delivery.ts";
import type { Event, LeaveMode, ReportReceived } from "./events.ts";
import { handLease } from "./fleet/lease.ts";
import type { Member } from "./fleet/member.ts";
import { addReady } from "./fleet/readiness.ts";
import { endSession, hear, memberOf } from "./fleet/suspicion.ts";
import { endReleased } from "./handoff.ts";
import { type CoreState, holderOf, recordUnderWay, registration } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/** What executors say after their welcome. A frame of a session that is not the executor's present one changes nothing. */

export function handleRenew(turn: Turn, session: SessionId, n: number): void {
  const member = memberOf(turn.state, session);
  if (member === undefined) return;
  hear(turn, member);
  const terms = handLease(turn, member);
  turn.effects.push({ type: "session.lease", session, n, revision: turn.state.ledger.revision, ...terms });
}

export function handleAck(turn: Turn, session: SessionId, revision: number): void {
  const member = memberOf(turn.state, session);
  if (member === undefined) return;
  const { acked, unacked } = member.delivery;
  if (revision === unacked?.revision) acknowledge(turn, member);
  else if (revision > ((unacked ?? acked)?.revision ?? -1)) {
    endSession(turn, member, 4400, "ack: the revision is ahead of what was sent");
  }
}

export function handleReport(turn: Turn, report: ReportReceived): void {
  const { state } = turn;
  const member = memberOf(state, report.session);
  if (member === undefined) return;
  const holder = holderOf(state, member);
  addReady(member, holder, report.ready);
  forgetFailures(state, member, report.ready);
  for (const failure of report.failed) {
    const owned = holder?.owned.get(failure.table)?.find((set) => set.epoch === failure.epoch)?.partitions;
    const failed = owned?.intersect(failure.partitions);
    if (failed !== undefined && !failed.isEmpty) noteFailure(turn, member, failure, failed);
  }
  endReleased(turn, member.executor, member.instance, report.released);
}

/** Changes what the hello said; a revision follows if it differs from the ledger's record. */
export function handleUpdate(turn: Turn, update: Extract<Event, { type: "update.received" }>): void {
  const member = memberOf(turn.state, update.session);
  if (member === undefined) return;
  const { address, labels, weight, capacity } = update;
  member.traits = {
    ...member.traits,
    ...(address === undefined ? {} : { address }),
    ...(labels === undefined ? {} : { labels }),
    ...(weight === undefined ? {} : { weight }),
    ...(capacity === undefined ? {} : { capacity }),
  };
  turn.state.stale = true;
}

export function handleLeave(turn: Turn, session: SessionId, mode: LeaveMode): void {
  const { state, now } = turn;
  const member = memberOf(state, session);
  if (member === undefined) return;
  const { executor, instance } = member;
  member.leaving = { mode, deadlineAt: member.leaving?.deadlineAt ?? now + state.settings.drain.deadlineMs };
  state.newcomers.delete(executor);
  member.admitted = undefined;
  if (registration(state, member) === undefined && recordUnderWay(state, executor) === undefined) {
    turn.effects.push({ type: "session.left", session });
    return;
  }
  if (mode === "restart") reservePlace(turn, member);
  else releasePlace(state, executor);
  state.deadlines.set(`drain ${executor}`, member.leaving.deadlineAt);
  state.stale = true;
  log(turn, "info", "executor.leaving", { executor, instance, mode, owned: holderOf(state, member)?.ownedCount ?? 0 });
}

/** A planned restart: what it owns is kept for its id, for a while. */
function reservePlace(turn: Turn, member: Member): void {
  const { state, now } = turn;
  const until = now + state.settings.loss.returnMs;
  state.reservations.set(member.executor, until);
  state.deadlines.set(`reserve ${member.executor}`, until);
}

function releasePlace(state: CoreState, executor: ExecutorId): void {
  state.reservations.delete(executor);
  state.deadlines.clear(`reserve ${executor}`);
}
