import {
  type ExecutorHandlers,
  PartitionError,
  type PartitionGrant,
  type RevokeNotice,
} from "../../client/executor.ts";
import { type AnswerLine, LineError, readLine } from "./line-reader.ts";
import type { LineWriter, StopLineReason } from "./line-writer.ts";

/** A partition that the program was told of, and has not said to have released. */
interface Told {
  readonly grant: PartitionGrant;
  /** Ends the load; afterwards it does nothing. */
  readonly ready: () => void;
  readonly fail: (error: PartitionError) => void;
  isLoaded: boolean;
  /** Ends the unload; undefined until the partition is asked back. */
  released: (() => void) | undefined;
}

export interface LineOptions {
  readonly writer: LineWriter;
  /** Takes remarks on lines that cannot be used. */
  readonly note: (line: string) => void;
  /** Gives up a partition that had been ready. */
  readonly giveUp: (grant: PartitionGrant, error: PartitionError) => void;
  /** Answer every grant and revoke at once: for watching what would be given. */
  readonly auto: boolean;
}

/** Passes grants and revokes on to a program as lines, and takes its answers as lines. */
export class LineHandlers implements ExecutorHandlers {
  readonly #options: LineOptions;
  readonly #told = new Map<string, Told>();
  #lines = 0;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  onGrant(grant: PartitionGrant): Promise<void> {
    return new Promise((resolve, reject) => {
      const told: Told = { grant, ready: resolve, fail: reject, isLoaded: false, released: undefined };
      this.#told.set(idOf(grant), told);
      this.#options.writer.add({ type: "grant", ...grant });
      // Asked back before it was loaded: the program has to stop loading, so it is asked as if it had been.
      grant.signal.addEventListener("abort", () => this.#markReady(told), { once: true });
      if (this.#options.auto) this.#markReady(told);
    });
  }

  onRevoke(grant: PartitionGrant, { reason, stopMs }: RevokeNotice): Promise<void> | undefined {
    const told = this.#told.get(idOf(grant));
    if (told === undefined) return undefined;
    if (reason !== "revoked" && reason !== "dropped") {
      // Whoever reads the line has stopped; there is nothing to wait for.
      this.#told.delete(idOf(grant));
      this.#options.writer.stop(STOP_LINES[reason]);
      return undefined;
    }
    this.#options.writer.add({ type: "revoke", ...grant, stopMs });
    return new Promise((resolve) => {
      told.released = () => {
        this.#told.delete(idOf(grant));
        resolve();
      };
      if (this.#options.auto) told.released();
    });
  }

  /** Takes one line of the program. */
  hear(line: string): void {
    this.#lines++;
    if (line.trim() === "") return;
    try {
      this.#answer(readLine(line));
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      this.#options.note(`line ${this.#lines} of standard input is ignored: ${error.message}`);
    }
  }

  #answer(answer: AnswerLine): void {
    let unknown = 0;
    let unasked = 0;
    for (const partition of answer.partitions) {
      const told = this.#told.get(idOf({ ...answer, partition }));
      if (told === undefined) unknown++;
      else if (answer.type === "ready") this.#markReady(told);
      else if (answer.type === "failed") this.#markFailed(told, answer);
      else if (told.released === undefined) unasked++;
      else told.released();
    }
    const what = `of ${answer.table} ${answer.partitions} under epoch ${answer.epoch}`;
    const were = unasked === 1 ? "was" : "were";
    if (unasked > 0) throw new LineError(`${unasked} ${what} ${were} not asked back; to give one up, say failed`);
    if (unknown > 0) throw new LineError(`${unknown} ${what} ${unknown === 1 ? "is" : "are"} not held, or no longer`);
  }

  #markReady(told: Told): void {
    told.isLoaded = true;
    told.ready();
  }

  #markFailed(told: Told, { reason, retryable }: AnswerLine): void {
    const error = new PartitionError(reason === "" ? "the program said failed" : reason, { retryable });
    if (told.isLoaded) {
      if (told.released === undefined) this.#options.giveUp(told.grant, error);
      return;
    }
    this.#told.delete(idOf(told.grant));
    told.fail(error);
  }
}

/** To the program it is the same whether its lease ran out by its own clock or by the scheduler's. */
const STOP_LINES: Readonly<Record<Exclude<RevokeNotice["reason"], "revoked" | "dropped">, StopLineReason>> = {
  lapsed: "lapsed",
  ended: "lapsed",
  incarnation: "incarnation",
  replaced: "replaced",
  refused: "refused",
  closed: "closed",
};

function idOf({ table, partition, epoch }: Pick<PartitionGrant, "table" | "partition" | "epoch">): string {
  return `${table} ${partition} ${epoch}`;
}
