import { PartitionSet } from "../../model/partition-set.ts";

/** Why everything that was held is to be stopped at once. */
export type StopLineReason = "lapsed" | "replaced" | "incarnation" | "refused" | "closed";

/** A partition that is granted or asked back. `stopMs` only when it is asked back: how long it may still be served. */
export interface LineEvent {
  readonly type: "grant" | "revoke";
  readonly table: string;
  readonly partition: number;
  readonly epoch: number;
  readonly key?: string;
  readonly stopMs?: number;
}

interface Group {
  readonly type: LineEvent["type"];
  readonly table: string;
  readonly epoch: number;
  readonly partitions: number[];
  readonly keys: { readonly partition: number; readonly key: string }[];
  stopMs: number | undefined;
}

/** How long partitions are gathered for one line: a large share reaches the handlers in slices of some 10 ms. */
export const GATHER_MS = 25;

/**
 * Writes what happens to single partitions as lines, one for all that come within GATHER_MS with the same table and epoch. A
 * revoke never stands before the grant that it ends, and nothing moves over a stop.
 */
export class LineWriter {
  readonly #write: (text: string) => void;
  #groups: Group[] = [];
  /** The last group of a table and epoch: the only one that may still take a partition in. */
  #last = new Map<string, Group>();
  #isScheduled = false;
  #isStopped = true;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  add(event: LineEvent): void {
    this.#isStopped = false;
    const id = `${event.table} ${event.epoch}`;
    const last = this.#last.get(id);
    const group = last?.type === event.type ? last : this.#begin(id, event);
    group.partitions.push(event.partition);
    if (event.key !== undefined) group.keys.push({ partition: event.partition, key: event.key });
    if (event.stopMs !== undefined) group.stopMs = Math.min(group.stopMs ?? event.stopMs, event.stopMs);
    this.#schedule();
  }

  /** Everything is to be stopped. One line, however many partitions bring it; none where nothing was granted since the last. */
  stop(reason: StopLineReason): void {
    if (this.#isStopped) return;
    this.flush();
    this.#isStopped = true;
    this.#write(`${JSON.stringify({ type: "stop", reason })}\n`);
  }

  /** Writes what is gathered. */
  flush(): void {
    const groups = this.#groups;
    this.#groups = [];
    this.#last = new Map();
    for (const { type, table, epoch, partitions, keys, stopMs } of groups) {
      const line = {
        type,
        table,
        partitions: String(PartitionSet.of(partitions)),
        epoch,
        ...(stopMs === undefined ? {} : { stopMs: Math.floor(stopMs) }),
        ...(keys.length === 0 ? {} : { keys: keys.sort((a, b) => a.partition - b.partition) }),
      };
      this.#write(`${JSON.stringify(line)}\n`);
    }
  }

  #begin(id: string, { type, table, epoch }: LineEvent): Group {
    const group: Group = { type, table, epoch, partitions: [], keys: [], stopMs: undefined };
    this.#groups.push(group);
    this.#last.set(id, group);
    return group;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(() => {
      this.#isScheduled = false;
      this.flush();
    }, GATHER_MS);
  }
}
