import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import {
  type Checkpoint,
  type Clock,
  type Loaded,
  type Random,
  type Reign,
  type Store,
  StoreError,
} from "../driver/ports.ts";
import type { Change } from "../model/change.ts";
import type { Revision } from "../model/ids.ts";
import { firstRevision } from "./first-revision.ts";

/** Changes that are kept behind a checkpoint, for history and followers. */
const MAX_KEPT_CHANGES = 100_000;

const STAMP_KEY_BYTES = 32;

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, "wall">;
  readonly random: Pick<Random, "id">;
  /** Changes that a checkpoint leaves; default 100,000. */
  readonly maxKept?: number;
}

/**
 * A store that lives as long as the process: for tests and for trying out. A restart is a new incarnation, and nothing is
 * exclusive across it.
 */
export class MemoryStore implements Store {
  readonly #incarnation: string;
  readonly #stampKey = new Uint8Array(randomBytes(STAMP_KEY_BYTES));
  readonly #floor: Revision;
  readonly #maxKept: number;
  /** Gap-free; the first follows the checkpoint, or is at or below it. */
  readonly #changes: Change[] = [];
  #checkpoint: Checkpoint | undefined;
  #term = 0;
  #maxLeaseMs = 0;
  #reign: Reign | undefined;
  /** Says `released` when a reign ends and `appended` after each change. */
  readonly #news = new EventEmitter().setMaxListeners(0);

  constructor({ clock, random, maxKept = MAX_KEPT_CHANGES }: MemoryStoreOptions) {
    this.#incarnation = random.id();
    this.#floor = firstRevision(clock.wall()) - 1;
    this.#maxKept = maxKept;
  }

  async acquire(): Promise<Reign> {
    while (this.#reign !== undefined) await once(this.#news, "released");
    this.#term++;
    // Nobody else can take it away, so it is never lost.
    const lost = new Promise<string>(() => {});
    this.#reign = { term: this.#term, incarnation: this.#incarnation, stampKey: this.#stampKey, lost };
    return this.#reign;
  }

  async load(reign: Reign): Promise<Loaded> {
    this.#checkReign(reign);
    const checkpoint = this.#checkpoint;
    const floor = this.#floor;
    const maxLeaseMs = this.#maxLeaseMs;
    if (checkpoint === undefined) return { changes: [...this.#changes], floor, maxLeaseMs };
    const changes = this.#changes.filter(({ revision }) => revision > checkpoint.revision);
    return { checkpoint, changes, floor, maxLeaseMs };
  }

  async append(reign: Reign, change: Change): Promise<void> {
    this.#checkReign(reign);
    const last = this.#last();
    if (change.revision !== last + 1)
      throw new StoreError("gap", `revision ${change.revision} does not follow ${last}`);
    this.#changes.push(change);
    this.#news.emit("appended");
  }

  async *read(from: Revision, to: Revision): AsyncIterable<Change> {
    const first = this.#first();
    yield* this.#changes.slice(Math.max(0, from - first), Math.max(0, to - first + 1));
  }

  async *follow(from: Revision, signal: AbortSignal): AsyncIterable<Change> {
    let next = from;
    while (!signal.aborted) {
      if (next < this.#first()) throw new StoreError("gap", `revision ${next} is no longer kept`);
      const change = this.#changes[next - this.#first()];
      if (change !== undefined) {
        next++;
        yield change;
      } else {
        // Rejects when the signal aborts, which the loop sees for itself.
        await once(this.#news, "appended", { signal }).catch(() => undefined);
      }
    }
  }

  async checkpoint(reign: Reign, checkpoint: Checkpoint): Promise<void> {
    this.#checkReign(reign);
    const { revision } = checkpoint;
    if (revision > this.#last()) throw new StoreError("gap", `a checkpoint at ${revision}, beyond the last change`);
    if (this.#checkpoint !== undefined && revision < this.#checkpoint.revision) return;
    this.#checkpoint = checkpoint;
    const excess = Math.min(this.#changes.length - this.#maxKept, revision - this.#first() + 1);
    if (excess > 0) this.#changes.splice(0, excess);
  }

  async setMaxLease(reign: Reign, durationMs: number): Promise<void> {
    this.#checkReign(reign);
    this.#maxLeaseMs = durationMs;
  }

  async endQuarantine(reign: Reign): Promise<void> {
    this.#checkReign(reign);
  }

  async release(reign: Reign): Promise<void> {
    if (this.#reign !== reign) return;
    this.#reign = undefined;
    this.#news.emit("released");
  }

  #checkReign(reign: Reign): void {
    if (this.#reign !== reign) throw new StoreError("stale-reign", `the reign of term ${reign.term} is over`);
  }

  #first(): Revision {
    return this.#changes[0]?.revision ?? this.#last() + 1;
  }

  #last(): Revision {
    return this.#changes.at(-1)?.revision ?? this.#checkpoint?.revision ?? this.#floor;
  }
}
