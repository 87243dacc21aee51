import { type Change, emptyChange, type TableRecord } from "../../model/change.ts";
import { PartitionSet } from "../../model/partition-set.ts";

/** Changes as JSON text: sets as their ranges, and members with nothing in them left out. */

/** Members whose entries have a set `partitions`. */
const HOLDINGS = ["release", "unown", "own", "prepare", "unprepare", "ready", "unready", "ended"] as const;

export function writeChange(change: Change): string {
  const filled = Object.entries(change).filter(([, value]) => !(Array.isArray(value) && value.length === 0));
  return JSON.stringify(Object.fromEntries(filled));
}

/** The change that the text was made from. */
export function parseChange(text: string): Change {
  const raw = JSON.parse(text) as Change;
  const change = { ...emptyChange(raw.revision, raw.term), ...raw };
  const holdings = HOLDINGS.map((member) => [member, change[member].map(withPartitions)] as const);
  const tables = change.tables.map((entry) => ("removed" in entry ? entry : parseTable(entry)));
  return { ...change, tables, ...Object.fromEntries(holdings) };
}

function withPartitions<T extends { readonly partitions: unknown }>(entry: T): T {
  return { ...entry, partitions: PartitionSet.parse(String(entry.partitions)) };
}

function parseTable(record: TableRecord): TableRecord {
  const { retired } = record;
  return retired === undefined ? record : { ...record, retired: PartitionSet.parse(String(retired)) };
}
