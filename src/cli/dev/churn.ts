import { sleep } from "../time.ts";
import type { DevFleet } from "./fleet.ts";

/** Executors that are there most of the time. */
export const FLEET_SIZE = 3;

/**
 * Has one executor join and the one that has been there longest leave, in turn, until `signal` aborts. One id more than
 * the fleet's size goes round, so every id comes back after a while.
 */
export async function churn(
  fleet: DevFleet,
  everyMs: number,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(everyMs, signal);
    if (signal.aborted) return;
    const [oldest, ...others] = fleet.ids;
    if (others.length < FLEET_SIZE) {
      const id = freeId(fleet.ids);
      note(`${id} joins`);
      fleet.join(id);
    } else if (oldest !== undefined) {
      note(`${oldest} leaves`);
      await fleet.leave(oldest);
    }
  }
}

export function freeId(taken: readonly string[]): string {
  for (let number = 1; ; number++) {
    const id = `exec-${number}`;
    if (!taken.includes(id)) return id;
  }
}
