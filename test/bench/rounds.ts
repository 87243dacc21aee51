/** Rounds of measurements and what is made of them. */

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The value that `share` of all are at or below. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** What a call takes, in milliseconds. */
export function timed(call: () => void): number {
  const startedAt = performance.now();
  call();
  return performance.now() - startedAt;
}

export interface Pair {
  readonly floor: number;
  readonly subject: number;
}

/** Measures floor and subject in turn, so that what else the machine does falls on both. Medians. */
export async function interleave(
  rounds: number,
  floor: () => number | Promise<number>,
  subject: () => number | Promise<number>,
): Promise<Pair> {
  const floors: number[] = [];
  const subjects: number[] = [];
  for (let round = 0; round < rounds; round++) {
    floors.push(await floor());
    subjects.push(await subject());
  }
  return { floor: median(floors), subject: median(subjects) };
}
