import { type Reign, type Store, StoreError } from "../../src/driver/ports.ts";
import type { Change } from "../../src/model/change.ts";
import type { Revision } from "../../src/model/ids.ts";
import type { Chance } from "./chance.ts";
import type { Timeline } from "./timeline.ts";

/**
 * How the store behaves.
 *
 * - `quick`, `slow`: it takes changes after a little, or after up to seconds.
 * - `hanging`: what is appended stays pending until the mode is over.
 * - `failing`: appends fail, half of them after the change was written; reading tells.
 * - `gone`: the same, and it cannot be read either.
 */
export type DiskMode = "quick" | "slow" | "hanging" | "failing" | "gone";

const QUICK_MS = 4;
const SLOW_MS = 2_500;

/** A store in memory that outlives the scheduler, with everything that may go wrong with one. */
export class Disk implements Pick<Store, "append" | "read"> {
  readonly changes: Change[] = [];
  mode: DiskMode = "quick";
  /** Through this its answers come to the scheduler, whose loop may stand. */
  door: (run: () => void) => void = (run) => run();
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  #waiting: (() => void)[] = [];
  #reign: Reign | undefined;

  constructor(timeline: Timeline, chance: Chance) {
    this.#timeline = timeline;
    this.#chance = chance;
  }

  /** Ends the reign before; what it still has under way is refused when it comes to be written. */
  reign(term: number): Reign {
    const lost = new Promise<string>(() => {});
    this.#reign = { term, incarnation: "life", stampKey: new Uint8Array(1), lost };
    return this.#reign;
  }

  setMode(mode: DiskMode): void {
    this.mode = mode;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }

  async append(reign: Reign, change: Change): Promise<void> {
    while (this.mode === "hanging") await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const { mode } = this;
    await this.#pause(mode === "slow" ? SLOW_MS : QUICK_MS);
    const fails = mode === "failing" || mode === "gone";
    if (!fails || this.#chance.hits(0.5)) this.#write(reign, change);
    // Between the write and the answer, too, time passes.
    await this.#pause(QUICK_MS);
    await this.#answer();
    if (fails) throw new Error("disk full");
  }

  async *read(from: Revision, to: Revision): AsyncIterable<Change> {
    await this.#pause(QUICK_MS);
    await this.#answer();
    if (this.mode === "gone") throw new Error("no such device");
    yield* this.changes.filter(({ revision }) => revision >= from && revision <= to);
  }

  #write(reign: Reign, change: Change): void {
    if (this.#reign !== reign) throw new StoreError("stale-reign", "another scheduler writes");
    const last = this.changes.at(-1)?.revision ?? 0;
    if (change.revision !== last + 1) throw new StoreError("gap", `${change.revision} does not follow ${last}`);
    this.changes.push(change);
  }

  #answer(): Promise<void> {
    return new Promise((resolve) => this.door(resolve));
  }

  #pause(atMostMs: number): Promise<void> {
    return new Promise((resolve) => this.#timeline.after(this.#chance.between(0, atMostMs), resolve));
  }
}
