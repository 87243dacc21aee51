import { PartitionSet } from "../model/partition-set.ts";

/** Longest text of a partition set in a log line: a reader sees which set it is, and the line stays one. */
export const MAX_SET_CHARS = 200;
/** Longest other text: stacks fit, and what a peer sent is bounded to less. */
export const MAX_TEXT_CHARS = 4_000;
/** Elements of a list that are logged. */
export const MAX_LIST_ELEMENTS = 100;
/** Depth of what is logged; nothing of ours is deeper than five. */
const MAX_DEPTH = 10;

/** Makes plain JSON data of log fields. What is long is cut, and says by how much: `0-3,8,…(+96)`. */
export function shape(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value, MAX_TEXT_CHARS);
  if (typeof value !== "object" || value === null) return typeof value === "bigint" ? String(value) : value;
  if (value instanceof PartitionSet) return shortenSet(value);
  if (value instanceof Error) return cut(value.message, MAX_TEXT_CHARS);
  if (depth === MAX_DEPTH) return "…";
  if (Array.isArray(value)) {
    const shaped = value.slice(0, MAX_LIST_ELEMENTS).map((element) => shape(element, depth + 1));
    return value.length > MAX_LIST_ELEMENTS ? [...shaped, `…(+${value.length - MAX_LIST_ELEMENTS})`] : shaped;
  }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shape(member, depth + 1)]));
}

/** The set's text if it is short, else its first ranges and the number of partitions that were left out. */
export function shortenSet(set: PartitionSet): string {
  let text = "";
  let written = 0;
  for (const [low, high] of set.ranges()) {
    const range = low === high ? `${low}` : `${low}-${high}`;
    const longer = text === "" ? range : `${text},${range}`;
    if (longer.length > MAX_SET_CHARS) return `${text},…(+${set.size - written})`;
    text = longer;
    written += high - low + 1;
  }
  return text;
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…(+${text.length - maxChars})`;
}
