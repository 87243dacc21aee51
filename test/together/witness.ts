import type { Process } from "./process.ts";
import type { Timeline } from "./timeline.ts";

/**
 * Asks every running process what it may serve, all at one real moment. It never takes two answers for one partition, nor
 * an epoch below one that was answered before.
 */
export class Witness {
  readonly #timeline: Timeline;
  /** Most partitions that each table ever had. */
  readonly #counts = new Map<string, number>();
  readonly #highest = new Map<string, number>();
  asked = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  know(table: string, count: number): void {
    this.#counts.set(table, Math.max(count, this.#counts.get(table) ?? 0));
  }

  /** What this process answers, by partition. */
  answersOf(process: Process): Map<string, number> {
    const answers = new Map<string, number>();
    if (!process.machine.isRunning) return answers;
    for (const [table, count] of this.#counts) {
      for (let partition = 0; partition < count; partition++) {
        const epoch = process.executor.owns(table, partition);
        if (epoch !== undefined) answers.set(`${table}/${partition}`, epoch);
      }
    }
    return answers;
  }

  /** Asks all of them. Throws if two may serve one partition, or an epoch went down. */
  ask(processes: readonly Process[]): Map<string, Process> {
    this.asked++;
    const owners = new Map<string, Process>();
    const at = this.#timeline.now.toFixed(3);
    for (const process of processes) {
      for (const [partition, epoch] of this.answersOf(process)) {
        const other = owners.get(partition);
        if (other !== undefined)
          throw new Error(`${partition} may be served by ${other.name} and ${process.name} at ${at}`);
        owners.set(partition, process);
        const before = this.#highest.get(partition) ?? 0;
        if (epoch < before)
          throw new Error(`${process.name} answers epoch ${epoch} for ${partition} after ${before} at ${at}`);
        this.#highest.set(partition, epoch);
      }
    }
    return owners;
  }
}
