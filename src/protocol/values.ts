import * as z from "zod";
import type { Cause, ExecutorTraits } from "../model/change.ts";
import type { Failure, Grant, PartitionKey, Revoke, TableFacts } from "../model/grant.ts";
import { type ExecutorId, ID_RULE, type InstanceId, isId, type TableName } from "../model/ids.ts";
import { MAX_PARTITIONS, PartitionSet, PartitionSetError } from "../model/partition-set.ts";
import {
  MAX_ADDRESS_CHARS,
  MAX_FRAME_BYTES,
  MAX_KEY_CHARS,
  MAX_LABEL_CHARS,
  MAX_LABELS,
  MAX_REASON_CHARS,
  MAX_WEIGHT,
} from "./limits.ts";

/**
 * The values that frames are made of. No message here repeats what the peer sent: the messages end up in close reasons
 * and logs.
 */

/** A value that `holds` accepts as it is; otherwise the issue says the rule. */
export function checked<T>(rule: string, holds: (value: unknown) => boolean) {
  return z.custom<T>(holds, { error: (issue) => (issue.input === undefined ? "is missing" : `must be ${rule}`) });
}

const id = <T extends string>() => checked<T>(`an id: ${ID_RULE}`, (value) => typeof value === "string" && isId(value));

export const executorIdValue = id<ExecutorId>();
export const instanceIdValue = id<InstanceId>();
export const tableNameValue = id<TableName>();
/** An id that stands for nothing in the model: incarnation, session, zone, slot. */
export const plainId = id<string>();

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

export const integer = checked<number>("an integer from 0 to 2^53-1", isInteger);
export const positiveInteger = checked<number>("an integer from 1 to 2^53-1", (value) => isInteger(value) && value > 0);
export const weightValue = checked<number>(
  `a number above 0, at most ${MAX_WEIGHT}`,
  (value) => typeof value === "number" && value > 0 && value <= MAX_WEIGHT,
);
export const countValue = checked<number>(
  `an integer from 0 to ${MAX_PARTITIONS}`,
  (value) => isInteger(value) && value <= MAX_PARTITIONS,
);
export const handoffValue = z.enum(["exclusive", "overlap"]);

// A lone surrogate has no UTF-8: two different strings would leave the process as one.
const LONE_SURROGATE = /\p{Surrogate}/u;

/** True for well-formed text of at most `maxChars` code points. */
export function isText(value: unknown, maxChars: number): value is string {
  if (typeof value !== "string" || value.length > 2 * maxChars) return false;
  return (value.length <= maxChars || [...value].length <= maxChars) && !LONE_SURROGATE.test(value);
}

/** Free text: data for logs and pages, never interpreted. */
export const text = (maxChars: number) =>
  checked<string>(`well-formed text of at most ${maxChars} characters`, (value) => isText(value, maxChars));

/** Text of the scheduler: it knows its limits, and a client that refused a long sentence would only lose its session. */
export const serverText = checked<string>("well-formed text", (value) => isText(value, MAX_FRAME_BYTES));

/** A partition set in its canonical text form; any other way to write it is an issue. */
export const partitionSet = z.string().transform((written, context) => {
  try {
    return PartitionSet.parse(written);
  } catch (error) {
    if (!(error instanceof PartitionSetError)) throw error;
    context.issues.push({ code: "custom", message: `must be a canonical set: ${error.problem}`, input: written });
    return z.NEVER;
  }
});

/**
 * An array whose elements go through `read` one by one; the first issue ends it. zod's own array would gather an issue
 * for each of thousands of bad elements, and costs many times the JSON.parse of a long list.
 */
function listBy<T>(read: (element: unknown) => { readonly value: T } | Problem) {
  return z.unknown().transform((value, context): readonly T[] => {
    if (!Array.isArray(value)) {
      const message = value === undefined ? "is missing" : "must be an array";
      context.issues.push({ code: "custom", message, input: value });
      return z.NEVER;
    }
    const out: T[] = [];
    for (const [index, element] of value.entries()) {
      const result = read(element);
      if ("problem" in result) {
        context.issues.push({
          code: "custom",
          message: result.problem,
          path: [index, ...result.path],
          input: undefined,
        });
        return z.NEVER;
      }
      out.push(result.value);
    }
    return out;
  });
}

interface Problem {
  readonly problem: string;
  readonly path: readonly (string | number)[];
}

/** A list of few, rich entries, each read by a schema. */
export function listOf<T>(schema: z.ZodType<T>) {
  return listBy<T>((element) => {
    const result = schema.safeParse(element);
    if (result.success) return { value: result.data };
    const issue = result.error.issues[0];
    return { problem: issue?.message ?? "is not valid", path: (issue?.path ?? []) as (string | number)[] };
  });
}

