import type { Epoch, TableName } from "./ids.ts";
import type { PartitionSet } from "./partition-set.ts";

/** Partitions of one table under one epoch. An array of these is a grant list, ascending by table, then epoch. */
export interface Grant {
  readonly table: TableName;
  readonly partitions: PartitionSet;
  readonly epoch: Epoch;
}

/** Partitions asked back. `stopMs` is the longest time they may still be served after the revoke was applied. */
export interface Revoke extends Grant {
  readonly stopMs: number;
}

/** Partitions that an executor could not take. `retryable: false`: this process never will. */
export interface Failure extends Grant {
  readonly reason: string;
  readonly retryable: boolean;
}

/** How a table's partitions change hands. */
export type Handoff = "exclusive" | "overlap";

/** What a push says of each table that it names. */
export interface TableFacts {
  readonly table: TableName;
  readonly count: number;
  readonly created: number;
  readonly handoff: Handoff;
}

/** Key of a partition in a table that has keys. */
export interface PartitionKey {
  readonly table: TableName;
  readonly partition: number;
  readonly key: string;
}
