import { readCell } from "../ledger/chunks.ts";
import {
  executorRecords,
  findHolder,
  type Holder,
  type LedgerState,
  STATE_OWNED,
  STATE_RELEASING,
  type TableState,
} from "../ledger/state.ts";
import type { UnownedReason } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import type { ExecutorId, TableName } from "../model/ids.ts";
import { PartitionSet, PartitionSetBuilder } from "../model/partition-set.ts";
import { preferLastOwner } from "../plan/last-owner.ts";
import { computePlan } from "../plan/plan.ts";
import { FIXED, type PlannedTable, UNOWNED } from "../plan/types.ts";
import type { Draft } from "./draft.ts";
import { isLeaseOver } from "./handoff.ts";
import { type PlanRequest, planRequest } from "./placement-input.ts";
import { type CoreState, instanceState, isRegistered } from "./state.ts";
import { log, type Turn } from "./turn.ts";

/**
 * Most entries of one change. A change of 50,000 entries is some MB as JSON: what a store writes in one go. What is over
 * follows in the next change, since a plan is compared with the ledger afresh after each.
 */
export const MAX_CHANGE_ENTRIES = 50_000;

/** Plans on `ledger`, which is as the draft leaves it so far, and puts the differences that can be made now into the draft. */
export function draftPlacement(turn: Turn, draft: Draft, ledger: LedgerState): void {
  const request = planRequest(turn.state, ledger, turn.now);
  const planned = plan(turn, request);
  if (planned === undefined) return;
  const placement = new Placement(turn, draft, ledger, request);
  request.tables.forEach((table, at) => {
    const target = planned[at];
    const asked = request.input.tables[at];
    assert(target !== undefined && asked !== undefined, "the plan has every table");
    placement.compare(table, asked.owner, target);
  });
}

/** A planner that fails changes nothing: ownership stays, and an alarm says so until it works again. */
function plan(turn: Turn, request: PlanRequest): readonly PlannedTable[] | undefined {
  const { alarms, recovery } = turn.state;
  if (recovery !== undefined) return asItStands(request);
  try {
    const planned = computePlan(request.input).tables;
    const tables = planned.map((table, at) => preferFormer(turn.state, request, at, table));
    alarms.delete("plan-failed");
    log(turn, "debug", "plan.computed", { executors: request.eligible.length, tables: tables.length });
    return tables;
  } catch (error) {
    alarms.set("plan-failed", `planning failed, ownership stays as it is: ${String(error)}`);
    log(turn, "error", "plan.failed", { error: String(error) });
    return undefined;
  }
}

/** During recovery: places that are kept, and handoffs that were begun, go to whom they are meant for; the rest stays. */
function asItStands({ input }: PlanRequest): readonly PlannedTable[] {
  return input.tables.map(({ owner }) => ({ owner: owner.map((at) => (at === UNOWNED ? FIXED : at)), unowned: [] }));
}

/** Where some executor of the plan had partitions of this table before it went, those go back to it by preference. */
function preferFormer(state: CoreState, request: PlanRequest, at: number, planned: PlannedTable): PlannedTable {
  const table = request.input.tables[at];
  assert(table !== undefined, "the plan has no table of its own");
  let last: Int32Array | undefined;
  request.eligible.forEach(({ executor }, index) => {
    for (const [low, high] of state.former
      .get(executor)
      ?.get(table.table as TableName)
      ?.ranges() ?? []) {
      last ??= new Int32Array(table.owner.length).fill(UNOWNED);
      last.fill(index, low, high + 1);
    }
  });
  return last === undefined ? planned : preferLastOwner(table, planned, last);
}

class Placement {
  readonly #turn: Turn;
  readonly #draft: Draft;
  readonly #ledger: LedgerState;
  readonly #request: PlanRequest;
  /** Partitions each process is still to give back, by slot. */
  readonly #releasing = new Map<number, number>();
  #releasingTotal = 0;
  /** Partitions each eligible executor has in its hands, by index. */
  readonly #held: number[];

