import { StoreError } from "../../driver/ports.ts";
import { EvenkeelError } from "../../model/errors.ts";
import type { Revision } from "../../model/ids.ts";
import { firstRevision } from "../first-revision.ts";
import { copyLog, type Database, makeDurable, type OpenDatabase, rollBack, type Statement } from "./database.ts";
import { judgeRead, judgeWrite } from "./failures.ts";
import { createPrivately, identityOf } from "./files.ts";
import { holderNow, inUse, StoreLock } from "./lock.ts";
import { createTables, isEmpty, readMeta, type StoreMeta, whyUnreadable, writeMeta } from "./meta.ts";
import type { AcquireOptions } from "./operations.ts";
import { type Survey, survey } from "./survey.ts";

/** The log is copied into the file when about so much has come to it: SQLite's own measure of 1,000 pages. */
const LOG_BYTES = 4 * 2 ** 20;
/** What a transaction costs beside the text that it writes: some pages of 4 KiB. */
const TRANSACTION_BYTES = 8_192;

/** A store that this thread has the right to write to: the file, its lock, and what it knows of itself. */
export class HeldStore {
  readonly path: string;
  readonly database: Database;
  readonly #lock: StoreLock;
  readonly #identity: string | undefined;
  readonly #statements = new Map<string, Statement>();
  #meta: StoreMeta;
  #uncopied = 0;

  private constructor(path: string, database: Database, lock: StoreLock, meta: StoreMeta) {
    this.path = path;
    this.database = database;
    this.#lock = lock;
    this.#identity = identityOf(path);
    this.#meta = meta;
  }

  /** Takes the store, makes it if it is not there, and begins a term. Throws EvenkeelError, and StoreError `broken`. */
  static take(options: AcquireOptions, open: OpenDatabase): { readonly store: HeldStore; readonly found: Survey } {
    const path = createPrivately(options.path);
    const lock = StoreLock.take(path, open);
    if (lock === undefined) throw inUse(path, holderOf(path, open));
    let database: Database | undefined;
    try {
      database = open(path);
      const meta = openTables(database, path, options);
      const found = survey(database, meta, path);
      const store = new HeldStore(path, database, lock, meta);
      store.#begin(found, options.now);
      return { store, found };
    } catch (error) {
      database?.close();
      lock.release();
      throw judgeRead(error, path);
    }
  }

  get meta(): StoreMeta {
    return this.#meta;
  }

  survey(): Survey {
    try {
      return survey(this.database, this.#meta, this.path);
    } catch (error) {
      throw judgeRead(error, this.path);
    }
  }

  /**
   * Runs statements as one durable transaction, with `bytes` of text. Throws StoreError `stale-reign` if another process
   * began a term although this one has the lock, as when the lock's file was removed.
   */
  transact<T>(bytes: number, body: () => T): T {
    this.#checkIdentity();
    try {
      this.database.exec("BEGIN IMMEDIATE");
    } catch (error) {
      throw judgeWrite(error, "statement", this.path);
    }
    let result: T;
    try {
      this.#checkTerm();
      result = body();
    } catch (error) {
      rollBack(this.database);
      throw judgeWrite(error, "statement", this.path);
    }
    try {
      this.database.exec("COMMIT");
    } catch (error) {
      rollBack(this.database);
      throw judgeWrite(error, "commit", this.path);
    }
    this.#uncopied += bytes + TRANSACTION_BYTES;
    return result;
  }

  /** A statement that is parsed once. */
  statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  putMeta(change: (meta: StoreMeta) => StoreMeta): void {
    const meta = change(this.#meta);
    this.transact(0, () => writeMeta(this.database, meta));
    this.#meta = meta;
  }

  /** Copies the log into the file if there is much of it. A disk that is full leaves it for later. */
  copyLogWhenDue(): void {
    if (this.#uncopied < LOG_BYTES) return;
    this.#uncopied = 0;
    try {
      copyLog(this.database);
    } catch (error) {
      const known = judgeRead(error, this.path);
      if (known instanceof StoreError) throw known;
    }
  }

  /** Gives the store up and says in it that this was on purpose. */
  release(): void {
    try {
      this.putMeta(({ holder: _, ...meta }) => meta);
      copyLog(this.database, "empty");
    } catch {
      // The next start takes this for the end of a process that was cut off, and loses nothing by it.
    } finally {
      this.close();
    }
  }

  close(): void {
    this.database.close();
    this.#lock.release();
  }

  #begin({ tornTail }: Survey, now: number): void {
    const meta = { ...this.#meta, term: this.#meta.term + 1, holder: holderNow(now) };
    this.transact(0, () => {
      if (tornTail !== undefined) this.#remove(tornTail);
      writeMeta(this.database, meta);
    });
    this.#meta = meta;
  }

  #remove(revision: Revision): void {
    this.database.prepare("DELETE FROM changes WHERE revision = ?").run(revision);
  }

  #checkTerm(): void {
    const { term } = readMeta(this.database, this.path);
    if (term !== this.#meta.term) throw new StoreError("stale-reign", `term ${term} has begun on ${this.path}`);
  }

  /** Whatever is written to a file that has lost its name is gone with the process. */
  #checkIdentity(): void {
    if (identityOf(this.path) === this.#identity) return;
    throw new StoreError("broken", `${this.path} was removed or replaced while it was in use`);
  }
}

/** The store's tables, made if the file is empty. What is not a store of this version is left as it is. */
function openTables(database: Database, path: string, options: AcquireOptions): StoreMeta {
  if (!isEmpty(database)) {
    const meta = readUsable(database, path);
    makeDurable(database);
    return meta;
  }
  const { now, fresh } = options;
  const meta = { ...fresh, term: 0, floor: firstRevision(now) - 1, maxLeaseMs: 0, created: now };
  makeDurable(database);
  database.exec("BEGIN IMMEDIATE");
  createTables(database, meta);
  database.exec("COMMIT");
  return meta;
}

function readUsable(database: Database, path: string): StoreMeta {
  const why = whyUnreadable(database);
  if (why !== undefined) throw new EvenkeelError("invalid", `${path} ${why}`);
  const meta = readMeta(database, path);
  if (meta.backedUp === undefined) return meta;
  const hint = `make a store of it: evenkeel store restore ${path} TO`;
  throw new EvenkeelError("invalid", `${path} is a backup of ${new Date(meta.backedUp).toISOString()}`, hint);
}

/** Who says in the store that it holds it; undefined if that cannot be read now. */
function holderOf(path: string, open: OpenDatabase): StoreMeta["holder"] {
  let database: Database | undefined;
  try {
    database = open(path, { readOnly: true });
    return readMeta(database, path).holder;
  } catch {
    return undefined;
  } finally {
    database?.close();
  }
}
