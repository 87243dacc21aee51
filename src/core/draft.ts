import { fold } from "../ledger/fold.ts";
import { executorRecord, type Holder, type LedgerState } from "../ledger/state.ts";
import {
  type Cause,
  type Change,
  type ExecutorEntry,
  type ExecutorRecord,
  emptyChange,
  type OwnEntry,
  type ReleaseEntry,
  type TableEntry,
  type TableRecord,
  type UnownEntry,
} from "../model/change.ts";
import { byId, type ExecutorId, type TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import type { Answer } from "./effects.ts";
import { mergeCauses } from "./turn.ts";

/** A change while it is being decided. What it says so far can be looked at as a ledger: `tentative`. */
export class Draft {
  readonly release: ReleaseEntry[] = [];
  readonly unown: UnownEntry[] = [];
  readonly own: OwnEntry[] = [];
  readonly answers: { request: number; answer: Answer }[] = [];
  declared = false;
  readonly #causes: Cause[] = [];
  readonly #executors = new Map<ExecutorId, ExecutorEntry>();
  readonly #tables = new Map<TableName, TableEntry>();
  readonly #asked = new Map<TableName, PartitionSet>();

  constructor(
    readonly ledger: LedgerState,
    readonly term: number,
  ) {}

  get revision(): number {
    return this.ledger.revision + 1;
  }

  get isEmpty(): boolean {
    return this.entryCount === 0 && !this.declared;
  }

  get entryCount(): number {
    const { release, unown, own } = this;
    return this.#executors.size + this.#tables.size + release.length + unown.length + own.length;
  }

  putExecutor(entry: ExecutorEntry, cause: Cause): void {
    this.#executors.set(entry.executor, entry);
    this.addCause(cause);
  }

  putTable(entry: TableEntry, cause: Cause): void {
    this.#tables.set(entry.table, entry);
    this.addCause(cause);
  }

  addCause(cause: Cause): void {
    this.#causes.push(cause);
  }

  /** Why it does what it says so far, one of each kind. */
  get causes(): readonly Cause[] {
    return mergeCauses(this.#causes, []);
  }

  /** The record as this draft leaves it. */
  executor(executor: ExecutorId): ExecutorRecord | undefined {
    const entry = this.#executors.get(executor);
    if (entry === undefined) return executorRecord(this.ledger, executor);
    return "removed" in entry ? undefined : entry;
  }

  /** The record as this draft leaves it. */
  table(table: TableName): TableRecord | undefined {
    const entry = this.#tables.get(table);
    if (entry === undefined) return this.ledger.tables.get(table)?.record;
    return "removed" in entry ? undefined : entry;
  }

  /** Asks everything back that a process owns. */
  releaseAll(holder: Holder | undefined, to: ExecutorId | undefined): void {
    if (holder === undefined) return;
    for (const [table, sets] of holder.owned) {
      for (const { partitions } of sets) this.askBack(table, partitions, holder.executor, to);
    }
  }

  /** Asks partitions back from their owner, once: what this draft asks for already stays as it is. */
  askBack(table: TableName, partitions: PartitionSet, executor: ExecutorId, to: ExecutorId | undefined): void {
    const asked = this.#asked.get(table) ?? PartitionSet.empty;
    const fresh = partitions.difference(asked);
    if (fresh.isEmpty) return;
    this.#asked.set(table, asked.union(fresh));
    this.release.push({ table, partitions: fresh, executor, ...(to === undefined ? {} : { to }) });
  }

  /** The ledger as it will be if this is committed. */
  tentative(): LedgerState {
    return this.isEmpty ? this.ledger : fold(this.ledger, this.toChange([]));
  }

  toChange(cause: readonly Cause[]): Change {
    return {
      ...emptyChange(this.revision, this.term),
      cause,
      executors: [...this.#executors.values()].sort((a, b) => byId(a.executor, b.executor)),
      tables: [...this.#tables.values()].sort((a, b) => byId(a.table, b.table)),
      release: [...this.release].sort(byTableThenExecutor),
      unown: [...this.unown].sort(
        (a, b) => byId(a.table, b.table) || byId(a.reason, b.reason) || byId(a.to ?? "", b.to ?? ""),
      ),
      own: [...this.own].sort(byTableThenExecutor),
      ...(this.declared ? { declared: true as const } : {}),
    };
  }
}

interface OfExecutor {
  readonly table: TableName;
  readonly executor: ExecutorId;
  readonly to?: ExecutorId;
}

function byTableThenExecutor(a: OfExecutor, b: OfExecutor): number {
  return byId(a.table, b.table) || byId(a.executor, b.executor) || byId(a.to ?? "", b.to ?? "");
}
