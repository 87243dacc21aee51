import { crc32 } from "node:zlib";
import type { Revision } from "../../model/ids.ts";

/**
 * Rows with a checksum each. It covers the row's place, so that a row that turns up in another's is found; rows are not
 * chained, as none is ever written over: what the file loses of them shows as a gap between revisions.
 */

/** A change as a row. */
export interface ChangeRow {
  readonly revision: Revision;
  /** Wall time in ms since 1970. */
  readonly at: number;
  readonly text: string;
}

/** A checkpoint as a row. */
export interface CheckpointRow {
  readonly revision: Revision;
  readonly text: string;
}

export function sumOfChange({ revision, at, text }: ChangeRow): number {
  return crc32(text, crc32(`change ${revision} ${at} `));
}

export function sumOfCheckpoint({ revision, text }: CheckpointRow): number {
  return crc32(text, crc32(`checkpoint ${revision} `));
}

/** A row as it was read; undefined if its checksum does not fit. */
export function readChange(row: unknown): ChangeRow | undefined {
  const { revision, at, sum, text } = row as ChangeRow & { readonly sum: unknown };
  const change = { revision, at, text };
  return typeof text === "string" && sumOfChange(change) === sum ? change : undefined;
}

/** A row as it was read; undefined if its checksum does not fit. */
export function readCheckpoint(row: unknown): CheckpointRow | undefined {
  const { revision, sum, text } = row as CheckpointRow & { readonly sum: unknown };
  const checkpoint = { revision, text };
  return typeof text === "string" && sumOfCheckpoint(checkpoint) === sum ? checkpoint : undefined;
}
