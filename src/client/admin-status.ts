/** What `GET /v1/status` and the table routes answer, as it stands on the wire: partition sets are text. */

export type StatusState =
  | "pending"
  | "forming"
  | "recovering"
  | "held"
  | "paused"
  | "store-failed"
  | "working"
  | "converged";

export interface Status {
  readonly cluster: string;
  readonly incarnation: string;
  readonly term: number;
  readonly role: "leader" | "standby";
  readonly revision: number;
  readonly state: StatusState;
  readonly converged: boolean;
  /** Why it is not converged, in words. */
  readonly waitingFor: readonly string[];
  readonly windows: readonly { readonly kind: string; readonly closesInMs: number }[];
  readonly tables: readonly TableStatus[];
  readonly executors: readonly ExecutorStatus[];
  readonly alarms: readonly { readonly code: string; readonly text: string }[];
}

export interface TableStatus {
  readonly table: string;
  readonly count: number;
  readonly owned: number;
  readonly releasing: number;
  readonly preparing: number;
  readonly unowned: readonly { readonly partitions: string; readonly reason: string; readonly to?: string }[];
}

export interface ExecutorStatus {
  readonly executor: string;
  readonly instance: string;
  readonly state: string;
  readonly cordoned: boolean;
  readonly connected: boolean;
  readonly suspect: boolean;
  readonly owned: number;
  readonly ready: number;
  readonly leaseLeftMs: number;
  readonly acked: number | null;
  readonly unacked?: { readonly revision: number; readonly sinceMs: number };
}

/** What a table is asked to be. Durations are text such as `30s`. */
export interface TableRequest {
  readonly partitions?: number;
  readonly keys?: readonly string[];
  readonly handoff?: "exclusive" | "overlap";
  readonly stop?: string;
  readonly balance?: "count" | "load";
  readonly selector?: Readonly<Record<string, string>>;
}

/** A table as the scheduler has it. */
export interface TableView {
  readonly name: string;
  readonly count: number;
  readonly created: number;
  readonly handoff: "exclusive" | "overlap";
  readonly stop: string;
  readonly balance: "count" | "load";
  readonly selector: Readonly<Record<string, string>>;
  readonly keys?: readonly (string | null)[];
  readonly origin: "file" | "api";
  readonly removing?: boolean;
}

export interface TableAnswer {
  readonly table: TableView;
  readonly revision: number;
}

export interface Version {
  readonly version: string;
}
