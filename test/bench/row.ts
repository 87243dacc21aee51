/** What a row of the bench is and what it yields. */

export interface RowOptions {
  /** Rounds of floor and subject in turn, at least three. */
  readonly rounds: number;
  /** Sizes of DESIGN §5 where they are larger than what the whole run has time for. */
  readonly large: boolean;
  /** Less work in each round: to see that the rows run, not to be quoted. */
  readonly quick: boolean;
}

export interface Row {
  readonly name: string;
  measure(options: RowOptions): Promise<readonly Figure[]>;
}

/** One line of the result. Floor and subject are medians, in `unit`. */
export interface Figure {
  readonly what: string;
  readonly unit: Unit;
  /** Absent where nothing can be done cheaper, as for a count. */
  readonly floor?: number;
  readonly subject: number;
  /** The other way to count the same, which no goal judges: wall time where the figure is CPU time, and the reverse. */
  readonly beside?: { readonly of: "wall" | "CPU"; readonly floor?: number; readonly subject: number };
  readonly goal: Goal;
  readonly note?: string;
}

export type Unit = "ms" | "µs" | "KB" | "MB" | "%" | "commits";

/** All members that are there must be met. Without any, the figure is only told. */
export interface Goal {
  readonly maxRatio?: number;
  readonly max?: number;
}

export function ratioOf({ floor, subject }: Figure): number | undefined {
  return floor === undefined || floor === 0 ? undefined : subject / floor;
}

/** Undefined where there is no goal to meet. */
export function isMet(figure: Figure): boolean | undefined {
  const { maxRatio, max } = figure.goal;
  if (maxRatio === undefined && max === undefined) return undefined;
  const ratio = ratioOf(figure);
  const isRatioMet = maxRatio === undefined || (ratio !== undefined && ratio <= maxRatio);
  return isRatioMet && (max === undefined || figure.subject <= max);
}
