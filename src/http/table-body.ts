import * as z from "zod";
import type { TableRecord, TableSpec } from "../model/change.ts";
import { DURATION_RULE, formatDuration, parseDuration } from "../model/duration.ts";
import { EvenkeelError } from "../model/errors.ts";
import { ID_RULE, isId, type TableName } from "../model/ids.ts";
import { MAX_PARTITIONS } from "../model/partition-set.ts";
import { refuseUnsupported } from "../model/supported.ts";
import { DEFAULT_STOP_MS, isPartitionKey, MAX_KEY_CHARS } from "../model/table-limits.ts";
import { MAX_SELECTOR_PAIRS, MAX_SELECTOR_VALUE_CHARS } from "./limits.ts";

const LONE_SURROGATE = /\p{Surrogate}/u;

function isText(value: unknown, maxChars: number): value is string {
  return typeof value === "string" && [...value].length <= maxChars && !LONE_SURROGATE.test(value);
}

const partitions = z
  .number({ error: "must be a number" })
  .refine((count) => Number.isInteger(count) && count >= 1 && count <= MAX_PARTITIONS, {
    error: `must be a whole number from 1 to ${MAX_PARTITIONS}`,
  });

const keys = z.custom<readonly string[]>(Array.isArray, { error: "must be an array of text" }).superRefine(checkKeys);

/** Checked by hand: zod would gather one issue for each of a million bad keys. */
function checkKeys(list: readonly unknown[], context: z.core.$RefinementCtx): void {
  const problem = findBadKey(list);
  if (problem !== undefined) context.addIssue({ code: "custom", ...problem });
}

function findBadKey(list: readonly unknown[]): { message: string; path: number[] } | undefined {
  if (list.length === 0 || list.length > MAX_PARTITIONS) {
    return { message: `must be 1 to ${MAX_PARTITIONS} keys`, path: [] };
  }
  const seen = new Set<unknown>();
  for (const [index, key] of list.entries()) {
    if (!isPartitionKey(key)) {
      return { message: `must be well-formed text of 1 to ${MAX_KEY_CHARS} characters`, path: [index] };
    }
    if (seen.has(key)) return { message: "is the same as an earlier key", path: [index] };
    seen.add(key);
  }
  return undefined;
}

const stop = z.unknown().transform((value, context) => {
  const ms = parseDuration(value);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: `must be ${DURATION_RULE}` });
  return z.NEVER;
});

const IDS_AS_NAMES = `must have ids as names: ${ID_RULE}`;

const pairs = z
  .record(
    z.string().refine(isId, { error: IDS_AS_NAMES }),
    z.string({ error: "must be text" }).refine((value) => isText(value, MAX_SELECTOR_VALUE_CHARS), {
      error: `must be well-formed text of at most ${MAX_SELECTOR_VALUE_CHARS} characters`,
    }),
    { error: (issue) => (issue.code === "invalid_key" ? IDS_AS_NAMES : "must be an object") },
  )
  .refine((read) => Object.keys(read).length <= MAX_SELECTOR_PAIRS, {
    error: `must have at most ${MAX_SELECTOR_PAIRS} pairs`,
  });

/** zod leaves out this one name without a word, and the table would be for more executors than was asked. */
const isWhole = (value: unknown): boolean =>
  typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__");

const selector = z.unknown().refine(isWhole, { error: IDS_AS_NAMES }).pipe(pairs);

const oneOf = <const Values extends readonly [string, ...string[]]>(...values: Values) =>
  z.enum(values, { error: `must be ${values.map((value) => `"${value}"`).join(" or ")}` });

const body = z
  .strictObject(
    {
      partitions: z.optional(partitions),
      keys: z.optional(keys),
      handoff: oneOf("exclusive", "overlap").default("exclusive"),
      stop: z.optional(stop),
      balance: oneOf("count", "load").default("count"),
      selector: selector.default({}),
    },
    { error: (issue) => (issue.code === "unrecognized_keys" ? "is not known here" : "must be a JSON object") },
  )
  .refine((table) => (table.partitions === undefined) !== (table.keys === undefined), {
    error: "must have one of `partitions` and `keys`",
  });

/** Reads the body of `PUT /v1/tables/NAME`. Throws EvenkeelError `invalid` or `not-supported`, naming the member. */
export function readTableBody(table: TableName, value: unknown): TableSpec {
  const result = body.safeParse(value);
  if (!result.success) throw invalid(result.error.issues[0]);
  const { partitions: count, keys: names, handoff, stop: stopMs = DEFAULT_STOP_MS, balance, selector } = result.data;
  const numbered = names === undefined ? { count: count ?? 0 } : { count: names.length, keys: names };
  const spec: TableSpec = { table, ...numbered, handoff, stopMs, balance, selector };
  refuseUnsupported(spec);
  return spec;
}

function invalid(issue: z.core.$ZodIssue | undefined): EvenkeelError {
  // What a caller called a member of its own is shown as JSON text, so it cannot pass for ours.
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1).map(quote) : [];
  const path = [...(issue?.path ?? []).map(String), ...unknown].join(".");
  return new EvenkeelError("invalid", `${path || "the body"} ${issue?.message ?? "is not valid"}`);
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}

/** A table as HTTP shows it. A number whose key was removed has null for a key. */
export function tableView(record: TableRecord): object {
  const { table, count, created, handoff, stopMs, balance, selector, keys, origin, removing, retired } = record;
  return {
    name: table,
    count,
    created,
    handoff,
    stop: formatDuration(stopMs),
    balance,
    selector,
    ...(keys === undefined ? {} : { keys: keys.map((key, number) => (retired?.has(number) === true ? null : key)) }),
    origin,
    ...(removing === undefined ? {} : { removing }),
  };
}
