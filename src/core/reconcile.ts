import { Draft } from "./draft.ts";
import { draftFleet } from "./fleet/drafting.ts";
import { isForming, tendWindow } from "./fleet/windows.ts";
import { draftPlacement } from "./placement.ts";
import { type CoreState, ROLLED_BACK, STORE_FAILED, sumTotals } from "./state.ts";
import { draftCommands, draftRemovals } from "./tables.ts";
import { mergeCauses, type Turn } from "./turn.ts";

/**
 * Compares what is with what should be, and drafts the one change that comes next. Nothing happens here but a `store.append`:
 * what the change does is done when it is durable. One append is under way at a time; what happens meanwhile is compared afresh.
 */
export function reconcile(turn: Turn): void {
  const { state } = turn;
  if (state.append !== undefined || state.stopping !== undefined || turn.now < state.appendAt) return;
  if (state.alarms.has(ROLLED_BACK)) return;
  if (state.recovery === undefined) tendWindow(turn);
  if (!state.stale) return;
  const draft = new Draft(state.ledger, state.term);
  draftCommands(draft, state.commands);
  draftFleet(state, draft);
  draftRemovals(state, draft);
  const tentative = draft.tentative();
  if (!isForming(state, sumTotals(tentative))) draftPlacement(turn, draft, tentative);
  state.stale = false;
  if (draft.isEmpty) settle(turn, draft);
  else append(turn, draft);
}

/** Nothing to do: requests that changed nothing are answered, and what was under way has come to its end. */
function settle(turn: Turn, draft: Draft): void {
  const { state } = turn;
  for (const { request, answer } of draft.answers) turn.effects.push({ type: "request.answered", request, answer });
  state.commands = [];
  forgetDrafted(state);
  // What it did not take is not wanted any more.
  state.alarms.delete(STORE_FAILED);
  if (state.totals.releasing === 0) state.causes = [];
}

function append(turn: Turn, draft: Draft): void {
  const { state } = turn;
  state.causes = mergeCauses(state.causes, draft.causes);
  // What follows from nothing that is still remembered, as after a start, is named for what it does.
  const change = draft.toChange(state.causes.length > 0 ? state.causes : [{ kind: "balance" }]);
  state.append = {
    since: turn.now,
    change,
    executors: new Map(change.executors.map((entry) => [entry.executor, entry])),
    answers: draft.answers,
    commands: state.commands,
    failures: state.failures,
  };
  state.commands = [];
  forgetDrafted(state);
  turn.effects.push({ type: "store.append", change });
}

/** Failures are in the draft, or need none; but during recovery nothing is moved, so they wait. */
function forgetDrafted(state: CoreState): void {
  if (state.recovery === undefined) state.failures = [];
}