  constructor(turn: Turn, draft: Draft, ledger: LedgerState, request: PlanRequest) {
    this.#turn = turn;
    this.#draft = draft;
    this.#ledger = ledger;
    this.#request = request;
    for (const holder of ledger.holders) {
      if (holder === undefined) continue;
      const open = holder.releasingCount - this.#endedCount(holder);
      this.#releasing.set(holder.slot, open);
      this.#releasingTotal += open;
    }
    this.#held = request.eligible.map(({ executor, instance }) => {
      const holder = findHolder(ledger, executor, instance);
      return holder === undefined ? 0 : holder.ownedCount + holder.releasingCount - this.#endedCount(holder);
    });
  }

  /** Collects what one table needs, then writes it as entries. */
  compare(table: TableState, standing: Int32Array, target: PlannedTable): void {
    const entries = new TableEntries(this.#draft, table.record.table);
    const name = table.record.table;
    const failed = this.#request.failed.get(name) ?? PartitionSet.empty;
    const reasons = new Map(target.unowned.map(({ partition, reason }) => [partition, reason]));
    const ended = this.#endedIn(name);
    for (let partition = 0; partition < table.record.count; partition++) {
      const to = target.owner[partition] ?? UNOWNED;
      const cell = readCell(table.chunks, partition);
      // By far the most: whoever owns it is to keep it.
      if (cell.state === STATE_OWNED && to !== UNOWNED && to === standing[partition]) continue;
      if (this.#draft.entryCount + entries.size >= MAX_CHANGE_ENTRIES) break;
      const reason = reasons.get(partition) ?? "capacity";
      if (cell.state === STATE_OWNED) this.#compareOwned(entries, partition, cell.holder, to, reason, failed);
      else if (cell.state !== STATE_RELEASING || ended(partition, cell.holder)) {
        this.#compareFree(entries, table, partition, cell, to, reason);
      }
    }
    entries.write((index) => this.#request.eligible[index]);
  }

  #compareOwned(
    entries: TableEntries,
    partition: number,
    slot: number,
    to: number,
    reason: UnownedReason,
    failed: PartitionSet,
  ): void {
    if (to === FIXED) return;
    const holder = this.#ledger.holders[slot];
    assert(holder !== undefined, `holder ${slot} of an owned partition is missing`);
    const taker = this.#request.eligible[to];
    const hasFailed = failed.has(partition);
    // What failed is asked back from whoever is to have it next, be it the same executor.
    if (taker?.executor === holder.executor && taker.instance === holder.instance && !hasFailed) return;
    const forced = hasFailed || this.#mustGo(holder, to, reason);
    if (!forced && !this.#mayMove(slot)) return;
    this.#countMove(slot);
    entries.release(partition, holder.executor, taker?.executor);
  }

  /** What leaves is waited for until it has a taker, its deadline is over, or nobody could ever take it. */
  #mustGo(holder: Holder, to: number, reason: UnownedReason): boolean {
    const { state, now } = this.#turn;
    const leaving = state.members.get(holder.executor)?.leaving;
    if (leaving === undefined) return false;
    return now >= leaving.deadlineAt || (to === UNOWNED && reason === "no-eligible-executor");
  }

  #mayMove(slot: number): boolean {
    const { perExecutor, total } = this.#turn.state.settings.moves;
    return (this.#releasing.get(slot) ?? 0) < perExecutor && this.#releasingTotal < total;
  }

  #countMove(slot: number): void {
    this.#releasing.set(slot, (this.#releasing.get(slot) ?? 0) + 1);
    this.#releasingTotal++;
  }

  /** Nobody may serve this partition: it is given away, or written down as unowned with the reason. */
  #compareFree(
    entries: TableEntries,
    table: TableState,
    partition: number,
    cell: { state: number; holder: number },
    to: number,
    reason: UnownedReason,
  ): void {
    const taker = this.#request.eligible[to];
    if (taker !== undefined) {
      if (this.#turn.now < this.#turn.state.grantsFrom) return;
      const held = this.#held[to] ?? 0;
      // Room that is still taken by what the taker gives back counts as taken: it is granted when that has ended.
      if (held >= taker.capacity) return;
      this.#held[to] = held + 1;
      entries.own(partition, to);
    } else if (to === FIXED) {
      if (cell.state === STATE_RELEASING) this.#reserve(entries, table, partition, cell.holder);
    } else {
      const settled = reason === "no-eligible-executor" && !this.#anyRegistered() ? "no-executor" : reason;
      const same = table.unowned.some(
        (set) => set.reason === settled && set.to === undefined && set.partitions.has(partition),
      );
      if (!same) entries.unown(partition, settled, undefined);
    }
  }

  /** Given back and kept for an executor that is away; or a retired number, which is over. */
  #reserve(entries: TableEntries, table: TableState, partition: number, slot: number): void {
    if (table.record.retired?.has(partition) === true) {
      entries.unown(partition, "no-executor", undefined);
      return;
    }
    const executor = this.#ledger.holders[slot]?.executor;
    if (executor !== undefined && this.#turn.state.reservations.has(executor))
      entries.unown(partition, "reserved", executor);
  }

  #anyRegistered(): boolean {
    this.#registered ??= executorRecords(this.#ledger).some(isRegistered);
    return this.#registered;
  }

  #registered: boolean | undefined;

  #endedIn(table: TableName): (partition: number, slot: number) => boolean {
    const ended = this.#turn.state.ended.get(table) ?? PartitionSet.empty;
    return (partition, slot) => ended.has(partition) || this.#isLost(this.#ledger.holders[slot]);
  }

  #endedCount(holder: Holder): number {
    if (this.#isLost(holder)) return holder.releasingCount;
    let count = 0;
    for (const [table, sets] of holder.releasing) {
      const ended = this.#turn.state.ended.get(table);
      if (ended !== undefined) for (const set of sets) count += set.partitions.intersect(ended).size;
    }
    return count;
  }

  /**
   * Decided lost in this very draft, and its lease is over: everything it had has ended. Who owned nothing is lost after
   * the wait alone, and what it was asked back may be served on until its lease ends.
   */
  #isLost(holder: Holder | undefined): boolean {
    if (holder === undefined) return false;
    const { state } = this.#turn;
    const member = state.members.get(holder.executor);
    if (member?.lost !== true || member.instance !== holder.instance) return false;
    return isLeaseOver(this.#turn, instanceState(state, holder.executor, holder.instance));
  }
}

