import * as z from "zod";
import { isId } from "../model/ids.ts";
import { MAX_KEY_CHARS } from "./limits.ts";
import {
  anyObject,
  causeList,
  checked,
  executorIdValue,
  instanceIdValue,
  integer,
  isText,
  listOf,
  partitionSet,
  serverText,
  tableFactsMembers,
  tableNameValue,
  traitMembers,
} from "./values.ts";

/** Frames that a scheduler sends to an observer. Members not listed are ignored. */

/** Keys by partition number; null where a key was removed and its number retired. */
const tableKeys = checked<readonly (string | null)[]>(
  `an array of null or well-formed text of at most ${MAX_KEY_CHARS} characters`,
  (value) => Array.isArray(value) && value.every((key) => key === null || isText(key, MAX_KEY_CHARS)),
);

const tableRow = z.object({
  ...tableFactsMembers,
  keys: z.exactOptional(tableKeys),
  removing: z.exactOptional(z.literal(true)),
});

const executorRow = z.object({
  executor: executorIdValue,
  instance: instanceIdValue,
  state: z.enum(["live", "draining", "cordoned", "lost", "left"]),
  ...traitMembers,
});

const unownedReason = z.enum([
  "forming",
  "no-executor",
  "no-eligible-executor",
  "capacity",
  "reserved",
  "backoff",
  "poison",
  "held",
  "paused",
]);

const some = { table: tableNameValue, partitions: partitionSet };
const held = { ...some, executor: executorIdValue };
const unowned = z.object({ ...some, reason: unownedReason, to: z.exactOptional(executorIdValue) });

/** A holding of one executor under one epoch. `to` on what is releasing: who it is meant for. */
const holding = z.object({
  ...held,
  instance: instanceIdValue,
  epoch: integer,
  state: z.enum(["owned", "releasing", "preparing", "trailing"]),
  ready: z.boolean(),
  to: z.exactOptional(executorIdValue),
});

export const snapshot = z.object({
  type: z.literal("snapshot"),
  revision: integer,
  tables: listOf(tableRow).default([]),
  executors: listOf(executorRow).default([]),
  holdings: listOf(holding).default([]),
  unowned: listOf(unowned).default([]),
  policy: z.exactOptional(anyObject),
  more: z.boolean().default(false),
});

const removedTable = z.object({ table: tableNameValue, removed: z.literal(true) });
const removedExecutor = z.object({ executor: executorIdValue, removed: z.literal(true) });
const preparation = z.object({ ...held, to: z.exactOptional(executorIdValue), reason: z.exactOptional(serverText) });

export const change = z.object({
  type: z.literal("change"),
  revision: integer,
  base: integer,
  /** Wall time in ms since 1970, for display only. */
  at: integer,
  cause: causeList,
  executors: listOf(z.union([removedExecutor, executorRow])).default([]),
  tables: listOf(z.union([removedTable, tableRow])).default([]),
  release: listOf(z.object({ ...held, to: z.exactOptional(executorIdValue) })).default([]),
  unown: listOf(unowned).default([]),
  own: listOf(z.object({ ...held, instance: instanceIdValue })).default([]),
  prepare: listOf(preparation).default([]),
  unprepare: listOf(preparation).default([]),
  ready: listOf(z.object(held)).default([]),
  unready: listOf(z.object(held)).default([]),
  ended: listOf(z.object({ ...held, epoch: integer })).default([]),
  policy: z.exactOptional(anyObject),
  more: z.exactOptional(z.boolean()),
});

/** Everything up to `revision` has been delivered. */
export const progress = z.object({ type: z.literal("progress"), revision: integer });

/** Forget everything, the revision too; a snapshot follows. */
export const reset = z.object({ type: z.literal("reset"), reason: serverText });

/** One of the scheduler's log events. Lossy: `dropped` says how many were left out before this one. */
export const event = z.object({
  type: z.literal("event"),
  event: checked<string>("an event name", (value) => typeof value === "string" && isId(value)),
  level: z.enum(["debug", "info", "warn", "error"]),
  fields: anyObject,
  dropped: integer,
});
