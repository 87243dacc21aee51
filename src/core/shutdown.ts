import { byId, type SessionId } from "../model/ids.ts";
import { memberOf } from "./fleet/suspicion.ts";
import { closeSession, log, type Turn } from "./turn.ts";

const SHUTTING_DOWN = "the scheduler is shutting down";

/**
 * The end of a scheduler that is asked to stop: no new sessions and no decisions, renewals still answered, each session
 * asked to go at its own time so that they do not all come back at once. Leases stay valid; executors go on working.
 */
export function handleShutdown(turn: Turn): void {
  const { state, now } = turn;
  if (state.stopping !== undefined) return;
  const { timeoutMs } = state.settings.shutdown;
  state.stopping = { deadlineAt: now + timeoutMs, finished: false };
  state.deadlines.set("shutdown", now + timeoutMs);
  // Who waits to be welcomed has nothing to go on with, and understands nothing but a refusal.
  for (const { hello } of state.replacements.values())
    if (state.sessions.has(hello.session)) closeSession(turn, hello.session, 4503, SHUTTING_DOWN, {});
  const sessions = [...state.sessions.keys()].sort(byId);
  const spreadMs = Math.min(state.settings.lease.renewMs, timeoutMs);
  sessions.forEach((session, index) => {
    const afterMs = Math.floor((index * spreadMs) / sessions.length);
    turn.effects.push({ type: "session.goaway", session, afterMs, reason: SHUTTING_DOWN });
    state.deadlines.set(`goaway ${session}`, now + afterMs);
  });
  log(turn, "info", "shutdown.started", { sessions: sessions.length, timeoutMs });
}

/** A session's time to go has come. */
export function sendAway(turn: Turn, session: SessionId): void {
  const member = memberOf(turn.state, session);
  if (!turn.state.sessions.has(session)) return;
  closeSession(turn, session, 1001, SHUTTING_DOWN);
  if (member !== undefined) member.session = undefined;
}

/** Says once that the shutdown is over: every session is gone, or the time for it is up. */
export function finishIfDone(turn: Turn): void {
  const { state, now } = turn;
  const { stopping } = state;
  if (stopping === undefined || stopping.finished) return;
  if (state.sessions.size > 0 && now < stopping.deadlineAt) return;
  stopping.finished = true;
  for (const session of [...state.sessions.keys()].sort(byId)) sendAway(turn, session);
  turn.effects.push({ type: "shutdown.finished" });
}
