import type { Change, ExecutorTraits, TableOrigin, TableSpec } from "../model/change.ts";
import type { Failure, Grant } from "../model/grant.ts";
import type { ExecutorId, InstanceId, Revision, SessionId, TableName } from "../model/ids.ts";

/**
 * Everything that can happen to the core. Names are past tense; an event carries values, never objects that live on.
 * Events of one session come in the order of its frames, and none comes after its `session.closed`.
 */
export type Event =
  | HelloReceived
  | { readonly type: "renew.received"; readonly session: SessionId; readonly n: number }
  | { readonly type: "ack.received"; readonly session: SessionId; readonly revision: Revision }
  | ReportReceived
  | ({ readonly type: "update.received"; readonly session: SessionId } & Partial<Omit<ExecutorTraits, "zone" | "slot">>)
  | { readonly type: "leave.received"; readonly session: SessionId; readonly mode: LeaveMode }
  /** The socket is gone, whoever ended it and however. */
  | { readonly type: "session.closed"; readonly session: SessionId; readonly code: number }
  /** The append of exactly this change is durable. */
  | { readonly type: "change.committed"; readonly change: Change }
  /** The append did not land and never will. The core decides afresh. */
  | { readonly type: "append.failed"; readonly revision: Revision; readonly error: string }
  | ({ readonly type: "table.put"; readonly spec: TableSpec; readonly origin: TableOrigin } & TableRequest)
  | ({ readonly type: "table.deleted"; readonly table: TableName } & TableRequest)
  /** The configuration's tables, at a start. Tables of origin `file` that it does not list are deleted. */
  | { readonly type: "tables.declared"; readonly request: number; readonly specs: readonly TableSpec[] }
  /** The loop did not turn for this long: what executors sent meanwhile waits in the sockets. */
  | { readonly type: "loop.stalled"; readonly stalledMs: number }
  | { readonly type: "shutdown.requested" };

/** A command that is answered under its number. With `ifRevision` it counts only if the ledger stands there when it is decided. */
export interface TableRequest {
  readonly request: number;
  readonly ifRevision?: Revision;
}

export interface HelloReceived extends ExecutorTraits {
  readonly type: "hello.received";
  readonly session: SessionId;
  readonly executor: ExecutorId;
  readonly instance: InstanceId;
  readonly attempt: number;
  readonly resume?: { readonly incarnation: string; readonly revision: Revision };
  /** What its stamp proves; absent if it had none, or none that this store's scheduler made. */
  readonly proof?: StampProof;
}

/** A scheduler of this incarnation stood at this revision, in this term. */
export interface StampProof {
  readonly term: number;
  readonly revision: Revision;
}

export interface ReportReceived {
  readonly type: "report.received";
  readonly session: SessionId;
  readonly ready: readonly Grant[];
  readonly released: readonly Grant[];
  readonly failed: readonly Failure[];
}

/** `move`: everything is moved away first. `restart`: everything is revoked at once and its place kept for a while. */
export type LeaveMode = "move" | "restart";
