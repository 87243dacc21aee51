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

/** What something took, in one unit. */
export interface Cost {
  readonly cpu: number;
  readonly wall: number;
}

/** What a call takes of this process, in milliseconds. Its CPU time counts what collects and compiles beside it as well. */
export function timed(call: () => void): Cost {
  const { user, system } = process.cpuUsage();
  const startedAt = performance.now();
  call();
  const wall = performance.now() - startedAt;
  const used = process.cpuUsage();
  return { cpu: (used.user - user + used.system - system) / 1_000, wall };
}

/** What work takes of another process, in milliseconds; `cpuMicros` asks that for its CPU time. */
export async function metered(cpuMicros: () => Promise<number>, work: () => Promise<unknown>): Promise<Cost> {
  const before = await cpuMicros();
  const startedAt = performance.now();
  await work();
  const wall = performance.now() - startedAt;
  return { cpu: ((await cpuMicros()) - before) / 1_000, wall };
}

/** The median of each. */
export function medianCost(costs: readonly Cost[], scale = 1): Cost {
  return { cpu: median(costs.map(({ cpu }) => cpu)) * scale, wall: median(costs.map(({ wall }) => wall)) * scale };
}

export interface Pair {
  readonly floor: Cost;
  readonly subject: Cost;
}

/** Measures floor and subject in turn, so that what else the machine does falls on both. Medians, times `scale`. */
export async function interleave(
  rounds: number,
  scale: number,
  floor: () => Cost | Promise<Cost>,
  subject: () => Cost | Promise<Cost>,
): Promise<Pair> {
  const floors: Cost[] = [];
  const subjects: Cost[] = [];
  for (let round = 0; round < rounds; round++) {
    floors.push(await floor());
    subjects.push(await subject());
  }
  return { floor: medianCost(floors, scale), subject: medianCost(subjects, scale) };
}

/** Members of a figure that is judged by CPU time, with wall time beside it. */
export function byCpu({ floor, subject }: Pair) {
  return {
    floor: floor.cpu,
    subject: subject.cpu,
    beside: { of: "wall", floor: floor.wall, subject: subject.wall },
  } as const;
}

/** Members of a figure that is judged by wall time, with CPU time beside it. */
export function byWall({ floor, subject }: Pair) {
  return {
    floor: floor.wall,
    subject: subject.wall,
    beside: { of: "CPU", floor: floor.cpu, subject: subject.cpu },
  } as const;
}
