import { readFileSync, writeFileSync } from "node:fs";
import { type Figure, isMet, ratioOf } from "./row.ts";

/** What was measured, for people, for machines, and for RESULTS.md. */

export interface RowResult {
  readonly name: string;
  readonly figures: readonly Figure[];
  readonly error?: string;
  /** CPUs that other processes kept busy meanwhile. */
  readonly foreignCpus: number | undefined;
  readonly tookMs: number;
}

export interface Report {
  readonly machine: string;
  readonly date: string;
  readonly rounds: number;
  readonly quick: boolean;
  readonly large: boolean;
  readonly results: readonly RowResult[];
}

/** Rows of DESIGN §5 that have nothing to measure yet, and what brings it. */
export const LATER: readonly string[] = [
  "durable commit of a change: comes with the durable store",
  "restart with 1,000,000 partitions on disk, to the first push: comes with the durable store",
  "simulator, times real time on one core: comes with the simulator",
];

const HEADINGS = [
  "what",
  "floor",
  "evenkeel",
  "ratio",
  "goal",
  "met",
  "beside: floor, evenkeel",
  "row",
  "foreign CPUs",
];

export function writeTable(report: Report, later: readonly string[]): string {
  const lines = columns([HEADINGS, ...cells(report)]).map((row) => row.join("  ").trimEnd());
  return `${headline(report)}\n\n${lines.join("\n")}\n${notes(report, later, "")}`;
}

/** Padded, as the formatter of the checkout would do it. */
export function writeMarkdown(report: Report, later: readonly string[]): string {
  const [head = [], ...rows] = columns([HEADINGS, ...cells(report)]);
  const rule = head.map((cell) => "-".repeat(cell.length));
  const lines = [head, rule, ...rows].map((row) => `| ${row.join(" | ")} |`);
  return `${headline(report)}\n\n${lines.join("\n")}\n${notes(report, later, "- ")}`;
}

/** Each cell as wide as the widest of its column. */
function columns(rows: readonly (readonly string[])[]): string[][] {
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)));
}

export function writeJson(report: Report, later: readonly string[]): string {
  const results = report.results.map((result) => ({
    ...result,
    figures: result.figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), met: isMet(figure) })),
  }));
  return `${JSON.stringify({ ...report, results, later }, null, 2)}\n`;
}

const BEGIN = "<!-- figures: written by `npm run bench -- --markdown` -->\n";
const END = "<!-- end of figures -->\n";

/** Puts `text` in the place of what stands between the two marks of a document. */
export function replaceFigures(document: URL, text: string): void {
  const before = readFileSync(document, "utf8");
  const [begin, end] = [before.indexOf(BEGIN), before.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${document.pathname} has no place for figures`);
  writeFileSync(document, `${before.slice(0, begin)}${BEGIN}\n${text}\n${before.slice(end)}`);
}

function headline({ machine, date, rounds, quick, large }: Report): string {
  const how = `${rounds} rounds${quick ? ", quick: not to be quoted" : ""}${large ? ", large sizes" : ""}`;
  return `${date}, ${machine} at the start, medians of ${how}.`;
}

function cells({ results }: Report): string[][] {
  return results.flatMap(({ name, figures, error, foreignCpus }) => {
    const foreign = foreignCpus === undefined ? "?" : foreignCpus.toFixed(1);
    if (error !== undefined) return [[name, "", "", "", "", "failed", "", name, foreign]];
    return figures.map((figure) => [
      figure.what,
      amount(figure.floor, figure.unit),
      amount(figure.subject, figure.unit),
      times(ratioOf(figure)),
      describeGoal(figure),
      { true: "yes", false: "no", undefined: "–" }[`${isMet(figure)}`],
      describeBeside(figure),
      name,
      foreign,
    ]);
  });
}

function notes({ results }: Report, later: readonly string[], lead: string): string {
  const told = new Set<string>();
  for (const { name, figures, error } of results) {
    if (error !== undefined) told.add(`${name}: ${error.split("\n")[0]}`);
    for (const { what, note } of figures) if (note !== undefined) told.add(`${what}: ${note}`);
  }
  const lines = [...told, ...later].map((text) => `${lead}${text}\n`);
  return lines.length === 0 ? "" : `\n${lines.join("")}`;
}

function describeGoal({ goal: { maxRatio, max }, unit }: Figure): string {
  const parts = [
    ...(max === undefined ? [] : [`≤ ${max} ${unit}`]),
    ...(maxRatio === undefined ? [] : [`≤ ${maxRatio} ×`]),
  ];
  return parts.length === 0 ? "–" : parts.join(", ");
}

function describeBeside({ beside, unit }: Figure): string {
  if (beside === undefined) return "";
  const floor = beside.floor === undefined ? "" : `${digits(beside.floor)}, `;
  return `${beside.of} ${floor}${digits(beside.subject)} ${unit}`;
}

function amount(value: number | undefined, unit: string): string {
  return value === undefined ? "" : `${digits(value)} ${unit}`;
}

function times(ratio: number | undefined): string {
  return ratio === undefined ? "" : `${digits(ratio)} ×`;
}

/** Three significant digits: more would pretend a precision that no shared machine has. */
function digits(value: number): string {
  if (value === 0 || Math.abs(value) >= 100) return value.toFixed(0);
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toPrecision(value < 1 ? 2 : 3);
}
