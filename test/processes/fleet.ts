import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, vi } from "vitest";
import { AdminClient, type Status } from "../../src/client/admin.ts";
import { endAll, Running, type Scheduler, serve } from "../cli/processes.ts";
import { answersAfter, type Round, type Run, readRounds, runsOf } from "./record.ts";

/** A scheduler and recorders, each a process of its own. */

const RECORDER = fileURLToPath(new URL("./recorder.mjs", import.meta.url));

/** For what takes some seconds on a machine with nothing else to do. */
const PATIENCE_MS = 40_000;
const POLL_MS = 50;

/** One process life of an executor that records what it may serve. */
export class Recorder {
  readonly name: string;
  readonly executor: string;
  readonly process: Running;
  readonly #file: string;

  constructor(name: string, executor: string, process: Running, file: string) {
    this.name = name;
    this.executor = executor;
    this.process = process;
    this.#file = file;
  }

  rounds(): readonly Round[] {
    return readRounds(this.#file);
  }

  runs(): readonly Run[] {
    return runsOf(this.name, this.rounds());
  }

  /** What it may serve by its last round: epochs by place. */
  answers(): ReadonlyMap<string, number> {
    return answersAfter(this.rounds());
  }
}

/** A scheduler, its tables and all that ever took part. */
export class Fleet {
  readonly #scheduler: Scheduler;
  readonly #admin: AdminClient;
  readonly #tables: Readonly<Record<string, number>>;
  readonly #folder: string;
  readonly recorders: Recorder[] = [];

  private constructor(scheduler: Scheduler, tables: Readonly<Record<string, number>>) {
    this.#scheduler = scheduler;
    this.#admin = new AdminClient({ url: scheduler.url });
    this.#tables = tables;
    this.#folder = mkdtempSync(join(tmpdir(), "evenkeel-fleet-"));
  }

  /** `tables`: how many partitions each has. `stop`: longest time that a revoked one may still be served. */
  static async start(
    tables: Readonly<Record<string, number>>,
    stop: string,
    ...settings: readonly string[]
  ): Promise<Fleet> {
    const fleet = new Fleet(await serve(...settings), tables);
    for (const [name, partitions] of Object.entries(tables)) await fleet.#admin.putTable(name, { partitions, stop });
    return fleet;
  }

  /** Names of all partitions, as the records have them. */
  get places(): readonly string[] {
    return Object.entries(this.#tables).flatMap(([table, count]) =>
      Array.from({ length: count }, (_, partition) => `${table}/${partition}`),
    );
  }

  /** Address of the scheduler. */
  get url(): string {
    return this.#scheduler.url;
  }

  /** Starts a process. Several with one `executor` are its lives, one after the other. */
  add(executor: string, url = this.url): Recorder {
    const name = `${executor}.${this.recorders.filter((other) => other.executor === executor).length + 1}`;
    const file = join(this.#folder, name);
    const tables = Object.entries(this.#tables).map(([table, count]) => `${table}=${count}`);
    const process = new Running([url, executor, file, ...tables], {}, RECORDER);
    const recorder = new Recorder(name, executor, process, file);
    this.recorders.push(recorder);
    return recorder;
  }

  status(): Promise<Status> {
    return this.#admin.status();
  }

  /**
   * Waits until the scheduler counts all as done and exactly these own something, and until their own records say so, too:
   * every partition may be served by one of them, and each of them has about the same share.
   */
  async converged(...living: readonly Recorder[]): Promise<Status> {
    const share = this.places.length / living.length;
    return vi.waitFor(
      async () => {
        const status = await this.status();
        expect(status).toMatchObject({ converged: true, state: "converged", waitingFor: [] });
        const owners = status.executors.filter(({ owned }) => owned > 0).map(({ executor }) => executor);
        expect(owners.sort()).toEqual(living.map(({ executor }) => executor).sort());
        for (const { owned, ready } of status.executors.filter(({ owned }) => owned > 0)) {
          expect(ready).toBe(owned);
          expect(Math.abs(owned - share)).toBeLessThan(1);
        }
        const served = living.flatMap((recorder) => [...recorder.answers().keys()]);
        expect(served.sort()).toEqual([...this.places].sort());
        return status;
      },
      { timeout: PATIENCE_MS, interval: POLL_MS },
    );
  }

  /** Ends every process and takes the records away. */
  async end(): Promise<void> {
    await endAll();
    rmSync(this.#folder, { recursive: true });
  }
}
