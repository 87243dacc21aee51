import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";

/** A connection, as `node:sqlite` and the package with the same API give it. Every call blocks its thread. */
export type Database = DatabaseSyncInstance;
export type Statement = StatementSyncInstance;

export type OpenDatabase = (path: string, options?: { readonly readOnly?: boolean }) => Database;

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options?: { readOnly?: boolean }) => Database;
}

/** How long a statement waits for a lock that somebody else has, such as a person with a shell. */
const BUSY_TIMEOUT_MS = 2_000;

/** A log that a long reader, such as a backup, made grow beyond this is cut again. */
const WAL_LIMIT_BYTES = 16 * 2 ** 20;

/** SQLite as Node has it built in, else the package with its own binaries. */
export async function loadSqlite(): Promise<OpenDatabase> {
  const builtIn = quietly(() => process.getBuiltinModule("node:sqlite")) as SqliteModule | undefined;
  const { DatabaseSync } = builtIn ?? ((await import("@photostructure/sqlite")) as unknown as SqliteModule);
  return (path, { readOnly = false } = {}) => {
    const database = new DatabaseSync(path, { readOnly });
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON`);
    return database;
  };
}

/** Some versions of Node warn that the module is experimental, which is nothing that a user could act on. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Makes every commit durable before it returns. The log is copied into the file by `copyLog` alone, so that an answer need
 * not wait for it and a failure of it is seen.
 */
export function makeDurable(database: Database): void {
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES};
  `);
}

/** Copies what the log holds into the file, as far as no reader needs it there. `empty`: and cuts the log to nothing. */
export function copyLog(database: Database, empty: "keep" | "empty" = "keep"): void {
  database.prepare(`PRAGMA wal_checkpoint(${empty === "empty" ? "TRUNCATE" : "PASSIVE"})`).get();
}

/** Ends a transaction, if there is one: a connection that is closed within one may hold its locks a while longer. */
export function rollBack(database: Database): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // There is none, or SQLite has rolled it back by itself after an error.
  }
}
