/** Where a value came from, so that every message about it can say so. */
export type Source =
  | { readonly kind: "flag"; readonly flag: string }
  | { readonly kind: "variable"; readonly variable: string }
  | { readonly kind: "file"; readonly place: Place }
  | { readonly kind: "default" };

/** A character of the file; line and column count from 1. `file` is as the user wrote it. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export const DEFAULT: Source = { kind: "default" };

/** Short, for use within a sentence: `evenkeel.yaml:5`, `--lease-renew`, `EVENKEEL_LEASE__RENEW`, `default`. */
export function nameSource(source: Source): string {
  switch (source.kind) {
    case "flag":
      return source.flag;
    case "variable":
      return source.variable;
    case "file":
      return `${source.place.file}:${source.place.line}`;
    case "default":
      return "default";
    default:
      return source satisfies never;
  }
}

/** A value as somebody wrote it, not yet looked at. */
export interface Given {
  readonly raw: unknown;
  readonly source: Source;
}

/** Something wrong with the configuration, with its place if it stands in the file. */
export interface Problem {
  readonly place?: Place;
  readonly message: string;
}

/** A problem with a given value: placed if the value stands in the file, else naming the flag or variable. */
export function problemAt(source: Source, message: string): Problem {
  if (source.kind === "file") return { place: source.place, message };
  return { message: source.kind === "default" ? message : `${nameSource(source)}: ${message}` };
}

/** The configuration cannot be used. Lists every problem found, so that one look mends all. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = [...problems].sort(byPlace);
    super(sorted.map(formatProblem).join("\n"));
    this.problems = sorted;
  }
}

/** In the order of the file; what does not stand in it comes last. */
function byPlace({ place: a }: Problem, { place: b }: Problem): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return a.line - b.line || a.column - b.column;
}

export function formatProblem({ place, message }: Problem): string {
  return place === undefined ? message : `${place.file}:${place.line}:${place.column}: ${message}`;
}
