import { executorRecord, findHolder, holderKey } from "../../ledger/state.ts";
import type { ExecutorId, SessionId } from "../../model/ids.ts";
import { forgetInstance } from "../handoff.ts";
import { type CoreState, instanceState, recordUnderWay, registration } from "../state.ts";
import { closeSession, log, type Turn } from "../turn.ts";
import { isCordoned, type Member } from "./member.ts";

/**
 * Heard → suspect → lost. A suspect keeps its partitions and gets none. It is lost when it was waited for long enough and,
 * if it owns partitions of exclusive tables, its lease has run out as well.
 */

/** A hello or renew was handled: whatever was suspected is over. */
export function hear(turn: Turn, member: Member): void {
  const { state, now } = turn;
  member.heardAt = now;
  state.deadlines.set(`silence ${member.executor}`, silentAt(state, member));
  if (member.suspectAt === undefined) return;
  member.suspectAt = undefined;
  state.deadlines.clear(`loss ${member.executor}`);
  state.stale = true;
}

/** Its session is gone. One that no decision counted yet is forgotten; its next hello is a first one. */
export function detachSession(turn: Turn, member: Member): void {
  const { state } = turn;
  member.session = undefined;
  state.newcomers.delete(member.executor);
  member.admitted = undefined;
  state.deadlines.clear(`silence ${member.executor}`);
  state.deadlines.clear(`ack ${member.executor}`);
  // Sent away by a scheduler that stops, it goes where it was told to.
  if (state.stopping !== undefined) return;
  if (registration(state, member) !== undefined) suspect(turn, member, "its session ended");
}

/** Closes its session for cause. */
export function endSession(turn: Turn, member: Member, code: number, reason: string): void {
  const { state, now } = turn;
  const { executor } = member;
  if (member.session !== undefined) closeSession(turn, member.session, code, reason);
  detachSession(turn, member);
  forgetMember(state, executor);
  // One that no decision counted and that is still remembered is so for as long as one that has left.
  if (state.members.has(executor) && registration(state, member) === undefined)
    state.deadlines.set(`forget ${executor}`, now + state.settings.executors.forgetMs);
}

/** No hello or renew for twice its renew period. */
export function checkSilence(turn: Turn, member: Member): void {
  if (member.session === undefined) return;
  const at = silentAt(turn.state, member);
  if (turn.now < at) turn.state.deadlines.set(`silence ${member.executor}`, at);
  else if (registration(turn.state, member) !== undefined) suspect(turn, member, "it went silent");
}

/** Decides a loss that is due; the change that says so is drafted from the flag. */
export function checkLoss(turn: Turn, member: Member): void {
  const { state, now } = turn;
  if (member.suspectAt === undefined || member.lost || registration(state, member) === undefined) return;
  if (state.replacements.has(member.executor)) return;
  const waitedAt = member.suspectAt + state.settings.loss.waitMs;
  const owns = (findHolder(state.ledger, member.executor, member.instance)?.ownedCount ?? 0) > 0;
  const leaseAt = owns ? instanceState(state, member.executor, member.instance).leaseEndsAt : waitedAt;
  const dueAt = Math.max(waitedAt, leaseAt, state.recovery?.endsAt ?? waitedAt);
  if (now < dueAt) {
    state.deadlines.set(`loss ${member.executor}`, dueAt);
    return;
  }
  member.lost = true;
  state.stale = true;
  member.delivery.acked = undefined;
  member.delivery.unacked = undefined;
  if (member.session !== undefined) {
    closeSession(turn, member.session, 4410, "counted lost: its lease has ended");
    member.session = undefined;
    state.deadlines.clear(`silence ${member.executor}`);
    state.deadlines.clear(`ack ${member.executor}`);
  }
}

/** A loss that was decided did not become durable: it is decided again with the next try, unless it is back by then. */
export function reviveUndecided(turn: Turn, member: Member): void {
  const { state } = turn;
  if (!member.lost) return;
  member.lost = false;
  state.undelivered.add(member.executor);
  if (member.session !== undefined) state.deadlines.set(`silence ${member.executor}`, silentAt(state, member));
  else if (member.suspectAt !== undefined) state.deadlines.set(`loss ${member.executor}`, state.appendAt);
  else suspect(turn, member, "its session ended while its loss could not be committed");
}

/**
 * A new process that went before it was written counts for nothing: the one before it goes on. Not so where another than
 * that one is being written, which is gone by then: whoever came last is to be written after it.
 */
export function dropReplacement(turn: Turn, executor: ExecutorId): void {
  const { state, now } = turn;
  const member = state.members.get(executor);
  const underWay = recordUnderWay(state, executor);
  if (underWay !== undefined && underWay.instance !== member?.instance) return;
  state.replacements.delete(executor);
  // Nobody is counted lost while it is about to be replaced, so the time for that may have passed.
  if (member?.suspectAt !== undefined) state.deadlines.set(`loss ${executor}`, now);
}

/** The member behind a session, if the session is its present one. */
export function memberOf(state: CoreState, session: SessionId): Member | undefined {
  const executor = state.sessions.get(session);
  const member = executor === undefined ? undefined : state.members.get(executor);
  return member?.session === session ? member : undefined;
}

/** Drops a member without a session that is not registered. One whose acks were overdue is remembered until `forgotten`. */
export function forgetMember(state: CoreState, executor: ExecutorId, forgotten = false): void {
  const member = state.members.get(executor);
  if (member === undefined || member.session !== undefined || member.lost) return;
  if ((isCordoned(member) && !forgotten) || recordUnderWay(state, executor) !== undefined) return;
  if (registration(state, member) !== undefined) return;
  state.members.delete(executor);
  const track = state.instances.get(holderKey(executor, member.instance));
  if (track !== undefined) forgetInstance(state, track);
  state.alarms.delete(`overdue ${executor}`);
  for (const kind of ["silence", "loss", "ack", "push", "drain"]) state.deadlines.clear(`${kind} ${executor}`);
}

export function suspect(turn: Turn, member: Member, reason: string): void {
  const { state, now } = turn;
  if (member.suspectAt !== undefined) return;
  member.suspectAt = now;
  state.stale = true;
  state.deadlines.set(`loss ${member.executor}`, now + state.settings.loss.waitMs);
  const record = executorRecord(state.ledger, member.executor);
  log(turn, "warn", "executor.suspected", {
    executor: member.executor,
    instance: record?.instance,
    reason,
    waitMs: state.settings.loss.waitMs,
  });
}

function silentAt(state: CoreState, member: Member): number {
  return member.heardAt + 2 * state.settings.lease.renewMs;
}
