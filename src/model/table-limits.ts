/** What a table may have, wherever it is asked for: configuration, HTTP, wire. */

/** Longest key of a partition, in characters: enough for a composite natural key, small enough for a push of thousands. */
export const MAX_KEY_CHARS = 256;

/** How long a revoked partition may still be served, if the table does not say. */
export const DEFAULT_STOP_MS = 30_000;

/** True for well-formed text of 1 to MAX_KEY_CHARS characters; halves of characters would be different keys to different readers. */
export function isPartitionKey(value: unknown): value is string {
  return (
    typeof value === "string" && value !== "" && [...value].length <= MAX_KEY_CHARS && !/\p{Surrogate}/u.test(value)
  );
}
