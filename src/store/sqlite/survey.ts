import type { Revision } from "../../model/ids.ts";
import type { Database } from "./database.ts";
import { damaged } from "./failures.ts";
import type { StoreMeta } from "./meta.ts";
import { type ChangeRow, type CheckpointRow, readChange, readCheckpoint } from "./records.ts";

/** What a start reads: the newest checkpoint that is whole, and every change after it. */
export interface Survey {
  readonly checkpoint?: CheckpointRow;
  readonly changes: readonly ChangeRow[];
  /** Revision of the last change, or of what it would follow. */
  readonly last: Revision;
  /** The last change, if its row is damaged and the process before this one was cut off: it is to be removed. */
  readonly tornTail?: Revision;
  /** What was found and can be lived with. */
  readonly warnings: readonly string[];
}

/**
 * Reads and checks what a start needs. Throws StoreError `broken` for damage that would lose or change what was told to
 * anybody: a gap, or a change that does not match its checksum. Only the very last change may be damaged, and only if the
 * process before this one was cut off while it could have been writing.
 */
export function survey(database: Database, meta: StoreMeta, path: string): Survey {
  const { checkpoint, newest, warnings } = newestCheckpoint(database, path);
  let last = checkpoint?.revision ?? meta.floor;
  const rows = database
    .prepare("SELECT revision, at, sum, text FROM changes WHERE revision > ? ORDER BY revision")
    .all(last);
  const changes: ChangeRow[] = [];
  let tornTail: Revision | undefined;
  for (const [index, row] of rows.entries()) {
    const revision = Number(row["revision"]);
    if (revision !== last + 1) throw damaged(path, gapText(last + 1, revision - 1));
    const change = readChange(row);
    if (change === undefined) {
      const what = `change ${revision} does not match its checksum`;
      const isTail = index === rows.length - 1 && meta.holder !== undefined;
      if (!isTail) throw damaged(path, what);
      warnings.push(`${what}: it was the last one when the process before this one was cut off, and is removed`);
      tornTail = revision;
      break;
    }
    changes.push(change);
    last = revision;
  }
  // A checkpoint proves that the changes up to it were there.
  if (last < newest) throw damaged(path, gapText(last + 1, newest));
  const found = checkpoint === undefined ? {} : { checkpoint };
  return { ...found, changes, last, warnings, ...(tornTail === undefined ? {} : { tornTail }) };
}

/** The revisions that are missing, in words. */
export function gapText(from: Revision, to: Revision): string {
  return from === to ? `change ${from} is missing` : `changes ${from} to ${to} are missing`;
}

interface Newest {
  readonly checkpoint?: CheckpointRow;
  /** Revision of the newest one, whole or not; -1 if there is none. */
  readonly newest: Revision;
  readonly warnings: string[];
}

/** One that is damaged is passed over: the changes since the one before it are kept for that. */
function newestCheckpoint(database: Database, path: string): Newest {
  const warnings: string[] = [];
  const revisions = database.prepare("SELECT revision FROM checkpoints ORDER BY revision DESC").all();
  const newest = Number(revisions[0]?.["revision"] ?? -1);
  const select = database.prepare("SELECT revision, sum, text FROM checkpoints WHERE revision = ?");
  for (const { revision } of revisions) {
    const checkpoint = readCheckpoint(select.get(Number(revision)));
    if (checkpoint !== undefined) return { checkpoint, newest, warnings };
    warnings.push(`checkpoint ${revision} does not match its checksum and is passed over`);
  }
  // What a restored store began with stands in its checkpoints alone, so the changes cannot replace them.
  if (revisions.length > 0) throw damaged(path, "no checkpoint matches its checksum");
  return { newest, warnings };
}
