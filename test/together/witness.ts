import type { CoreState } from "../../src/core/state.ts";
import { readCell } from "../../src/ledger/chunks.ts";
import { STATE_OWNED, STATE_RELEASING } from "../../src/ledger/state.ts";
import { tableName } from "../../src/model/ids.ts";
import type { Process } from "./process.ts";
import type { Timeline } from "./timeline.ts";

/**
 * Asks every running process what it may serve, all at one real moment. It takes neither two answers for one partition, nor
 * an epoch below one that was answered before, nor one that the core counts as ended, be it given to nobody yet.
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

  /** Asks all of them; `core` is that of the scheduler, or of the last one. Throws where an answer may not be. */
  ask(processes: readonly Process[], core: CoreState): Map<string, Process> {
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
        const why = whyNot(core, process, partition, epoch);
        if (why !== undefined)
          throw new Error(`${process.name} may serve ${partition}@${epoch}, which ${why}, at ${at}`);
      }
    }
    return owners;
  }
}

/** Why a process may not serve a partition, if the core has it otherwise. */
function whyNot(core: CoreState, { options }: Process, key: string, epoch: number): string | undefined {
  const [name = "", number = ""] = key.split("/");
  const [table, partition] = [tableName(name), Number(number)];
  const known = core.ledger.tables.get(table);
  if (known === undefined) return "is of no table";
  const cell = readCell(known.chunks, partition);
  if (cell.state !== STATE_OWNED && cell.state !== STATE_RELEASING) return "nobody has";
  const holder = core.ledger.holders[cell.holder];
  if (holder?.executor !== options.executor || holder.instance !== options.instance || cell.epoch !== epoch)
    return `is ${holder?.executor}#${holder?.instance}'s under ${cell.epoch}`;
  return core.ended.get(table)?.has(partition) === true ? "has ended" : undefined;
}
