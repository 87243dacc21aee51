import type { Cause, Change } from "../model/change.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { Grant, PartitionKey, Revoke, TableFacts } from "../model/grant.ts";
import type { ExecutorId, Revision, SessionId, TableName } from "../model/ids.ts";

/**
 * What the core wants done. The driver carries effects out in their order.
 *
 * Durable before visible: `store.append` is the only way to change ownership, and a push that rests on a change is only
 * ever made from the event `change.committed` of that change, so no order of carrying effects out can show more than is durable.
 */
export type Effect =
  | { readonly type: "store.append"; readonly change: Change }
  | SessionEffect
  | { readonly type: "request.answered"; readonly request: number; readonly answer: Answer }
  | LogEffect
  /** Every session is gone, or the time for it is up. */
  | { readonly type: "shutdown.finished" };

/** Effects that the gateway carries out. One for a session that is gone is dropped. */
export type SessionEffect =
  | ({ readonly type: "session.welcome"; readonly session: SessionId } & Welcome)
  | ({ readonly type: "session.push"; readonly session: SessionId; readonly executor: ExecutorId } & Push)
  /** `revision` is the ledger's, for the stamp. */
  | ({
      readonly type: "session.lease";
      readonly session: SessionId;
      readonly n: number;
      readonly revision: Revision;
    } & LeaseTerms)
  | { readonly type: "session.goaway"; readonly session: SessionId; readonly afterMs: number; readonly reason: string }
  | { readonly type: "session.left"; readonly session: SessionId }
  /** Closes the socket. With `refused`, that frame is sent first. After it the core sends nothing more to this session. */
  | {
      readonly type: "session.close";
      readonly session: SessionId;
      readonly code: number;
      readonly reason: string;
      readonly refused?: Refused;
    };

export interface LeaseTerms {
  readonly durationMs: number;
  readonly renewMs: number;
}

export interface Welcome {
  readonly cluster: string;
  readonly incarnation: string;
  readonly term: number;
  /** The ledger's revision, for the stamp. */
  readonly revision: Revision;
  readonly resumed: boolean;
  readonly status: "pending" | "assigned";
  readonly waitingFor?: string;
  readonly lease: LeaseTerms & { readonly clientMarginMs: number };
}

/** Ownership from `base` to `revision`, whole; the gateway pages it. Lists are ascending by table, then epoch. */
export interface Push {
  readonly revision: Revision;
  /** null: replaces everything. */
  readonly base: Revision | null;
  readonly grant: readonly Grant[];
  readonly prepare: readonly Grant[];
  readonly revoke: readonly Revoke[];
  readonly tables: readonly TableFacts[];
  readonly keys: readonly PartitionKey[];
  readonly cause: readonly Cause[];
}

export interface Refused {
  readonly retryAfterMs?: number;
  readonly leader?: string;
}

/** Answer to a table command: made, the same already, or refused. */
export type Answer =
  | { readonly ok: true; readonly revision: Revision; readonly table?: TableName }
  | { readonly ok: false; readonly code: ErrorCode; readonly detail: string; readonly hint?: string };

export type LogLevel = "debug" | "info" | "warn" | "error";

/** One log line. `event` is a stable name; `fields` are plain data, sets included as sets. */
export interface LogEffect {
  readonly type: "log";
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}
