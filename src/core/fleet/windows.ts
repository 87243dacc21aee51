import { executorRecord } from "../../ledger/state.ts";
import { type CoreState, registration, type Totals, type Window } from "../state.ts";
import { log, type Turn } from "../turn.ts";
import type { Member } from "./member.ts";

/**
 * Bounded waits that gather hellos before a decision. Formation is the grace window of a cold start: it opens with the
 * first hello or table, whichever is later, and depends on no other setting. A join window gathers newcomers to a fleet
 * that already owns something; planning for the others goes on meanwhile.
 */

/** A hello was welcomed. One that the ledger does not have as registered waits for a window. */
export function noteHello(turn: Turn, member: Member): void {
  const { state, now } = turn;
  const newcomer = registration(state, member) === undefined;
  // The process that left may only have missed its `left`, and repeats its leave: it waits like any newcomer.
  const isNewProcess = executorRecord(state.ledger, member.executor)?.instance !== member.instance;
  if (newcomer && isNewProcess && state.reservations.has(member.executor)) {
    // A planned restart is back: its place was kept for it, so it waits for nobody.
    member.admitted = "restart";
    state.stale = true;
  }
  if (newcomer) state.newcomers.add(member.executor);
  if (state.window !== undefined && (newcomer || state.window.kind === "formation")) {
    state.window = { ...state.window, lastHelloAt: now };
  }
}

/** Opens or converts the window, so that it is there as soon as there is something to gather. */
export function openWindow(turn: Turn): void {
  const { state, now } = turn;
  const kind = wantedKind(state);
  if (kind === undefined) {
    state.window = undefined;
    state.deadlines.clear("window");
  } else if (state.window?.kind !== kind) {
    state.window = { kind, openedAt: now, lastHelloAt: now };
    log(turn, "info", "window.opened", { window: kind, maxMs: settingsOf(state, kind).maxMs });
  }
}

/** Closes the window when it is time. Called once a turn, before decisions; not while a decision is being committed. */
export function tendWindow(turn: Turn): void {
  const { state, now } = turn;
  openWindow(turn);
  if (state.window === undefined) return;
  const closesAt = windowClosesAt(state, state.window);
  if (now < closesAt) state.deadlines.set("window", closesAt);
  else close(turn, state.window);
}

/** The earliest of: all expected executors are there, quiet for long enough, open for long enough. */
export function windowClosesAt(state: CoreState, window: Window): number {
  const { quietMs, maxMs } = settingsOf(state, window.kind);
  const expect = window.kind === "formation" ? (state.settings.formation.expect ?? 0) : 0;
  if (expect > 0 && liveCount(state) >= expect) return window.openedAt;
  return Math.min(window.openedAt + maxMs, Math.max(window.openedAt, window.lastHelloAt) + quietMs);
}

/** Executors that are there to be counted. */
export function liveCount(state: CoreState): number {
  let count = 0;
  for (const member of state.members.values()) if (isLive(member)) count++;
  return count;
}

/** True while a cold start waits for its first decision; `totals` are those of the ledger, or of one that is being drafted. */
export function isForming(state: CoreState, totals: Totals = state.totals): boolean {
  return isCold(totals) && !state.formed;
}

function close(turn: Turn, window: Window): void {
  const { state, now } = turn;
  state.window = undefined;
  state.deadlines.clear("window");
  if (window.kind === "formation") state.formed = true;
  for (const executor of state.newcomers) {
    const member = state.members.get(executor);
    if (member !== undefined) member.admitted ??= window.kind;
  }
  state.stale = true;
  log(turn, "info", "window.closed", {
    window: window.kind,
    openMs: Math.round(now - window.openedAt),
    executors: liveCount(state),
  });
}

function wantedKind(state: CoreState): Window["kind"] | undefined {
  if (!isCold(state.totals) || liveCount(state) === 0) state.formed = false;
  if (isForming(state)) return liveCount(state) > 0 ? "formation" : undefined;
  for (const executor of state.newcomers) {
    const member = state.members.get(executor);
    if (member !== undefined && isLive(member) && member.admitted === undefined && state.totals.partitions > 0)
      return "join";
  }
  return undefined;
}

/** There is something to own, and nobody owns, is giving back, or has a place kept. */
function isCold({ partitions, owned, releasing, reserved }: Totals): boolean {
  return partitions > 0 && owned + releasing + reserved === 0;
}

function isLive(member: Member): boolean {
  return member.session !== undefined && member.suspectAt === undefined && member.leaving === undefined;
}

function settingsOf(state: CoreState, kind: Window["kind"]) {
  return kind === "formation" ? state.settings.formation : state.settings.join;
}
