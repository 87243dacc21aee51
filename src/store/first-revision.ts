import type { Revision } from "../model/ids.ts";

/**
 * Revisions between two seconds: a new incarnation starts at its creation time in seconds, times this, so that its epochs
 * are above those of every store that was created earlier and made fewer changes a second (PROTOCOL §4).
 */
export const REVISIONS_PER_SECOND = 2 ** 20;

/** The first revision of an incarnation that is created now, by ms since 1970. */
export function firstRevision(nowMs: number): Revision {
  return Math.floor(nowMs / 1_000) * REVISIONS_PER_SECOND;
}
