import { StoreError } from "../../driver/ports.ts";
import type { Revision } from "../../model/ids.ts";
import type { Database, OpenDatabase } from "./database.ts";
import { damaged, judgeRead } from "./failures.ts";
import { HeldStore } from "./held.ts";
import type { Acquired, AcquireOptions, LoadedRows, Operations, ReadRows, TrimLimits } from "./operations.ts";
import { type ChangeRow, type CheckpointRow, readChange, sumOfChange, sumOfCheckpoint } from "./records.ts";
import { gapText, type Survey } from "./survey.ts";

/** Changes that are read, and that are deleted, at a time: an append waits behind no more than that. */
const BATCH = 256;

/** The newest one, and the one before it in case that is damaged. */
const KEPT_CHECKPOINTS = 2;

/** Carries the store's operations out on the file. Synchronous: it belongs in a thread of its own. */
export class Engine implements Operations {
  readonly #open: OpenDatabase;
  #held: HeldStore | undefined;
  /** Revision of the last change; undefined where the file has to be asked. */
  #last: Revision | undefined;
  /** What the start read, until it is loaded. */
  #found: Survey | undefined;
  #broken: StoreError | undefined;

  constructor(open: OpenDatabase) {
    this.#open = open;
  }

  /** Calls an operation by its name. Once the store is found to be broken, nothing but a release is done any more. */
  run<K extends keyof Operations>(name: K, args: Parameters<Operations[K]>): ReturnType<Operations[K]> {
    if (this.#broken !== undefined && name !== "release") throw this.#broken;
    try {
      const operation = this[name] as (...args: Parameters<Operations[K]>) => ReturnType<Operations[K]>;
      return operation.apply(this, args);
    } catch (error) {
      if (error instanceof StoreError && error.code === "broken") this.#broken = error;
      throw error;
    }
  }

  /** What can be done when an answer has gone out. Throws StoreError `broken`. */
  tidy(): void {
    if (this.#broken !== undefined) return;
    try {
      this.#held?.copyLogWhenDue();
    } catch (error) {
      if (error instanceof StoreError) this.#broken = error;
      throw error;
    }
  }

  acquire(options: AcquireOptions): Acquired {
    const { store, found } = HeldStore.take(options, this.#open);
    this.#held = store;
    this.#last = found.last;
    this.#found = found;
    const { term, incarnation, stampKey } = store.meta;
    return { term, incarnation, stampKey, warnings: found.warnings };
  }

  load(): LoadedRows {
    const store = this.#store();
    const { checkpoint, changes } = this.#found ?? store.survey();
    this.#found = undefined;
    const { floor, maxLeaseMs, quarantineMs } = store.meta;
    return {
      changes,
      floor,
      maxLeaseMs,
      ...(checkpoint === undefined ? {} : { checkpoint }),
      ...(quarantineMs === undefined ? {} : { quarantineMs }),
    };
  }

  append(change: ChangeRow): void {
    const store = this.#store();
    const { revision, at, text } = change;
    const last = this.#lastRevision(store);
    if (revision !== last + 1) throw new StoreError("gap", `revision ${revision} does not follow ${last}`);
    this.#found = undefined;
    // If it fails, the next look asks the file: it may have landed all the same.
    this.#last = undefined;
    store.transact(text.length, () => {
      store
        .statement("INSERT INTO changes (revision, at, sum, text) VALUES (?, ?, ?, ?)")
        .run(revision, at, sumOfChange(change), text);
    });
    this.#last = revision;
  }

  read(from: Revision, to: Revision): ReadRows {
    const store = this.#store();
    const { database, path } = store;
    try {
      return readBatch(database, path, from, to, this.#lastRevision(store));
    } catch (error) {
      throw judgeRead(error, path);
    }
  }

  checkpoint(checkpoint: CheckpointRow): void {
    const store = this.#store();
    const { revision, text } = checkpoint;
    if (revision > this.#lastRevision(store))
      throw new StoreError("gap", `a checkpoint at ${revision}, beyond the last change`);
    const { database } = store;
    if (revision < (newestOf(database, "checkpoints") ?? revision)) return;
    store.transact(text.length, () => {
      database
        .prepare("INSERT OR REPLACE INTO checkpoints (revision, sum, text) VALUES (?, ?, ?)")
        .run(revision, sumOfCheckpoint(checkpoint), text);
      database
        .prepare(
          "DELETE FROM checkpoints WHERE revision NOT IN (SELECT revision FROM checkpoints ORDER BY revision DESC LIMIT ?)",
        )
        .run(KEPT_CHECKPOINTS);
    });
    this.#found = undefined;
  }

  trim({ before, maxChanges }: TrimLimits): boolean {
    const store = this.#store();
    const { database } = store;
    const last = this.#lastRevision(store);
    const { count, oldest } =
      database.prepare("SELECT count(*) AS count, min(revision) AS oldest FROM checkpoints").get() ?? {};
    if (Number(count) < KEPT_CHECKPOINTS) return false;
    const rows = database
      .prepare("SELECT revision, at FROM changes WHERE revision <= ? ORDER BY revision LIMIT ?")
      .all(Number(oldest), BATCH);
    const kept = rows.findIndex(({ revision, at }) => Number(revision) > last - maxChanges && Number(at) >= before);
    const surplus = kept < 0 ? rows : rows.slice(0, kept);
    const end = surplus.at(-1)?.["revision"];
    if (end === undefined) return false;
    store.transact(0, () => {
      database.prepare("DELETE FROM changes WHERE revision <= ?").run(Number(end));
    });
    return surplus.length === BATCH;
  }

  setMaxLease(durationMs: number): void {
    this.#store().putMeta((meta) => ({ ...meta, maxLeaseMs: durationMs }));
  }

  endQuarantine(): void {
    this.#store().putMeta(({ quarantineMs: _, ...meta }) => meta);
  }

  release(): void {
    const store = this.#held;
    this.#held = undefined;
    // What is broken is left as it is, for a look at it.
    if (this.#broken === undefined) store?.release();
    else store?.close();
  }

  #lastRevision({ database, meta }: HeldStore): Revision {
    this.#last ??= newestOf(database, "changes") ?? newestOf(database, "checkpoints") ?? meta.floor;
    return this.#last;
  }

  #store(): HeldStore {
    if (this.#held === undefined) throw new Error("the store is not open");
    return this.#held;
  }
}

/** The number of the newest row of a table; undefined if it has none. */
function newestOf(database: Database, table: "changes" | "checkpoints"): Revision | undefined {
  const newest = database.prepare(`SELECT max(revision) AS newest FROM ${table}`).get()?.["newest"];
  return newest === null || newest === undefined ? undefined : Number(newest);
}

function readBatch(database: Database, path: string, from: Revision, to: Revision, last: Revision): ReadRows {
  const first = Number(database.prepare("SELECT min(revision) AS first FROM changes").get()?.["first"] ?? last + 1);
  const rows = database
    .prepare("SELECT revision, at, sum, text FROM changes WHERE revision BETWEEN ? AND ? ORDER BY revision LIMIT ?")
    .all(from, to, BATCH);
  let expected = Math.max(from, first);
  const changes = rows.map((row) => {
    const revision = Number(row["revision"]);
    if (revision !== expected) throw damaged(path, gapText(expected, revision - 1));
    expected++;
    const change = readChange(row);
    if (change === undefined) throw damaged(path, `change ${revision} does not match its checksum`);
    return change;
  });
  return { changes, first };
}
