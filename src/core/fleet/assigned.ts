import { findHolder, tableStates } from "../../ledger/state.ts";
import { awaited } from "../handoff.ts";
import { type CoreState, membersInOrder, registration } from "../state.ts";
import type { Member } from "./member.ts";
import { liveCount, windowClosesAt } from "./windows.ts";

/** What a welcome says of the executor's share: decided, or not yet and why. */

/** True if a committed decision counted this executor, and its share is not wholly reserved for it. */
export function isAssigned(state: CoreState, member: Member): boolean {
  if (state.ledger.declared && state.totals.partitions + state.totals.owned + state.totals.releasing === 0) return true;
  const holder = findHolder(state.ledger, member.executor, member.instance);
  // What this process was asked back is asked of it again, also where it was counted lost meanwhile.
  if (holder !== undefined && (holder.ownedCount > 0 || awaited(state, holder).length > 0)) return true;
  return registration(state, member) !== undefined && !hasReserved(state, member);
}

/** True if partitions are kept for it: reserved, or still with an earlier process of it. */
function hasReserved(state: CoreState, member: Member): boolean {
  const kept = state.ledger.holders.some(
    (holder) =>
      holder?.executor === member.executor && holder.instance !== member.instance && holder.releasingCount > 0,
  );
  if (kept) return true;
  return tableStates(state.ledger).some((table) => table.unowned.some((set) => set.to === member.executor));
}

/** Why an executor, or with none given the whole scheduler, still waits; undefined if nothing is waited for. */
export function waitingFor(state: CoreState, member: Member | undefined, now: number): string | undefined {
  if (!state.ledger.declared) return "no tables declared; run `evenkeel tables create NAME --partitions N`";
  if (state.recovery !== undefined && (member === undefined || registration(state, member) === undefined)) {
    const { owners, missing, endsAt } = state.recovery;
    return `recovery: ${owners - missing.size} of ${owners} owners are back, ${seconds(endsAt - now)} left`;
  }
  if (state.window !== undefined) {
    const left = `${seconds(windowClosesAt(state, state.window) - now)} left`;
    const expect = state.settings.formation.expect ?? 0;
    if (state.window.kind === "join") return `join window: ${left}`;
    return expect > 0 ? `formation: ${liveCount(state)} of ${expect} expected, ${left}` : `formation: ${left}`;
  }
  if (member === undefined) {
    const anyone = membersInOrder(state).some((other) => other.session !== undefined);
    return anyone || state.totals.partitions === 0 ? undefined : "no executor is connected";
  }
  if (registration(state, member) !== undefined)
    return "its partitions are reserved until the grants of an earlier process have ended";
  return "the next decision";
}

function seconds(durationMs: number): string {
  return `${(Math.max(0, durationMs) / 1000).toFixed(1)} s`;
}