/** The differences of one table, gathered by whom they concern. */
class TableEntries {
  readonly #draft: Draft;
  readonly #table: TableName;
  readonly #own = new Map<number, PartitionSetBuilder>();
  readonly #release = new Map<string, { executor: ExecutorId; to: ExecutorId | undefined; set: PartitionSetBuilder }>();
  readonly #unown = new Map<string, { reason: UnownedReason; to: ExecutorId | undefined; set: PartitionSetBuilder }>();

  constructor(draft: Draft, table: TableName) {
    this.#draft = draft;
    this.#table = table;
  }

  get size(): number {
    return this.#own.size + this.#release.size + this.#unown.size;
  }

  own(partition: number, to: number): void {
    const set = this.#own.get(to) ?? new PartitionSetBuilder();
    this.#own.set(to, set.add(partition));
  }

  release(partition: number, executor: ExecutorId, to: ExecutorId | undefined): void {
    const key = `${executor} ${to ?? ""}`;
    const entry = this.#release.get(key) ?? { executor, to, set: new PartitionSetBuilder() };
    entry.set.add(partition);
    this.#release.set(key, entry);
  }

  unown(partition: number, reason: UnownedReason, to: ExecutorId | undefined): void {
    const key = `${reason} ${to ?? ""}`;
    const entry = this.#unown.get(key) ?? { reason, to, set: new PartitionSetBuilder() };
    entry.set.add(partition);
    this.#unown.set(key, entry);
  }

  write(
    eligible: (
      index: number,
    ) => { executor: ExecutorId; instance: PlanRequest["eligible"][number]["instance"] } | undefined,
  ): void {
    const { release, unown, own } = this.#draft;
    const table = this.#table;
    for (const { executor, to, set } of this.#release.values()) {
      release.push({ table, partitions: set.build(), executor, ...(to === undefined ? {} : { to }) });
    }
    for (const { reason, to, set } of this.#unown.values()) {
      unown.push({ table, partitions: set.build(), reason, ...(to === undefined ? {} : { to }) });
    }
    for (const [index, set] of this.#own) {
      const taker = eligible(index);
      assert(taker !== undefined, "the plan names executors by their index");
      own.push({ table, partitions: set.build(), executor: taker.executor, instance: taker.instance });
    }
  }
}
