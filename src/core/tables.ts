import { holdersInOrder, tableStates } from "../ledger/state.ts";
import type { TableOrigin, TableRecord, TableSpec } from "../model/change.ts";
import { type ErrorCode, EvenkeelError } from "../model/errors.ts";
import type { Revision, TableName } from "../model/ids.ts";
import { MAX_PARTITIONS, PartitionSet } from "../model/partition-set.ts";
import type { Draft } from "./draft.ts";
import type { Answer } from "./effects.ts";
import type { Command, CoreState } from "./state.ts";

/** Puts the waiting table commands into the draft, in the order they came, each with its answer. */
export function draftCommands(draft: Draft, commands: readonly Command[]): void {
  for (const command of commands) {
    draft.answers.push({ request: command.request, answer: answerOf(() => draftCommand(draft, command)) });
  }
}

/** Asks back what a deleted table's or a removed key's owners hold, and drops tables of which nothing is held any more. */
export function draftRemovals(state: CoreState, draft: Draft): void {
  for (const { record } of tableStates(draft.ledger)) {
    const removing = draft.table(record.table);
    if (removing?.removing === undefined) continue;
    const releasing = draft.ledger.tables.get(record.table)?.releasing ?? 0;
    const ended = state.ended.get(record.table)?.size ?? 0;
    const owned = draft.ledger.tables.get(record.table)?.owned ?? 0;
    if (owned === 0 && releasing === ended)
      draft.putTable({ table: record.table, removed: true }, { kind: "table", tables: [record.table] });
  }
}

function draftCommand(draft: Draft, command: Command): Answer {
  if (command.kind === "declare") return declareTables(draft, command.specs);
  checkRevision(draft, command.ifRevision);
  return command.kind === "put" ? putTable(draft, command.spec, command.origin) : deleteTable(draft, command.table);
}

/** Refuses a command that rests on another revision; what this draft does already counts as the next one. */
function checkRevision(draft: Draft, ifRevision: Revision | undefined): void {
  const revision = draft.isEmpty ? draft.ledger.revision : draft.revision;
  if (ifRevision === undefined || ifRevision === revision) return;
  throw new EvenkeelError("revision-mismatch", `the revision is ${revision}`, "read again what changed, then retry");
}

function putTable(draft: Draft, spec: TableSpec, origin: TableOrigin): Answer {
  const before = draft.table(spec.table);
  const record = nextRecord(before, spec, origin, draft.revision);
  if (before !== undefined && JSON.stringify(before) === JSON.stringify(record)) {
    return { ok: true, table: spec.table, revision: draft.ledger.revision };
  }
  draft.putTable(record, { kind: "table", tables: [spec.table] });
  const retired = record.retired?.difference(before?.retired ?? PartitionSet.empty) ?? PartitionSet.empty;
  if (!retired.isEmpty) releasePartitions(draft, spec.table, retired);
  return { ok: true, table: spec.table, revision: draft.revision };
}

function deleteTable(draft: Draft, table: TableName): Answer {
  const record = draft.table(table);
  if (record === undefined)
    throw new EvenkeelError("not-found", `there is no table ${table}`, "see `evenkeel tables list`");
  if (record.removing !== undefined) return { ok: true, table, revision: draft.ledger.revision };
  if (!draft.ledger.tables.has(table)) {
    throw new EvenkeelError("conflict", `table ${table} is being made in this very moment`, "try again");
  }
  draft.putTable({ ...record, removing: true }, { kind: "table", tables: [table] });
  releasePartitions(draft, table, PartitionSet.upTo(record.count));
  return { ok: true, table, revision: draft.revision };
}

/** What the configuration lists at a start. All of it is checked before any of it counts. */
function declareTables(draft: Draft, specs: readonly TableSpec[]): Answer {
  for (const spec of specs) nextRecord(draft.table(spec.table), spec, originFor(draft, spec), draft.revision);
  const listed = new Set(specs.map((spec) => spec.table));
  for (const { record } of tableStates(draft.ledger)) {
    if (record.origin === "file" && !listed.has(record.table)) deleteTable(draft, record.table);
  }
  for (const spec of specs) putTable(draft, spec, originFor(draft, spec));
  if (!draft.ledger.declared) {
    draft.declared = true;
    draft.addCause({ kind: "table" });
  }
  return { ok: true, revision: draft.isEmpty ? draft.ledger.revision : draft.revision };
}

