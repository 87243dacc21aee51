/** Durations as people write them: `250ms`, `10s`, `5m`, `2h`, `7d`, or plain milliseconds. Inside they are integers in ms. */

/** Longest duration, about 24.8 days: Node fires a timer with a longer delay after 1 ms. */
export const MAX_DURATION_MS = 2_147_483_647;

/** The rule in words, for error messages. */
export const DURATION_RULE =
  'a duration such as "250ms", "10s", "5m", "2h" or "7d", or whole milliseconds, at most 2^31-1 ms';

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
type Unit = keyof typeof UNITS_MS;

const PATTERN = /^(\d{1,10})(ms|s|m|h|d)?$/;

/** Milliseconds of a duration in text or number; undefined if it is none, or out of range. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === "number") return inRange(value);
  if (typeof value !== "string") return undefined;
  const match = PATTERN.exec(value);
  if (match === null) return undefined;
  const [, digits, unit = "ms"] = match;
  return inRange(Number(digits) * UNITS_MS[unit as Unit]);
}

/** Writes a duration in the largest unit that gives a whole number: 90000 is `90s`, 120000 is `2m`, 0 is `0ms`. */
export function formatDuration(ms: number): string {
  const units = Object.entries(UNITS_MS);
  const [unit, size] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

function inRange(ms: number): number | undefined {
  return Number.isInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS ? ms : undefined;
}
