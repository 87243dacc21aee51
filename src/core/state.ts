import { executorRecord, findHolder, holderKey, type LedgerState } from "../ledger/state.ts";
import type {
  Cause,
  Change,
  ExecutorEntry,
  ExecutorRecord,
  ExecutorState,
  TableOrigin,
  TableSpec,
} from "../model/change.ts";
import { byId, type ExecutorId, type InstanceId, type SessionId, type TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import type { Settings } from "../model/settings.ts";
import type { Answer } from "./effects.ts";
import type { HelloReceived, TableRequest } from "./events.ts";
import type { Deadlines } from "./fleet/deadlines.ts";
import type { InstanceState, Member } from "./fleet/member.ts";

/**
 * Everything the scheduler knows. `ledger` is immutable and durable; the rest is volatile, written in place, and made anew
 * at each start. Only `step` may touch it.
 */
export interface CoreState {
  settings: Settings;
  readonly term: number;
  ledger: LedgerState;
  /** Sums over the ledger's tables, made anew with each fold. */
  totals: Totals;
  readonly members: Map<ExecutorId, Member>;
  /** Sessions that said hello and were not closed. */
  readonly sessions: Map<SessionId, ExecutorId>;
  readonly instances: Map<string, InstanceState>;
  /** New instances of registered executors, not yet committed; their welcome waits for that. */
  readonly replacements: Map<ExecutorId, Replacement>;
  readonly deadlines: Deadlines;
  /** Releasing partitions whose grants have ended: free to be given away. */
  ended: ReadonlyMap<TableName, PartitionSet>;
  /** Executors that planned restarts keep a place for, with the time at which that ends. */
  readonly reservations: Map<ExecutorId, number>;
  /** Executors that left or were lost long enough ago to be forgotten. */
  readonly forgettable: Set<ExecutorId>;
  /** What executors had when they were lost or left, to be preferred when they are back. */
  readonly former: Map<ExecutorId, ReadonlyMap<TableName, PartitionSet>>;
  /** Partitions an executor failed to take, by backoffKey. */
  readonly backoffs: Map<string, Backoff>;
  /** Failed partitions that are still owned: to be asked back with the next decision. */
  failures: readonly FailedPartitions[];
  /** Executors with a session that no decision has counted yet. */
  readonly newcomers: Set<ExecutorId>;
  window: Window | undefined;
  /** While the owners of an earlier reign are waited for. */
  recovery: Recovery | undefined;
  /** No grant ends by lease before this: an earlier reign may have handed out leases until then. */
  readonly leaseFloor: number;
  /** After a restore nothing is granted before this: somebody may hold leases of changes that were lost. */
  readonly grantsFrom: number;
  /** The present coldness was decided once; newcomers come by the join window. */
  formed: boolean;
  /** Causes of what is still under way; empty when nothing is. */
  causes: readonly Cause[];
  commands: readonly Command[];
  append: Append | undefined;
  /** No append before this, after one that failed. */
  appendAt: number;
  /** Something changed that a plan depends on. */
  stale: boolean;
  /** Executors whose session may lack something. */
  readonly undelivered: Set<ExecutorId>;
  /** No expiry counts before this: what executors sent may still wait in the sockets. */
  holdUntil: number;
  /** Longest stop limit of a table while revokes under an earlier, longer one are out. */
  readonly stopFloors: Map<TableName, number>;
  stopping: Stopping | undefined;
  readonly alarms: Map<string, string>;
}

/** Alarm of a store that did not take the last change. */
export const STORE_FAILED = "store-failed";

/** Alarm of a store that lost changes: nothing is decided while it stands. */
export const ROLLED_BACK = "store-rolled-back";

export interface Totals {
  readonly partitions: number;
  readonly owned: number;
  readonly releasing: number;
  readonly reserved: number;
}

export interface Replacement {
  readonly hello: HelloReceived;
  /** Earlier instances that asked for the same place and were not committed either. */
  readonly older: readonly InstanceId[];
}

/** A bounded wait that gathers hellos before a decision. */
export interface Window {
  readonly kind: "formation" | "join";
  readonly openedAt: number;
  readonly lastHelloAt: number;
}

/** A start that found owners. */
export interface Recovery {
  readonly startedAt: number;
  readonly endsAt: number;
  /** It was told to the log. */
  announced: boolean;
  /** How many owners there were. */
  readonly owners: number;
  /** Those of them that were not heard yet. */
  readonly missing: Set<ExecutorId>;
}

export type Command =
  | ({ readonly kind: "put"; readonly spec: TableSpec; readonly origin: TableOrigin } & TableRequest)
  | ({ readonly kind: "delete"; readonly table: TableName } & TableRequest)
  | { readonly kind: "declare"; readonly request: number; readonly specs: readonly TableSpec[] };

/** The one append that is under way, and what follows from it when it is durable. */
export interface Append {
  readonly since: number;
  readonly change: Change;
  /** Its executor entries, by id. */
  readonly executors: ReadonlyMap<ExecutorId, ExecutorEntry>;
  readonly answers: readonly { readonly request: number; readonly answer: Answer }[];
  readonly commands: readonly Command[];
  readonly failures: readonly FailedPartitions[];
}

export interface FailedPartitions {
  readonly executor: ExecutorId;
  readonly table: TableName;
  readonly partitions: PartitionSet;
}

export interface Backoff {
  readonly executor: ExecutorId;
  readonly table: TableName;
  readonly partition: number;
  readonly failures: number;
  /** Not given to this executor before; Infinity: never to this instance. */
  readonly until: number;
  readonly instance: InstanceId;
}

export interface Stopping {
  readonly deadlineAt: number;
  finished: boolean;
}

export function sumTotals(ledger: LedgerState): Totals {
  let [partitions, owned, releasing, reserved] = [0, 0, 0, 0];
  for (const table of ledger.tables.values()) {
    const { record } = table;
    if (record.removing === undefined) partitions += record.count - (record.retired?.size ?? 0);
    owned += table.owned;
    releasing += table.releasing;
    for (const set of table.unowned) if (set.reason === "reserved") reserved += set.partitions.size;
  }
  return { partitions, owned, releasing, reserved };
}

/** Ascending by id, so that nothing depends on who came first. */
export function membersInOrder(state: CoreState): Member[] {
  return [...state.members.values()].sort((a, b) => byId(a.executor, b.executor));
}

/** The state of one process, made at its first use. */
export function instanceState(state: CoreState, executor: ExecutorId, instance: InstanceId): InstanceState {
  const key = holderKey(executor, instance);
  const known = state.instances.get(key);
  if (known !== undefined) return known;
  const fresh: InstanceState = {
    executor,
    instance,
    leaseEndsAt: state.leaseFloor,
    sentRevision: Number.NEGATIVE_INFINITY,
    stops: [],
  };
  state.instances.set(key, fresh);
  return fresh;
}

/** Live, draining or cordoned in the ledger: not left, not lost. */
export function isRegistered(record: ExecutorRecord | undefined): record is RegisteredRecord {
  return record !== undefined && record.state !== "left" && record.state !== "lost";
}

export type RegisteredRecord = ExecutorRecord & { readonly state: Exclude<ExecutorState, "left" | "lost"> };

/** The ledger's record of a member, if it names this very instance as registered and nothing else was decided since. */
export function registration(state: CoreState, member: Member): ExecutorRecord | undefined {
  if (member.lost) return undefined;
  const record = executorRecord(state.ledger, member.executor);
  return isRegistered(record) && record.instance === member.instance ? record : undefined;
}

/** The record of this executor in the change that is under way, if it is in it: what it says may hold any moment. */
export function recordUnderWay(state: CoreState, executor: ExecutorId): ExecutorRecord | undefined {
  const entry = state.append?.executors.get(executor);
  return entry === undefined || "removed" in entry ? undefined : entry;
}

export function holderOf(state: CoreState, member: Member) {
  return findHolder(state.ledger, member.executor, member.instance);
}

export function endedIn(state: CoreState, table: TableName): PartitionSet {
  return state.ended.get(table) ?? PartitionSet.empty;
}
