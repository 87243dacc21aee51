import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import {
  type Checkpoint,
  type Clock,
  type Loaded,
  type LogPort,
  type Random,
  type Reign,
  type Store,
  StoreError,
} from "../../driver/ports.ts";
import type { Change } from "../../model/change.ts";
import type { Revision } from "../../model/ids.ts";
import { parseChange, writeChange } from "./change-text.ts";
import type { Executor, StartExecutor } from "./operations.ts";
import { writeInSlices } from "./slices.ts";
import { StoreThread } from "./thread.ts";

/** What is kept behind a checkpoint, for history and followers: as long as both allow it. */
export interface LedgerLimits {
  /** Age in ms. Default 7 days. */
  readonly retainMs?: number;
  /** Default 100,000. */
  readonly maxChanges?: number;
}

export interface SqliteStoreOptions {
  /** The file; made if it is not there. Beside it stand `-wal`, `-shm` and `-lock`. */
  readonly path: string;
  readonly clock: Pick<Clock, "wall">;
  readonly random: Pick<Random, "id">;
  readonly log?: LogPort;
  readonly ledger?: LedgerLimits;
  /** What carries the operations out. Default: a thread. */
  readonly start?: StartExecutor;
}

const DEFAULT_LIMITS = { retainMs: 7 * 86_400_000, maxChanges: 100_000 };

const STAMP_KEY_BYTES = 32;

interface Held {
  readonly reign: Reign;
  readonly executor: Executor;
  readonly lose: (reason: string) => void;
}

/**
 * The ledger in one SQLite file. Whoever reigns holds a lock of the system on it, so that a second process is refused at
 * once (EvenkeelError `conflict`, naming the first); a second `acquire` of the same object waits. A file that cannot be
 * used is refused with EvenkeelError `invalid`, a damaged one with StoreError `broken`.
 *
 * The reign is lost when the thread ends, or finds that the disk lost what it was given.
 */
export class SqliteStore implements Store {
  readonly #options: SqliteStoreOptions;
  readonly #limits: Required<LedgerLimits>;
  #held: Held | undefined;
  /** A reign is about to begin or to end. */
  #isChanging = false;
  #appends = 0;
  /** Settles when the executor of a reign that was lost has ended. */
  #ending: Promise<void> = Promise.resolve();
  /** Says `released` when a reign ends and `appended` after each change. */
  readonly #news = new EventEmitter().setMaxListeners(0);

  constructor(options: SqliteStoreOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.ledger };
  }

  async acquire(): Promise<Reign> {
    while (this.#held !== undefined || this.#isChanging) await once(this.#news, "released");
    this.#isChanging = true;
    try {
      return await this.#acquire();
    } finally {
      this.#isChanging = false;
      if (this.#held === undefined) this.#news.emit("released");
    }
  }

  async #acquire(): Promise<Reign> {
    const { path, clock, random, log } = this.#options;
    let lose: (reason: string) => void = () => {};
    const lost = new Promise<string>((resolve) => {
      lose = resolve;
    });
    const start = this.#options.start ?? ((onLost) => new StoreThread(onLost));
    const executor = start((reason) => this.#lose(executor, reason));
    const fresh = { incarnation: random.id(), stampKey: randomBytes(STAMP_KEY_BYTES).toString("base64") };
    try {
      const { term, incarnation, stampKey, warnings } = await executor.call("acquire", {
        path,
        now: clock.wall(),
        fresh,
      });
      for (const warning of warnings) log?.log("warn", "store.failed", { store: path, damage: warning });
      const reign = { term, incarnation, stampKey: new Uint8Array(Buffer.from(stampKey, "base64")), lost };
      this.#held = { reign, executor, lose };
      return reign;
    } catch (error) {
      await executor.end();
      throw error;
    }
  }

  async load(reign: Reign): Promise<Loaded> {
    const { checkpoint, changes, ...rest } = await this.#executor(reign).call("load");
    const loaded = { ...rest, changes: changes.map(({ text }) => parseChange(text)) };
    if (checkpoint === undefined) return loaded;
    return { ...loaded, checkpoint: { revision: checkpoint.revision, state: JSON.parse(checkpoint.text) } };
  }

  async append(reign: Reign, change: Change): Promise<void> {
    const { revision, at } = change;
    await this.#executor(reign).call("append", { revision, at, text: writeChange(change) });
    this.#appends++;
    this.#news.emit("appended");
  }

  async *read(from: Revision, to: Revision): AsyncIterable<Change> {
    let next = from;
    while (next <= to) {
      const { changes, first } = await this.#reader().call("read", next, to);
      // Before the first batch, what is no longer kept is left out; later it would be a hole.
      if (next !== from && next < first) throw new StoreError("gap", `revision ${next} is no longer kept`);
      for (const { text } of changes) yield parseChange(text);
      const last = changes.at(-1);
      if (last === undefined) return;
      next = last.revision + 1;
    }
  }

  async *follow(from: Revision, signal: AbortSignal): AsyncIterable<Change> {
    let next = from;
    while (!signal.aborted) {
      const seen = this.#appends;
      const { changes, first } = await this.#reader().call("read", next, Number.MAX_SAFE_INTEGER);
      if (next < first) throw new StoreError("gap", `revision ${next} is no longer kept`);
      for (const { revision, text } of changes) {
        if (signal.aborted) return;
        next = revision + 1;
        yield parseChange(text);
      }
      if (changes.length > 0 || this.#appends !== seen) continue;
      // Rejects when the signal aborts, which the loop sees for itself.
      await once(this.#news, "appended", { signal }).catch(() => undefined);
    }
  }

  async checkpoint(reign: Reign, { revision, state }: Checkpoint): Promise<void> {
    const executor = this.#executor(reign);
    await executor.call("checkpoint", { revision, text: await writeInSlices(state) });
    const { retainMs, maxChanges } = this.#limits;
    const limits = { before: this.#options.clock.wall() - retainMs, maxChanges };
    // A batch at a time, so that an append in between does not wait for all of them.
    while (await executor.call("trim", limits));
  }

  async setMaxLease(reign: Reign, durationMs: number): Promise<void> {
    await this.#executor(reign).call("setMaxLease", durationMs);
  }

  async endQuarantine(reign: Reign): Promise<void> {
    await this.#executor(reign).call("endQuarantine");
  }

  async release(reign: Reign): Promise<void> {
    const held = this.#held;
    // What was lost may still be ending.
    if (held?.reign !== reign) return this.#ending;
    this.#held = undefined;
    this.#isChanging = true;
    try {
      await held.executor.call("release").finally(() => held.executor.end());
    } finally {
      this.#isChanging = false;
      this.#news.emit("released");
    }
  }

  /** Ends the reign, if there is one. */
  async close(): Promise<void> {
    if (this.#held !== undefined) await this.release(this.#held.reign);
  }

  #lose(executor: Executor, reason: string): void {
    const held = this.#held;
    if (held?.executor !== executor) return;
    this.#held = undefined;
    held.lose(reason);
    this.#ending = executor.end();
    this.#news.emit("released");
  }

  #executor(reign: Reign): Executor {
    if (this.#held?.reign !== reign) throw new StoreError("stale-reign", `the reign of term ${reign.term} is over`);
    return this.#held.executor;
  }

  #reader(): Executor {
    if (this.#held === undefined) throw new Error("the store is read only while it is held");
    return this.#held.executor;
  }
}
