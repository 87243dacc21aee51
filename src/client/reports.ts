import type { Failure, Grant } from "../model/grant.ts";
import { byId, type Epoch, type TableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import type { Handle } from "./handle.ts";

/** What the scheduler is to be told of partitions: the lists of a report frame. */
export interface Owed {
  readonly ready: readonly Grant[];
  readonly released: readonly Grant[];
  readonly failed: readonly Failure[];
}

interface Group {
  readonly table: TableName;
  readonly epoch: Epoch;
  readonly reason: string;
  readonly retryable: boolean;
  readonly partitions: number[];
}

/** Gathers partitions one by one into grant lists, ascending by table, then epoch. */
class Groups {
  readonly #groups = new Map<string, Group>();
  /** What was added to last, since partitions of one group mostly come together. */
  #last: Group | undefined;

  add(table: TableName, epoch: Epoch, partition: number, reason = "", retryable = true): void {
    const last = this.#last;
    const isSame =
      last?.table === table && last.epoch === epoch && last.retryable === retryable && last.reason === reason;
    const group = isSame ? last : this.#group(table, epoch, reason, retryable);
    group.partitions.push(partition);
    this.#last = group;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  *sorted(): IterableIterator<Failure> {
    const sorted = [...this.#groups.values()].sort(
      (a, b) =>
        byId(a.table, b.table) ||
        a.epoch - b.epoch ||
        byId(a.reason, b.reason) ||
        Number(a.retryable) - Number(b.retryable),
    );
    for (const { table, epoch, reason, retryable, partitions } of sorted) {
      yield { table, partitions: PartitionSet.of(partitions), epoch, reason, retryable };
    }
  }

  #group(table: TableName, epoch: Epoch, reason: string, retryable: boolean): Group {
    const id = `${table} ${epoch} ${retryable} ${reason}`;
    const group = this.#groups.get(id) ?? { table, epoch, reason, retryable, partitions: [] };
    this.#groups.set(id, group);
    return group;
  }
}

/** Builds what is owed to the scheduler from single partitions. */
export class ReportBuilder {
  readonly #ready = new Groups();
  readonly #released = new Groups();
  readonly #failed = new Groups();

  get isEmpty(): boolean {
    return this.#ready.isEmpty && this.#released.isEmpty && this.#failed.isEmpty;
  }

  /** What a handle has to say of itself: ready or failed under each of its epochs, or nothing yet. */
  addHandle(handle: Handle): void {
    for (const epoch of [handle.granted, handle.prepared]) {
      if (epoch === undefined) continue;
      if (handle.state === "loaded") this.#ready.add(handle.table, epoch, handle.partition);
      if (handle.state !== "failed" || handle.failure === undefined) continue;
      this.#failed.add(handle.table, epoch, handle.partition, handle.failure.reason, handle.failure.retryable);
    }
  }

  addReleased(table: TableName, epoch: Epoch, partition: number): void {
    this.#released.add(table, epoch, partition);
  }

  addOwed({ ready, released, failed }: Owed): void {
    for (const { table, partitions, epoch } of ready) for (const p of partitions) this.#ready.add(table, epoch, p);
    for (const { table, partitions, epoch } of released)
      for (const p of partitions) this.#released.add(table, epoch, p);
    for (const { table, partitions, epoch, reason, retryable } of failed) {
      for (const partition of partitions) this.#failed.add(table, epoch, partition, reason, retryable);
    }
  }

  build(): Owed {
    const grants = (groups: Groups): Grant[] =>
      Array.from(groups.sorted(), ({ table, partitions, epoch }) => ({ table, partitions, epoch }));
    return { ready: grants(this.#ready), released: grants(this.#released), failed: [...this.#failed.sorted()] };
  }
}
