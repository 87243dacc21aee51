import type * as status from "../model/status.ts";

/** What `GET /v1/status` and the table routes answer, as it stands on the wire: partition sets are text. */

export type Status = status.AsJson<status.Status>;
export type TableStatus = status.AsJson<status.TableStatus>;
export type ExecutorStatus = status.AsJson<status.ExecutorStatus>;

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
