import type { HeldSet, Holder } from "../../ledger/state.ts";
import type { Cause, ExecutorTraits } from "../../model/change.ts";
import type { Revoke } from "../../model/grant.ts";
import type { ExecutorId, InstanceId, Revision, SessionId, TableName } from "../../model/ids.ts";
import type { LeaveMode } from "../events.ts";

/**
 * An executor as the fleet sees it: the volatile part, of its newest process. What the ledger says of it stands in the
 * ledger alone. Members are written in place; only the core touches them.
 */
export interface Member {
  readonly executor: ExecutorId;
  instance: InstanceId;
  /** Highest attempt handled. */
  attempt: number;
  traits: ExecutorTraits;
  session: SessionId | undefined;
  /** When the last hello or renew was handled. */
  heardAt: number;
  /** Since when it is suspect; undefined while it is heard. */
  suspectAt: number | undefined;
  /** A window closed over it: the next decision counts it, for this cause. */
  admitted: "formation" | "join" | "restart" | undefined;
  /** Decided to be lost; the change that says so is not committed yet. */
  lost: boolean;
  leaving: Leaving | undefined;
  /** Instances replaced before the ledger named any. */
  replaced: readonly InstanceId[];
  delivery: Delivery;
  ready: Readiness;
}

export interface Leaving {
  readonly mode: LeaveMode;
  /** When what is left is revoked without waiting for a taker. */
  readonly deadlineAt: number;
}

/** What its session was told, and what it has acknowledged. */
export interface Delivery {
  /** What the executor is known to hold; undefined: nothing, the next push replaces everything. */
  acked: View | undefined;
  /** The one push that is out. */
  unacked: (View & { readonly sentAt: number }) | undefined;
  /** Overdue acks in a row, the 4411s. */
  overdue: number;
  /** No push before this, after an overdue ack. */
  pushAt: number;
  /** A revoke stayed un-acked too often: hellos are refused until its grants have ended. */
  refused: boolean;
  /** Causes of changes that touched it since the last push, and of the last one that did. */
  causes: readonly Cause[];
  lastCauses: readonly Cause[];
}

/** An executor's ownership as one push tells it. */
export interface View {
  readonly revision: Revision;
  readonly holder: Holder | undefined;
  readonly revoke: readonly Revoke[];
}

/** What it has reported as loaded, by epoch. Volatile: it is asked for again after each start. */
export interface Readiness {
  sets: ReadonlyMap<TableName, readonly HeldSet[]>;
  /** After a hello that was not resumed: what it has reported since; it replaces `sets` with the ack of the full push. */
  since: ReadonlyMap<TableName, readonly HeldSet[]> | undefined;
}

/** One process of an executor, also one that was replaced: what bounds the time it may serve. */
export interface InstanceState {
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  /** Its grants end by lease no earlier than this: the maximum over everything ever handed to it. */
  leaseEndsAt: number;
  /** Newest revision that went to any of its sockets: a later epoch never went out. */
  sentRevision: Revision;
  /** Revokes that it has acknowledged, with the time from which they count as released. */
  stops: readonly StopLimit[];
}

export interface StopLimit extends Revoke {
  readonly endsAt: number;
}

export function newDelivery(): Delivery {
  return {
    acked: undefined,
    unacked: undefined,
    overdue: 0,
    pushAt: Number.NEGATIVE_INFINITY,
    refused: false,
    causes: [],
    lastCauses: [],
  };
}

/** Acks overdue in a row from which an executor gets nothing new. */
export const OVERDUE_CORDON = 3;

export function isCordoned(member: Member): boolean {
  return member.delivery.overdue >= OVERDUE_CORDON;
}
