import { crc32 } from "node:zlib";
import type { Revision } from "../../model/ids.ts";
import type { Database } from "./database.ts";
import { damaged } from "./failures.ts";
import type { Holder } from "./lock.ts";

/** Marks a file as a store of evenkeel: "EvKl". */
const APPLICATION_ID = 0x45764b6c;

/** Version of the tables. A file of a higher one is refused, a lower one will be converted. */
export const SCHEMA_VERSION = 1;

/** What a store knows of itself. One row, replaced whole, so that one checksum covers it. */
export interface StoreMeta {
  readonly incarnation: string;
  /** Of the newest reign. */
  readonly term: number;
  /** Key of the stamps, base64. */
  readonly stampKey: string;
  /** The first change follows this revision. */
  readonly floor: Revision;
  readonly maxLeaseMs: number;
  readonly quarantineMs?: number;
  /** ms since 1970. */
  readonly created: number;
  /** Absent after a clean end. */
  readonly holder?: Holder;
  /** Set in a backup, which must not be served as it is; ms since 1970. */
  readonly backedUp?: number;
}

/** The tables, empty, with what the store knows of itself. */
export function createTables(database: Database, meta: StoreMeta): void {
  database.exec(`
    CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), sum INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
    CREATE TABLE changes (
      revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, sum INTEGER NOT NULL, text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE checkpoints (revision INTEGER PRIMARY KEY, sum INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = ${SCHEMA_VERSION};
  `);
  writeMeta(database, meta);
}

/** True for a database without any table. */
export function isEmpty(database: Database): boolean {
  return database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
}

/** Undefined if the file is a store that this version reads, else what it is. */
export function whyUnreadable(database: Database): string | undefined {
  const applicationId = database.prepare("PRAGMA application_id").get()?.["application_id"];
  if (applicationId !== APPLICATION_ID) return "is an SQLite database, but not a store of evenkeel";
  const version = database.prepare("PRAGMA user_version").get()?.["user_version"];
  if (version === SCHEMA_VERSION) return undefined;
  return `was written by another version of evenkeel: its tables are version ${version}, this one knows ${SCHEMA_VERSION}`;
}

/** What the store knows of itself. Throws StoreError `broken`. */
export function readMeta(database: Database, path: string): StoreMeta {
  const row = database.prepare("SELECT sum, text FROM meta WHERE id = 1").get();
  const text = row?.["text"];
  if (typeof text !== "string" || row?.["sum"] !== crc32(text)) {
    throw damaged(path, "the record of the store itself (table meta) does not match its checksum");
  }
  return JSON.parse(text) as StoreMeta;
}

export function writeMeta(database: Database, meta: StoreMeta): void {
  const text = JSON.stringify(meta);
  database.prepare("INSERT OR REPLACE INTO meta (id, sum, text) VALUES (1, ?, ?)").run(crc32(text), text);
}
