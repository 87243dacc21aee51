import type { Failure, Grant } from "../model/grant.ts";
import type { ExecutorId, TableName } from "../model/ids.ts";
import type { PartitionSet } from "../model/partition-set.ts";
import type { Member } from "./fleet/member.ts";
import type { CoreState } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/**
 * Partitions that an executor could not take: revoked there, placed elsewhere, and not offered to it again before a time
 * that doubles with each failure. `retryable: false` lasts as long as the process does.
 */

export function backoffKey(executor: ExecutorId, table: TableName, partition: number): string {
  return `${executor} ${table} ${partition}`;
}

/** Notes failures of partitions that it really owns under that epoch; `owned` is that part of the report. */
export function noteFailure(turn: Turn, member: Member, failure: Failure, owned: PartitionSet): void {
  const { state, now } = turn;
  const { executor, instance } = member;
  const { backoffMs, maxBackoffMs } = state.settings.rejection;
  for (const partition of owned) {
    const key = backoffKey(executor, failure.table, partition);
    const failures = (state.backoffs.get(key)?.failures ?? 0) + 1;
    const waitMs = failure.retryable
      ? Math.min(backoffMs * 2 ** (failures - 1), maxBackoffMs)
      : Number.POSITIVE_INFINITY;
    state.backoffs.set(key, { executor, table: failure.table, partition, failures, until: now + waitMs, instance });
    state.deadlines.set(`backoff ${key}`, now + waitMs);
  }
  state.failures = [...state.failures, { executor, table: failure.table, partitions: owned }];
  state.stale = true;
  const { table, epoch, reason, retryable } = failure;
  log(turn, "warn", "push.rejected", {
    executor,
    session: member.session,
    table,
    partitions: owned,
    epoch,
    reason,
    retryable,
  });
}

/** It has them loaded: earlier failures are forgotten. Looks at what failed, since a report may name any number of partitions. */
export function forgetFailures(state: CoreState, member: Member, ready: readonly Grant[]): void {
  for (const [key, { executor, table, partition }] of state.backoffs) {
    if (executor !== member.executor) continue;
    if (!ready.some((grant) => grant.table === table && grant.partitions.has(partition))) continue;
    state.backoffs.delete(key);
    state.deadlines.clear(`backoff ${key}`);
  }
}

/** Forgets failures of which nobody will ask again: their executor or their table is gone. */
export function dropFailures(
  state: CoreState,
  gone: { readonly executor?: ExecutorId; readonly table?: TableName },
): void {
  for (const [key, { executor, table }] of state.backoffs) {
    if (executor !== gone.executor && table !== gone.table) continue;
    state.backoffs.delete(key);
    state.deadlines.clear(`backoff ${key}`);
  }
}

/** Executors of a table that must not be given a partition now, by partition. */
export function backedOff(
  state: CoreState,
  now: number,
): ReadonlyMap<TableName, ReadonlyMap<number, readonly ExecutorId[]>> {
  const byTable = new Map<TableName, Map<number, ExecutorId[]>>();
  for (const { executor, table, partition, until, instance } of state.backoffs.values()) {
    if (until <= now) continue;
    if (until === Number.POSITIVE_INFINITY && state.members.get(executor)?.instance !== instance) continue;
    const byPartition = byTable.get(table) ?? new Map<number, ExecutorId[]>();
    byTable.set(table, byPartition);
    byPartition.set(partition, [...(byPartition.get(partition) ?? []), executor].sort());
  }
  return byTable;
}
