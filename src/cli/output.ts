import { stringify } from "yaml";
import { escapeJson, escapeText } from "../model/escape.ts";

/** Prints what a command found: as tables for people, or as data for programs. */

export const FORMATS = ["table", "wide", "json", "jsonl", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

export interface Column {
  readonly name: string;
  /** Only shown by `-o wide`. */
  readonly wide?: true;
  /** Numbers stand to the right, so that their digits are below each other. */
  readonly align?: "right";
}

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** One result in all forms. */
export interface View {
  /** For json and yaml: plain data. */
  readonly data: unknown;
  /** For jsonl: one line each. Absent: the data is one line. */
  readonly items?: readonly unknown[];
  /** For people: tables and lines of text, with an empty line between them. */
  readonly parts: readonly (Table | string)[];
}

/** The text of a view, with a newline at its end unless it is empty. */
export function format(view: View, as: Format): string {
  switch (as) {
    case "json":
      return `${escapeJson(JSON.stringify(view.data, null, 2))}\n`;
    case "jsonl":
      return (view.items ?? [view.data]).map((item) => `${escapeJson(JSON.stringify(item))}\n`).join("");
    case "yaml":
      return formatYaml(view.data);
    case "table":
    case "wide":
      return view.parts
        .map((part) => (typeof part === "string" ? plainLines(part) : formatTable(part, as === "wide")))
        .filter((text) => text !== "")
        .map((text) => `${text}\n`)
        .join("\n");
    default:
      return as satisfies never;
  }
}

/** Columns two spaces apart, names in capitals; no line ends in spaces. Empty without rows. */
function formatTable({ columns, rows }: Table, wide: boolean): string {
  if (rows.length === 0) return "";
  const shown = columns.map((column, i) => ({ ...column, i })).filter((column) => wide || column.wide !== true);
  const cells = [
    shown.map(({ name }) => name.toUpperCase()),
    ...rows.map((row) => shown.map(({ i }) => escapeText(String(row[i] ?? "")))),
  ];
  const widths = shown.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, i) => (shown[i]?.align === "right" ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Several lines of text of others. */
export function plainLines(text: string): string {
  return text.split("\n").map(escapeText).join("\n");
}

/** All texts stand in double quotes where one of them needs an escape. */
function formatYaml(data: unknown): string {
  const text = stringify(data);
  if (escapeJson(text) === text) return text;
  return escapeJson(stringify(data, { defaultStringType: "QUOTE_DOUBLE" }));
}
