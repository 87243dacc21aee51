import { randomBytes } from "node:crypto";
import type { Change } from "../../model/change.ts";
import { formatDuration } from "../../model/duration.ts";
import { EvenkeelError } from "../../model/errors.ts";
import type { Revision } from "../../model/ids.ts";
import { firstRevision } from "../first-revision.ts";
import { parseChange } from "./change-text.ts";
import { withReader } from "./check.ts";
import { loadSqlite, type OpenDatabase } from "./database.ts";
import { inUse, StoreLock } from "./lock.ts";
import { createTables, readMeta, type StoreMeta } from "./meta.ts";
import { sumOfCheckpoint } from "./records.ts";
import { makeFile, placeOf, type Target } from "./replace.ts";
import { type Survey, survey } from "./survey.ts";

const STAMP_KEY_BYTES = 32;

/** What the old store had. */
export interface OldLedger {
  readonly incarnation: string;
  readonly floor: Revision;
  /** State of the newest checkpoint. */
  readonly checkpoint?: unknown;
  readonly changes: readonly Change[];
}

export interface RestoreOptions extends Target {
  /** A backup, or a store that nobody has open. May be the same file as `to`. */
  readonly from: string;
  /**
   * The largest lease that the lost store may have issued, in ms: so long nothing is granted. Default: the largest that
   * `from` knows of; it may not be shorter.
   */
  readonly maxLeaseMs?: number;
  /** ms since 1970. */
  readonly now: number;
  /** Name of the new incarnation, unique for ever. */
  readonly incarnation: string;
  /** The state of the checkpoint that the new store begins with. */
  readonly convert: (old: OldLedger, start: { readonly incarnation: string; readonly revision: Revision }) => unknown;
}

export interface Restored {
  readonly incarnation: string;
  /** The last revision of the old store. */
  readonly upTo: Revision;
  /** The first revision of the new one. */
  readonly first: Revision;
  readonly quarantineMs: number;
  /** What was found in the old store and passed over. */
  readonly warnings: readonly string[];
}

/**
 * Makes a store of an old copy: a new incarnation, whose revisions are above every earlier one, and in which everybody
 * still has to give back what the old one granted. Throws EvenkeelError, and StoreError `broken` if the copy is damaged.
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const open = await loadSqlite();
  const { from, now, incarnation, convert, maxLeaseMs: asked, ...target } = options;
  const { meta, found } = readOld(from, open);
  const quarantineMs = quarantineOf(meta, asked);
  const first = Math.max(found.last + 1, firstRevision(now));
  const revision = first - 1;
  const state = convert(ledgerOf(meta, found), { incarnation, revision });
  makeFile(target, open, (path) => {
    const { term, maxLeaseMs } = meta;
    const stampKey = randomBytes(STAMP_KEY_BYTES).toString("base64");
    const database = open(path);
    database.exec("BEGIN");
    createTables(database, { incarnation, term, stampKey, floor: revision, maxLeaseMs, quarantineMs, created: now });
    const checkpoint = { revision, text: JSON.stringify(state) };
    database
      .prepare("INSERT INTO checkpoints (revision, sum, text) VALUES (?, ?, ?)")
      .run(revision, sumOfCheckpoint(checkpoint), checkpoint.text);
    database.exec("COMMIT");
    database.close();
  });
  return { incarnation, upTo: found.last, first, quarantineMs, warnings: found.warnings };
}

function readOld(from: string, open: OpenDatabase): { readonly meta: StoreMeta; readonly found: Survey } {
  // Two schedulers with the same executors would be worse than none.
  const lock = withReader(from, open, (database) => {
    const { backedUp, holder } = readMeta(database, from);
    if (backedUp !== undefined) return undefined;
    const taken = StoreLock.take(placeOf(from), open);
    if (taken === undefined) throw inUse(from, holder);
    return taken;
  });
  try {
    return withReader(from, open, (database) => {
      const meta = readMeta(database, from);
      return { meta, found: survey(database, meta, from) };
    });
  } finally {
    lock?.release();
  }
}

function ledgerOf({ incarnation, floor }: StoreMeta, { checkpoint, changes }: Survey): OldLedger {
  const old = { incarnation, floor, changes: changes.map(({ text }) => parseChange(text)) };
  return checkpoint === undefined ? old : { ...old, checkpoint: JSON.parse(checkpoint.text) };
}

function quarantineOf({ maxLeaseMs, quarantineMs = 0 }: StoreMeta, asked: number | undefined): number {
  const known = Math.max(maxLeaseMs, quarantineMs);
  if (asked !== undefined && asked < known) {
    const text = `the store has issued leases of ${formatDuration(known)}, more than ${formatDuration(asked)}`;
    throw new EvenkeelError("invalid", text, "leave the largest lease out, or give a longer one: --max-lease");
  }
  if (asked === undefined && known === 0) {
    const hint = "say how long the leases of the lost store were at most: --max-lease 15s";
    throw new EvenkeelError("invalid", "the store does not know of any lease", hint);
  }
  return asked ?? known;
}
