import { executorRecord, findHolder, type Holder, holderKey } from "../ledger/state.ts";
import type { Grant, Revoke } from "../model/grant.ts";
import type { Epoch, ExecutorId, InstanceId, TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { stretched } from "../model/settings.ts";
import type { InstanceState } from "./fleet/member.ts";
import { type CoreState, endedIn, instanceState } from "./state.ts";
import type { Turn } from "./turn.ts";

/**
 * When a grant has ended. A releasing partition may be given away only then, and only these ways lead there
 * (PROTOCOL §2.3 rule 4): its own process reported it released; its stop limit passed; the lease of its process ran out;
 * or the grant never went to any socket.
 */

/** What a process still has to give back: releasing and not ended. Revokes, ascending by table, then epoch. */
export function awaited(state: CoreState, holder: Holder | undefined): Revoke[] {
  if (holder === undefined) return [];
  return [...holder.releasing].sort(byTable).flatMap(([table, sets]) => {
    const stopMs = stopLimitMs(state, table);
    const byEpoch = new Map<Epoch, PartitionSet>();
    for (const set of sets) {
      const open = set.partitions.difference(endedIn(state, table));
      if (!open.isEmpty) byEpoch.set(set.epoch, open.union(byEpoch.get(set.epoch) ?? PartitionSet.empty));
    }
    return [...byEpoch].map(([epoch, partitions]) => ({ table, partitions, epoch, stopMs }));
  });
}

/** How long a revoked partition may be served; a limit that was shortened counts for later revokes only. */
export function stopLimitMs(state: CoreState, table: TableName): number {
  const configured = state.ledger.tables.get(table)?.record.stopMs ?? 0;
  return Math.max(configured, state.stopFloors.get(table) ?? 0);
}

/** A process says that it serves nothing of these under this or an earlier epoch. What is not being revoked is ignored. */
export function endReleased(turn: Turn, executor: ExecutorId, instance: InstanceId, released: readonly Grant[]): void {
  const holder = findHolder(turn.state.ledger, executor, instance);
  if (holder === undefined) return;
  for (const { table, epoch, partitions } of released) {
    for (const set of holder.releasing.get(table) ?? []) {
      if (set.epoch === epoch) markEnded(turn.state, table, set.partitions.intersect(partitions));
    }
  }
}

/** The first ack of a push that names a revoke starts its stop limit; a repeat never moves it. */
export function startStopLimits(
  turn: Turn,
  executor: ExecutorId,
  instance: InstanceId,
  revoked: readonly Revoke[],
): void {
  const { state, now } = turn;
  const track = instanceState(state, executor, instance);
  const started = revoked.flatMap((revoke) => {
    const partitions = track.stops
      .filter((stop) => stop.table === revoke.table && stop.epoch === revoke.epoch)
      .reduce((left, stop) => left.difference(stop.partitions), revoke.partitions);
    if (partitions.isEmpty) return [];
    return [{ ...revoke, partitions, endsAt: now + stretched(revoke.stopMs, state.settings.lease) }];
  });
  if (started.length === 0) return;
  track.stops = [...track.stops, ...started];
  armStopLimit(state, track);
}

/** Ends what stands past its stop limit at this process. */
export function endStopped(turn: Turn, track: InstanceState): void {
  const { state, now } = turn;
  const over = track.stops.filter((stop) => stop.endsAt <= now);
  track.stops = track.stops.filter((stop) => stop.endsAt > now);
  for (const stop of over) {
    const holder = findHolder(state.ledger, track.executor, track.instance);
    for (const set of holder?.releasing.get(stop.table) ?? []) {
      if (set.epoch !== stop.epoch) continue;
      const fresh = set.partitions.intersect(stop.partitions).difference(endedIn(state, stop.table));
      if (fresh.isEmpty) continue;
      markEnded(state, stop.table, fresh);
      turn.effects.push({
        type: "log",
        level: "warn",
        event: "handoff.timeout",
        fields: {
          executor: track.executor,
          instance: track.instance,
          table: stop.table,
          partitions: fresh,
          epoch: stop.epoch,
          stopMs: stop.stopMs,
        },
      });
    }
  }
  armStopLimit(state, track);
}

/** If the lease of this process has run out, what it was asked back has ended; else this is looked at again when it does. */
export function endByLease(turn: Turn, track: InstanceState): void {
  const { state } = turn;
  if (!isLeaseOver(turn, track)) {
    state.deadlines.set(`lease ${holderKey(track.executor, track.instance)}`, leaseOverAt(state, track));
    return;
  }
  endReleasing(turn.state, findHolder(turn.state.ledger, track.executor, track.instance), () => true);
}

/** True if nothing that this process was ever granted may still be served. */
export function isLeaseOver({ state, now }: Turn, track: InstanceState): boolean {
  return now >= leaseOverAt(state, track);
}

function leaseOverAt(state: CoreState, track: InstanceState): number {
  return Math.max(track.leaseEndsAt, state.holdUntil);
}

/** Epochs that never went to any socket need nobody's word. */
export function endNeverSent(turn: Turn, executor: ExecutorId, instance: InstanceId): void {
  const { sentRevision } = instanceState(turn.state, executor, instance);
  endReleasing(turn.state, findHolder(turn.state.ledger, executor, instance), (epoch) => epoch > sentRevision);
}

/** Given away or unowned: no longer releasing. */
export function forgetEnded(state: CoreState, table: TableName, partitions: PartitionSet): void {
  const before = state.ended.get(table);
  if (before === undefined) return;
  const left = before.difference(partitions);
  const ended = new Map(state.ended);
  if (left.isEmpty) ended.delete(table);
  else ended.set(table, left);
  state.ended = ended;
}

/** Forgets a process that is not the registered one, holds nothing and has no session. */
export function forgetInstance(state: CoreState, track: InstanceState): void {
  if (findHolder(state.ledger, track.executor, track.instance) !== undefined) return;
  if (state.members.get(track.executor)?.instance === track.instance) return;
  if (executorRecord(state.ledger, track.executor)?.instance === track.instance) return;
  const key = holderKey(track.executor, track.instance);
  state.instances.delete(key);
  state.deadlines.clear(`lease ${key}`);
  state.deadlines.clear(`stop ${key}`);
}

function endReleasing(state: CoreState, holder: Holder | undefined, applies: (epoch: Epoch) => boolean): void {
  for (const [table, sets] of holder?.releasing ?? []) {
    for (const set of sets) if (applies(set.epoch)) markEnded(state, table, set.partitions);
  }
}

function markEnded(state: CoreState, table: TableName, partitions: PartitionSet): void {
  const before = endedIn(state, table);
  const after = before.union(partitions);
  if (after.size === before.size) return;
  state.ended = new Map(state.ended).set(table, after);
  state.stale = true;
}

function armStopLimit(state: CoreState, track: InstanceState): void {
  const next = track.stops.reduce((earliest, stop) => Math.min(earliest, stop.endsAt), Number.POSITIVE_INFINITY);
  state.deadlines.set(`stop ${holderKey(track.executor, track.instance)}`, next);
}

function byTable([a]: readonly [TableName, unknown], [b]: readonly [TableName, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
