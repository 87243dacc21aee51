/**
 * What a plan is made from and what it is. Plain data and typed arrays; a planner is a pure function between the two.
 * Equal inputs give equal plans.
 */

/** In `owner`: nobody has this partition, it is free to be placed. */
export const UNOWNED = -1;
/** In `owner`: not the planner's to place (its owner is suspect or cordoned, it is reserved, or parked). Left out of quotas. */
export const FIXED = -2;

/** An executor that may be given partitions. */
export interface PlanExecutor {
  readonly executor: string;
  /** Share relative to others, above 0. */
  readonly weight: number;
  /** Most partitions over all tables of the input; absent: no limit. */
  readonly capacity?: number;
}

export interface PlanTable {
  readonly table: string;
  /** Per partition: index of its owner in `executors`, or UNOWNED, or FIXED. Handoffs begun count as done. Not written to. */
  readonly owner: Int32Array;
  /** Partition → indexes of executors that must not be given it (they may keep what they have), ascending. */
  readonly excluded?: ReadonlyMap<number, readonly number[]>;
}

export interface PlanInput {
  /** Ascending by id. */
  readonly executors: readonly PlanExecutor[];
  /** Ascending by name. */
  readonly tables: readonly PlanTable[];
}

/** Why a partition stays unowned in a plan. */
export type PlanUnownedReason = "no-eligible-executor" | "capacity" | "backoff";

export interface PlanResult {
  /** In the order of the input's tables. */
  readonly tables: readonly PlannedTable[];
}

export interface PlannedTable {
  /**
   * Per partition: index of the executor that is to own it, UNOWNED, or FIXED where the input has it. Not to be written to: the
   * input's own array where nothing of the table changes.
   */
  readonly owner: Int32Array;
  /** Ascending by partition: those that are UNOWNED, with the reason. */
  readonly unowned: readonly { readonly partition: number; readonly reason: PlanUnownedReason }[];
}

export type Planner = (input: PlanInput) => PlanResult;