/** The file never takes a table over that the API made. */
function originFor(draft: Draft, spec: TableSpec): TableOrigin {
  return draft.table(spec.table)?.origin ?? "file";
}

function releasePartitions(draft: Draft, table: TableName, partitions: PartitionSet): void {
  for (const holder of holdersInOrder(draft.ledger)) {
    for (const set of holder.owned.get(table) ?? []) {
      draft.askBack(table, set.partitions.intersect(partitions), holder.executor, undefined);
    }
  }
}

/** The record that a spec makes of what is there. Throws EvenkeelError where the spec asks for what cannot change. */
export function nextRecord(
  before: TableRecord | undefined,
  spec: TableSpec,
  origin: TableOrigin,
  revision: Revision,
): TableRecord {
  const { table, handoff, stopMs, balance, selector } = spec;
  const settled = { table, handoff, stopMs, balance, selector, origin };
  if (before === undefined) {
    const keys = spec.keys === undefined ? {} : { keys: spec.keys };
    return { ...settled, count: spec.count, ...keys, created: revision };
  }
  if (before.removing !== undefined) {
    throw new EvenkeelError(
      "table-removing",
      `table ${table} is still being removed`,
      "wait until the last owner has given it back, then try again",
    );
  }
  if (before.handoff !== handoff) throw fixed(table, `its handoff is ${before.handoff} and cannot become ${handoff}`);
  if ((before.keys === undefined) !== (spec.keys === undefined))
    throw fixed(table, "numbered partitions and keys cannot be exchanged");
  if (before.keys !== undefined && spec.keys !== undefined) {
    return { ...settled, ...nextKeys(before, before.keys, spec.keys), created: before.created };
  }
  if (spec.count < before.count)
    throw fixed(table, `it has ${before.count} partitions and cannot have ${spec.count}: the count only grows`);
  return { ...settled, count: spec.count, created: before.created };
}

/** Numbers of surviving keys stay; removed ones retire theirs; new keys get new numbers at the end. */
function nextKeys(before: TableRecord, known: readonly string[], listed: readonly string[]) {
  const retired = before.retired ?? PartitionSet.empty;
  const wanted = new Set(listed);
  const numbers = [...known.keys()];
  const surviving = numbers
    .filter((number) => !retired.has(number) && wanted.has(known[number] ?? ""))
    .map((number) => known[number]);
  const kept = new Set(surviving);
  const inOrder = listed.filter((key) => kept.has(key));
  const added = listed.filter((key) => !kept.has(key));
  if (
    inOrder.some((key, index) => key !== surviving[index]) ||
    listed.slice(0, inOrder.length).some((key) => !kept.has(key))
  ) {
    throw fixed(before.table, "the keys it keeps must stand first, in the order they have");
  }
  const keys = [...known, ...added];
  if (keys.length > MAX_PARTITIONS) {
    throw new EvenkeelError(
      "invalid",
      `table ${before.table} would have had more than ${MAX_PARTITIONS} keys in its life`,
      "make a new table",
    );
  }
  const gone = PartitionSet.of(numbers.filter((number) => !wanted.has(known[number] ?? ""))).union(retired);
  return { count: keys.length, keys, ...(gone.isEmpty ? {} : { retired: gone }) };
}

function fixed(table: TableName, what: string): EvenkeelError {
  return new EvenkeelError("table-fixed", `table ${table}: ${what}`, "make a new table under another name");
}

function answerOf(attempt: () => Answer): Answer {
  try {
    return attempt();
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    const { code, detail, hint } = error;
    return { ok: false, code: code satisfies ErrorCode, detail, ...(hint === undefined ? {} : { hint }) };
  }
}

/** Keys that a table has now, retired ones apart. */
export function currentKeys(record: TableRecord): readonly string[] | undefined {
  return record.keys?.filter((_, number) => record.retired?.has(number) !== true);
}
