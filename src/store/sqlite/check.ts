import { statSync } from "node:fs";
import { EvenkeelError } from "../../model/errors.ts";
import type { Revision } from "../../model/ids.ts";
import { type Database, loadSqlite, type OpenDatabase, rollBack } from "./database.ts";
import { judgeRead, reasonOf } from "./failures.ts";
import { readMeta, type StoreMeta, whyUnreadable } from "./meta.ts";
import { readChange, readCheckpoint } from "./records.ts";
import { gapText } from "./survey.ts";

/** Changes that are looked at at a time. */
const BATCH = 256;

/** What is in a store, and what is wrong with it. Times are ms since 1970. */
export interface StoreReport {
  readonly path: string;
  /** Size of the file, and of the log that is not in it yet. */
  readonly bytes: number;
  /** Absent if it cannot be read. */
  readonly store?: {
    readonly incarnation: string;
    readonly term: number;
    readonly created: number;
    readonly maxLeaseMs: number;
    readonly quarantineMs?: number;
    /** Who has it open to write, or had it when it was cut off. */
    readonly holder?: { readonly pid: number; readonly host: string; readonly since: number };
    readonly backedUp?: number;
  };
  readonly changes: { readonly count: number; readonly first?: Revision; readonly last?: Revision };
  readonly checkpoints: readonly { readonly revision: Revision; readonly bytes: number; readonly good: boolean }[];
  /** Each names a record; empty if all is well. */
  readonly problems: readonly string[];
}

/**
 * Reads every record of a store and compares it with its checksum; changes nothing, and works beside a running scheduler.
 * Throws EvenkeelError `not-found` if there is no such file, `invalid` if it is no store.
 */
export async function checkStore(path: string): Promise<StoreReport> {
  return check(path, await loadSqlite());
}

export function check(path: string, open: OpenDatabase): StoreReport {
  return withReader(path, open, (database) => {
    const problems: string[] = [];
    const meta = attempt(problems, () => readMeta(database, path));
    const changes = checkChanges(database, problems);
    const checkpoints = attempt(problems, () => checkCheckpoints(database, problems)) ?? [];
    checkReach(meta, changes, checkpoints, problems);
    attempt(problems, () => {
      for (const { integrity_check: line } of database.prepare("PRAGMA integrity_check").all()) {
        if (line !== "ok") problems.push(`SQLite: ${line}`);
      }
    });
    const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
    return { path, bytes, ...storeOf(meta), changes, checkpoints, problems };
  });
}

/** Runs `body` on one state of the store, whatever is written meanwhile. */
export function withReader<T>(path: string, open: OpenDatabase, body: (database: Database) => T): T {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new EvenkeelError("not-found", `there is no store ${path}`);
  }
  const database = open(path, { readOnly: true });
  try {
    const why = describeUnreadable(database);
    if (why !== undefined) throw new EvenkeelError("invalid", `${path} ${why}`);
    database.exec("BEGIN");
    return body(database);
  } catch (error) {
    throw judgeRead(error, path);
  } finally {
    rollBack(database);
    database.close();
  }
}

function describeUnreadable(database: Database): string | undefined {
  try {
    return whyUnreadable(database);
  } catch (error) {
    return `cannot be read: ${reasonOf(error)}`;
  }
}

function storeOf(meta: StoreMeta | undefined): Pick<StoreReport, "store"> {
  if (meta === undefined) return {};
  const { floor: _floor, stampKey: _key, ...store } = meta;
  return { store };
}

/** Goes on with the rest of the file when a part of it cannot be read. */
function attempt<T>(problems: string[], body: () => T): T | undefined {
  try {
    return body();
  } catch (error) {
    problems.push(reasonOf(error));
    return undefined;
  }
}

function checkChanges(database: Database, problems: string[]): StoreReport["changes"] {
  let count = 0;
  let first: Revision | undefined;
  let last: Revision | undefined;
  attempt(problems, () => {
    const select = database.prepare(
      "SELECT revision, at, sum, text FROM changes WHERE revision > ? ORDER BY revision LIMIT ?",
    );
    for (let rows = select.all(-1, BATCH); rows.length > 0; rows = select.all(last ?? -1, BATCH)) {
      for (const row of rows) {
        const revision = Number(row["revision"]);
        if (last !== undefined && revision !== last + 1) problems.push(gapText(last + 1, revision - 1));
        if (readChange(row) === undefined) problems.push(`change ${revision} does not match its checksum`);
        first ??= revision;
        last = revision;
        count++;
      }
    }
  });
  return { count, ...(first === undefined ? {} : { first }), ...(last === undefined ? {} : { last }) };
}

function checkCheckpoints(database: Database, problems: string[]): StoreReport["checkpoints"] {
  const rows = database.prepare("SELECT revision, sum, text FROM checkpoints ORDER BY revision DESC").all();
  return rows.map((row) => {
    const revision = Number(row["revision"]);
    const good = readCheckpoint(row) !== undefined;
    if (!good) problems.push(`checkpoint ${revision} does not match its checksum`);
    return { revision, bytes: Buffer.byteLength(String(row["text"])), good };
  });
}

/** Whether the changes go on where the oldest checkpoint, or the floor, ends, and reach to the newest. */
function checkReach(
  meta: StoreMeta | undefined,
  { first, last }: StoreReport["changes"],
  checkpoints: StoreReport["checkpoints"],
  problems: string[],
): void {
  const newest = checkpoints[0]?.revision;
  const start = checkpoints.at(-1)?.revision ?? meta?.floor;
  if (start === undefined) return;
  if (first !== undefined && first > start + 1) problems.push(gapText(start + 1, first - 1));
  if (newest !== undefined && last !== undefined && last < newest) problems.push(gapText(last + 1, newest));
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
