/** What a process of the bench tells of itself. */

/** CPU time that this process has used, in microseconds. */
export function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

export interface Memory {
  /** All of the process that is in memory. */
  readonly rss: number;
  /** What JavaScript holds. */
  readonly held: number;
}

/** Bytes in use once what nobody needs is collected. */
export async function settledMemory(): Promise<Memory> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error("memory can only be measured with --expose-gc");
  for (let pass = 0; pass < 4; pass++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, held: heapUsed + external };
}
