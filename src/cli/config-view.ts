import type { Config } from "../config/config.ts";
import { KEY_NAMES, type KeyName } from "../config/keys.ts";
import { nameSource } from "../config/source.ts";
import type { TableSpec } from "../model/change.ts";
import { formatDuration } from "../model/duration.ts";
import type { Table, View } from "./output.ts";

/**
 * Every value of a configuration. As json and yaml it is a whole configuration file; for people, and line by line, each
 * value stands with where it comes from.
 */
export function configView(config: Config): View {
  const tables = config.tables?.map(fileEntryOf);
  const values: Table = {
    columns: [{ name: "key" }, { name: "value" }, { name: "from" }],
    rows: KEY_NAMES.map((key) => [key, config.show(key) ?? "-", nameSource(config.source(key)) + remark(config, key)]),
  };
  const declared: Table = {
    columns: ["table", "partitions", "handoff", "stop", "balance"].map((name) => ({ name })),
    rows: (config.tables ?? []).map(({ table, count, handoff, stopMs, balance }) => {
      return [table, count, handoff, formatDuration(stopMs), balance];
    }),
  };
  const noTables =
    config.tables === undefined ? "tables: not declared here; made by the API, or not yet" : "tables: none";
  return {
    data: { ...nested(config), ...(tables === undefined ? {} : { tables }) },
    items: KEY_NAMES.map((key) => ({
      key,
      value: writtenValue(config, key) ?? null,
      from: nameSource(config.source(key)),
      ...(config.idle(key) === undefined ? {} : { idle: true }),
    })),
    parts: [values, declared.rows.length > 0 ? declared : noTables],
  };
}

function remark(config: Config, key: KeyName): string {
  const idle = config.idle(key);
  return idle === undefined ? "" : ` (no effect ${idle})`;
}

/** The keys as the sections of a file. Those without a value are left out. */
function nested(config: Config): Record<string, unknown> {
  const file: Record<string, unknown> = {};
  const sections = new Map<string, Record<string, unknown>>();
  for (const key of KEY_NAMES) {
    const value = writtenValue(config, key);
    if (value === undefined) continue;
    const [section, member] = key.split(".", 2);
    if (section === undefined || member === undefined) {
      file[key] = value;
      continue;
    }
    const members = sections.get(section) ?? {};
    members[member] = value;
    sections.set(section, members);
    file[section] = members;
  }
  return file;
}

/** As it would be written in a file: numbers are numbers, durations and choices text. */
function writtenValue(config: Config, key: KeyName): string | number | undefined {
  const value: unknown = config.get(key);
  const shown = config.show(key);
  return typeof value === "number" && shown === String(value) ? value : shown;
}

function fileEntryOf({ table, count, keys, handoff, stopMs, balance, selector }: TableSpec): Record<string, unknown> {
  const size = keys === undefined ? { partitions: count } : { keys };
  return { name: table, ...size, handoff, stop: formatDuration(stopMs), balance, selector };
}
