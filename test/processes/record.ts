import { readFileSync } from "node:fs";

/**
 * What processes wrote down of what they may serve, and the rules that all of it together must keep.
 *
 * A round asks for every partition once, at some moment between its `from` and its `to`; these are times of the machine's
 * monotonic clock, so rounds of different processes can be compared. Consecutive rounds that give the same epoch make a run.
 * A process that was stopped or killed in the meantime simply has no round there: its run ends with the last round that
 * said yes, never later. A run across a pause that the lease outlived is one run, since the right was held all the time.
 */

/** One asking for every partition, by one process. */
export interface Round {
  readonly from: number;
  readonly to: number;
  /** Answers that differ from the round before; null: may not be served. */
  readonly says: Readonly<Record<string, number | null>>;
  /** The round right before or after the process stopped itself. */
  readonly halt?: "before" | "after";
}

/** One process may serve one partition under one epoch. */
export interface Run {
  /** Name of a process life. */
  readonly process: string;
  readonly place: string;
  readonly epoch: number;
  /** At this time at the latest it had said yes for the first time: the end of that round. */
  readonly first: number;
  /** It said yes for the last time at this time or later: the start of that round. Before `first` if there was only one round. */
  readonly last: number;
}

/** The clock of the rounds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A file of rounds that may still be written to. What was read of it once is not read again. */
export class RecordFile {
  readonly #file: string;
  readonly #rounds: Round[] = [];
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** All rounds so far. */
  rounds(): readonly Round[] {
    const fresh = readFileSync(this.#file).subarray(this.#read);
    // What follows the last line break is a line that is not written to its end.
    const whole = fresh.subarray(0, fresh.lastIndexOf("\n") + 1);
    this.#read += whole.length;
    const lines = whole.toString().split("\n").slice(0, -1);
    for (const line of lines) this.#rounds.push(JSON.parse(line) as Round);
    return this.#rounds;
  }
}

/** What the process said in the last of these rounds: epochs by place. */
export function answersAfter(rounds: readonly Round[]): ReadonlyMap<string, number> {
  const answers = new Map<string, number>();
  for (const { says } of rounds) {
    for (const [place, epoch] of Object.entries(says)) {
      if (epoch === null) answers.delete(place);
      else answers.set(place, epoch);
    }
  }
  return answers;
}

/** Every run of a process life, by the start of its first round. */
export function runsOf(process: string, rounds: readonly Round[]): readonly Run[] {
  const open = new Map<string, { -readonly [Member in keyof Run]: Run[Member] }>();
  const runs: Run[] = [];
  for (const { from, to, says } of rounds) {
    for (const [place, epoch] of Object.entries(says)) {
      open.delete(place);
      if (epoch === null) continue;
      const run = { process, place, epoch, first: to, last: from };
      open.set(place, run);
      runs.push(run);
    }
    for (const run of open.values()) run.last = from;
  }
  return runs;
}

/**
 * Pairs of runs of one partition, by different processes, of which neither can have been over when the other began.
 *
 * A yes stands for an unknown moment between its round's `from` and `to`. So A was over before B if A's last round may
 * have asked before B's first did: `A.last <= B.first`. Anything else is a moment at which both may serve, whatever the
 * clocks' resolution and however long a process lay between two instructions.
 */
export function findOverlaps(runs: readonly Run[]): readonly (readonly [Run, Run])[] {
  return [...byPlace(runs).values()].flatMap((list) =>
    list.flatMap((a, i) =>
      list
        .slice(i + 1)
        .filter((b) => a.process !== b.process && a.last > b.first && b.last > a.first)
        .map((b) => [a, b] as const),
    ),
  );
}

/** Pairs of consecutive runs of one partition whose epoch does not rise. One process may be given the same one back. */
export function findEpochsNotRising(runs: readonly Run[]): readonly (readonly [Run, Run])[] {
  return [...byPlace(runs).values()].flatMap((list) =>
    list.flatMap((b, i) => {
      const a = list[i - 1];
      if (a === undefined || b.epoch > a.epoch) return [];
      return b.epoch === a.epoch && b.process === a.process ? [] : [[a, b] as const];
    }),
  );
}

/** Runs that were under way at the one time and over before the other. */
export function findEnded(runs: readonly Run[], from: number, to: number): readonly Run[] {
  return runs.filter(({ first, last }) => first <= from && last >= from && last < to);
}

function byPlace(runs: readonly Run[]): ReadonlyMap<string, readonly Run[]> {
  const places = new Map<string, Run[]>();
  // A run of one round begins with that round, which may have a long pause in it.
  const begin = ({ first, last }: Run): number => Math.min(first, last);
  for (const run of [...runs].sort((a, b) => begin(a) - begin(b))) {
    const list = places.get(run.place) ?? [];
    list.push(run);
    places.set(run.place, list);
  }
  return places;
}
