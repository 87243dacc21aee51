import { holderKey } from "../../ledger/state.ts";
import { stretched } from "../../model/settings.ts";
import type { LeaseTerms } from "../effects.ts";
import { type CoreState, instanceState } from "../state.ts";
import type { Turn } from "../turn.ts";
import type { InstanceState, Member } from "./member.ts";

/**
 * The scheduler's half of the lease rule (PROTOCOL §4). Whatever is handed to any socket of a process moves the end of its
 * grants to the maximum, never back: the longest answer that is out may be the one the process counts by.
 */

export function leaseTerms(state: CoreState): LeaseTerms {
  const { durationMs, renewMs } = state.settings.lease;
  return { durationMs, renewMs };
}

/** Notes that a lease of the present terms is handed out in this turn. */
export function handLease(turn: Turn, member: Member): LeaseTerms {
  const { state, now } = turn;
  const terms = leaseTerms(state);
  const track = instanceState(state, member.executor, member.instance);
  track.leaseEndsAt = Math.max(track.leaseEndsAt, now + stretched(terms.durationMs, state.settings.lease));
  armLease(state, track);
  return terms;
}

/** Looks again when the lease runs out. Renewals only move the deadline, which is cheap. */
export function armLease(state: CoreState, track: InstanceState): void {
  state.deadlines.set(`lease ${holderKey(track.executor, track.instance)}`, track.leaseEndsAt);
}

/** How long the grants of its present process are still bound by lease. */
export function leaseLeftMs(state: CoreState, member: Member, now: number): number {
  const track = state.instances.get(holderKey(member.executor, member.instance));
  return track === undefined ? 0 : Math.max(0, track.leaseEndsAt - now);
}
