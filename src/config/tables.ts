import { z } from "zod";
import type { TableSpec } from "../model/change.ts";
import { DURATION_RULE, parseDuration } from "../model/duration.ts";
import { ID_RULE, isId, tableName } from "../model/ids.ts";
import { MAX_PARTITIONS } from "../model/partition-set.ts";
import { DEFAULT_STOP_MS, isPartitionKey, MAX_KEY_CHARS } from "../model/table-limits.ts";
import type { TablesNode } from "./document.ts";
import { quote } from "./kinds.ts";
import { type Problem, problemAt } from "./source.ts";
import { didYouMean } from "./suggest.ts";

/** The message of a member that is not `wanted`, with what it is. */
const wanting =
  (wanted: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? `is missing; write ${wanted}` : `is ${quote(input)}; write ${wanted}`;

const text = (wanted: string) => z.string({ error: wanting(wanted) });

const countRule = { error: wanting(`a whole number, 1 to ${MAX_PARTITIONS}`) };
const partitions = z.int(countRule).min(1, countRule).max(MAX_PARTITIONS, countRule);

const keyRule = `a text of 1 to ${MAX_KEY_CHARS} characters, in quotes if it looks like something else`;
const key = text(keyRule).refine(isPartitionKey, { error: wanting(keyRule) });

/** zod leaves out this one name without a word, and the table would be for more executors than was meant. */
function isWhole(value: unknown): boolean {
  return typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__");
}

/** Shown where something else stands for a table. */
const EXAMPLE = "{ name: trips, partitions: 128 }";

const shape = z.strictObject({
  name: text(ID_RULE).refine(isId, { error: wanting(ID_RULE) }),
  partitions: partitions.optional(),
  keys: z
    .array(key, { error: wanting("a list of keys") })
    .min(1, { error: "is empty; list at least one key" })
    .max(MAX_PARTITIONS, { error: `has more than ${MAX_PARTITIONS} keys` })
    .optional(),
  handoff: z.enum(["exclusive", "overlap"], { error: wanting("exclusive or overlap") }).default("exclusive"),
  stop: z
    .unknown()
    .refine((raw) => parseDuration(raw) !== undefined, { error: wanting(DURATION_RULE) })
    .optional(),
  balance: z.enum(["count", "load"], { error: wanting("count or load") }).default("count"),
  selector: z
    .unknown()
    .refine(isWhole, { error: "has the name __proto__, which no label has; remove it" })
    .pipe(z.record(z.string(), text("a label's value, in quotes if it is not text")))
    .default({}),
});

type TableShape = z.output<typeof shape>;

/** Something wrong at a member of the list of tables. */
interface Breach {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The tables of a file. What is wrong comes back as problems; a table that has one is left out. */
export function readTables(node: TablesNode): {
  readonly specs: readonly TableSpec[];
  readonly problems: readonly Problem[];
} {
  const breaches: Breach[] = [];
  const specs: TableSpec[] = [];
  if (!Array.isArray(node.raw)) {
    breaches.push({
      path: [],
      message: `is ${quote(node.raw)}; write a list such as [${EXAMPLE}], or [] for no tables`,
    });
  } else {
    const first = new Map<string, number>();
    node.raw.forEach((raw: unknown, i) => {
      const { value, found } = readTable(raw, i);
      breaches.push(...found);
      if (value === undefined) return;
      const same = first.get(value.name);
      if (same === undefined) specs.push(specOf(value));
      else
        breaches.push({ path: [i, "name"], message: `is ${quote(value.name)}, the same as that of tables[${same}]` });
      first.set(value.name, same ?? i);
    });
  }
  const problems = breaches.map(({ path, message }) =>
    problemAt({ kind: "file", place: node.place(path) }, `${pathText(path)} ${message}`),
  );
  return { specs, problems };
}

function readTable(raw: unknown, i: number): { readonly value?: TableShape; readonly found: readonly Breach[] } {
  const parsed = shape.safeParse(raw, { reportInput: true });
  if (!parsed.success) {
    return { found: parsed.error.issues.flatMap((issue) => breachesOf(issue, i)) };
  }
  const found = conflicts(parsed.data).map(({ path, message }) => ({ path: [i, ...path], message }));
  return { value: parsed.data, found };
}

function breachesOf(issue: z.core.$ZodIssue, i: number): readonly Breach[] {
  if (issue.code === "unrecognized_keys") {
    const known = Object.keys(shape.shape);
    return issue.keys.map((key) => ({
      path: [i, ...issue.path, key],
      message: `is not a key of a table${didYouMean(key, known)}`,
    }));
  }
  const message = issue.path.length === 0 ? `is ${quote(issue.input)}; write ${EXAMPLE}` : issue.message;
  return [{ path: [i, ...issue.path], message }];
}

/** What members, right each for itself, contradict, and what this version does not serve. */
function conflicts(value: TableShape): readonly Breach[] {
  const found: Breach[] = [];
  const { keys, partitions: count } = value;
  if (count === undefined && keys === undefined)
    found.push({ path: [], message: `has neither partitions nor keys; write ${EXAMPLE}` });
  if (count !== undefined && keys !== undefined) {
    found.push({ path: ["keys"], message: `stands beside partitions ${count}; a table has one of the two` });
  }
  const first = new Map<string, number>();
  keys?.forEach((key, i) => {
    const same = first.get(key);
    if (same === undefined) first.set(key, i);
    else found.push({ path: ["keys", i], message: `is ${quote(key)}, the same as keys[${same}]` });
  });
  const later = "is not supported yet";
  if (value.handoff !== "exclusive")
    found.push({ path: ["handoff"], message: `${value.handoff} ${later}; write exclusive` });
  if (value.balance !== "count") found.push({ path: ["balance"], message: `${value.balance} ${later}; write count` });
  if (Object.keys(value.selector).length > 0) found.push({ path: ["selector"], message: `${later}; remove it` });
  return found;
}

function specOf({ name, partitions: count, keys, handoff, stop, balance, selector }: TableShape): TableSpec {
  const spec = {
    table: tableName(name),
    count: keys?.length ?? count ?? 0,
    handoff,
    stopMs: parseDuration(stop) ?? DEFAULT_STOP_MS,
    balance,
    selector,
  };
  return keys === undefined ? spec : { ...spec, keys };
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : `${text}.${String(step)}`),
    "tables",
  );
}
