import { hostname } from "node:os";
import { EvenkeelError } from "../../model/errors.ts";
import { type Database, type OpenDatabase, rollBack } from "./database.ts";
import { isBusy } from "./failures.ts";

/** Who holds a store. `since` is ms since 1970. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since: number;
}

/**
 * The right to write to a store, as a lock of the system on a file beside it. It ends with the process, however that ends,
 * and leaves the store itself readable for others. The empty file stays: whoever removed it could remove another's lock.
 */
export class StoreLock {
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  /** Undefined if somebody has it. */
  static take(path: string, open: OpenDatabase): StoreLock | undefined {
    const database = open(`${path}-lock`);
    try {
      database.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE");
      return new StoreLock(database);
    } catch (error) {
      database.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  release(): void {
    rollBack(this.#database);
    this.#database.close();
  }
}

export function holderNow(now: number): Holder {
  return { pid: process.pid, host: hostname(), since: now };
}

/** Says who has the store, as far as that is known. */
export function inUse(path: string, holder: Holder | undefined): EvenkeelError {
  const hint = "stop that one, or use another store";
  if (holder === undefined) return new EvenkeelError("conflict", `${path} is in use by another process`, hint);
  const isOwn = holder.pid === process.pid && holder.host === hostname();
  const where = holder.host === hostname() ? "" : ` on ${holder.host}`;
  const who = isOwn ? "this very process" : `process ${holder.pid}${where}`;
  return new EvenkeelError(
    "conflict",
    `${path} is in use by ${who} since ${new Date(holder.since).toISOString()}`,
    hint,
  );
}