/** A list of ids, which may be long. */
export const idList = <T extends string>() =>
  listBy<T>((element) =>
    typeof element === "string" && isId(element)
      ? { value: element as T }
      : { problem: `must be an id: ${ID_RULE}`, path: [] },
  );

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Any JSON object, handed on as it came. */
export const anyObject = checked<Readonly<Record<string, unknown>>>("an object", isObject);

/** An object of `{table, partition, …}`, of which there may be one for each partition. */
function partitionList<T extends { readonly table: TableName; readonly partition: number }>(
  member: Exclude<keyof T, "table" | "partition"> & string,
  rule: string,
  holds: (value: unknown) => boolean,
) {
  return listBy<T>((element) => {
    if (!isObject(element)) return { problem: "must be an object", path: [] };
    const { table, partition, [member]: value } = element;
    if (typeof table !== "string" || !isId(table)) return { problem: "must be an id", path: ["table"] };
    if (!isInteger(partition) || partition >= MAX_PARTITIONS) {
      return { problem: `must be an integer from 0 to ${MAX_PARTITIONS - 1}`, path: ["partition"] };
    }
    if (!holds(value)) return { problem: rule, path: [member] };
    return { value: { table, partition, [member]: value } as unknown as T };
  });
}

/** Load of one partition, in a unit that the executors agree on. */
export interface PartitionLoad {
  readonly table: TableName;
  readonly partition: number;
  readonly load: number;
}

export const loadList = partitionList<PartitionLoad>(
  "load",
  "must be a finite number, 0 or more",
  (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
);

export const keyList = partitionList<PartitionKey>(
  "key",
  `must be well-formed text of at most ${MAX_KEY_CHARS} characters`,
  (value) => isText(value, MAX_KEY_CHARS),
);

/**
 * Labels as an object without a prototype: `constructor` and the like are valid label keys, and must not be found in an
 * executor that does not have them.
 */
export const labelsValue = z.unknown().transform((value, context): Readonly<Record<string, string>> => {
  const labels: Record<string, string> = Object.create(null);
  const problem = fillLabels(labels, value);
  if (problem === undefined) return labels;
  context.issues.push({ code: "custom", message: problem, input: value });
  return z.NEVER;
});

function fillLabels(labels: Record<string, string>, value: unknown): string | undefined {
  if (!isObject(value)) return "must be an object";
  const entries = Object.entries(value);
  if (entries.length > MAX_LABELS) return `must have at most ${MAX_LABELS} pairs`;
  for (const [key, label] of entries) {
    if (!isId(key)) return `must have ids as keys: ${ID_RULE}`;
    if (!isText(label, MAX_LABEL_CHARS)) {
      return `must have well-formed text of at most ${MAX_LABEL_CHARS} characters as values`;
    }
    labels[key] = label;
  }
  return undefined;
}

/** What hello and the observer's frames say of an executor, all of it optional. */
export const traitMembers = {
  address: z.exactOptional(text(MAX_ADDRESS_CHARS)),
  zone: z.exactOptional(plainId),
  slot: z.exactOptional(plainId),
  labels: z.exactOptional(labelsValue),
  weight: z.exactOptional(weightValue),
  capacity: z.exactOptional(integer),
} satisfies Record<keyof ExecutorTraits, z.ZodType>;

const grantMembers = { table: tableNameValue, partitions: partitionSet, epoch: integer };

export const grantList = listOf<Grant>(z.object(grantMembers));
export const revokeList = listOf<Revoke>(z.object({ ...grantMembers, stopMs: integer }));
export const failureList = listOf<Failure>(
  z.object({ ...grantMembers, reason: text(MAX_REASON_CHARS), retryable: z.boolean().default(true) }),
);

export const tableFactsMembers = {
  table: tableNameValue,
  count: countValue,
  created: integer,
  handoff: handoffValue,
};

export const tableFactsList = listOf<TableFacts>(z.object(tableFactsMembers));

export const causeList = listOf<Cause>(
  z.object({
    kind: z.enum([
      "formation",
      "join",
      "loss",
      "leave",
      "drain",
      "restart",
      "replacement",
      "table",
      "executor",
      "balance",
      "failed",
      "operator",
      "recovery",
    ]),
    executors: z.exactOptional(idList<ExecutorId>()),
    tables: z.exactOptional(idList<TableName>()),
    by: z.exactOptional(serverText),
    note: z.exactOptional(serverText),
  }),
);
