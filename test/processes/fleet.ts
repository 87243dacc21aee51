import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, vi } from "vitest";
import { AdminClient, ConnectError, type Status, type TableAnswer } from "../../src/client/admin.ts";
import type { Change } from "../../src/model/change.ts";
import { EvenkeelError } from "../../src/model/errors.ts";
import { parseChange } from "../../src/store/sqlite/change-text.ts";
import { loadSqlite } from "../../src/store/sqlite/database.ts";
import { endAll, Running, type Scheduler, serve } from "../cli/processes.ts";
import { answersAfter, monotonicMs, RecordFile, type Round, type Run, runsOf } from "./record.ts";

/** A scheduler and recorders, each a process of its own. */

const RECORDER = fileURLToPath(new URL("./recorder.mjs", import.meta.url));

/** For what takes some seconds on a machine with nothing else to do. */
const PATIENCE_MS = 40_000;
const POLL_MS = 50;
const STORE = "evenkeel.db";

/** One process life of an executor that records what it may serve. */
export class Recorder {
  readonly name: string;
  readonly executor: string;
  readonly process: Running;
  readonly #record: RecordFile;

  constructor(name: string, executor: string, process: Running, file: string) {
    this.name = name;
    this.executor = executor;
    this.process = process;
    this.#record = new RecordFile(file);
  }

  rounds(): readonly Round[] {
    return this.#record.rounds();
  }

  runs(): readonly Run[] {
    return runsOf(this.name, this.rounds());
  }

  /** What it may serve by its last round: epochs by place. */
  answers(): ReadonlyMap<string, number> {
    return answersAfter(this.rounds());
  }
}

export interface FleetOptions {
  /** How many partitions each table has. */
  readonly tables: Readonly<Record<string, number>>;
  /** Longest time that a revoked partition may still be served. */
  readonly stop: string;
  /** Flags of the scheduler. */
  readonly settings: readonly string[];
  /** Most partitions of tables that are made or grow later: what records ask for. */
  readonly room?: Readonly<Record<string, number>>;
  /** Time between two rounds of a record. Default: what recorders do by themselves. */
  readonly roundMs?: number;
  /** Keeps the ledger in a file, so that the scheduler can be killed and started again. Default false. */
  readonly durable?: boolean;
}

/** A scheduler, its tables and all that ever took part. */
export class Fleet {
  readonly folder: string;
  readonly recorders: Recorder[] = [];
  readonly #options: FleetOptions;
  readonly #tables = new Map<string, number>();
  readonly #settings: readonly string[];
  #scheduler: Scheduler;
  readonly #admin: AdminClient;

  private constructor(options: FleetOptions, folder: string, settings: readonly string[], scheduler: Scheduler) {
    this.folder = folder;
    this.#options = options;
    this.#settings = settings;
    this.#scheduler = scheduler;
    this.#admin = new AdminClient({ url: scheduler.url });
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const folder = mkdtempSync(join(tmpdir(), "evenkeel-fleet-"));
    const store = options.durable === true ? [`--store=sqlite:${join(folder, STORE)}`] : [];
    const settings = [...store, ...options.settings];
    const fleet = new Fleet(options, folder, settings, await serve(...settings));
    for (const [name, partitions] of Object.entries(options.tables)) await fleet.putTable(name, partitions);
    return fleet;
  }

  /** Names of all partitions, as the records have them. */
  get places(): readonly string[] {
    return [...this.#tables].flatMap(([table, count]) =>
      Array.from({ length: count }, (_, partition) => `${table}/${partition}`),
    );
  }

  /** Address of the scheduler. */
  get url(): string {
    return this.#scheduler.url;
  }

  /** The file of the ledger, if it is kept in one. */
  get store(): string {
    return join(this.folder, STORE);
  }

  /** The scheduler's process, of the last start. */
  get scheduler(): Running {
    return this.#scheduler.process;
  }

  /** Ends the scheduler without a warning. */
  async kill(): Promise<void> {
    this.scheduler.signal("SIGKILL");
    await this.scheduler.exit;
  }

  /** Starts the scheduler again, where the one before was. Gives back a time before which it cannot have run. */
  async begin(): Promise<number> {
    const at = monotonicMs();
    this.#scheduler = await serve(...this.#settings, `--listen=${new URL(this.url).host}`);
    return at;
  }

  /** Makes a table, or makes it larger. Asks again as long as there is no answer, as while there is no scheduler. */
  async putTable(name: string, partitions: number): Promise<TableAnswer> {
    const { stop } = this.#options;
    const answer = await vi.waitUntil(
      () =>
        this.#admin.putTable(name, { partitions, stop }).catch((error: unknown) => {
          if (error instanceof ConnectError || (error instanceof EvenkeelError && error.code === "not-ready"))
            return undefined;
          throw error;
        }),
      { timeout: PATIENCE_MS, interval: POLL_MS },
    );
    this.#tables.set(name, partitions);
    return answer;
  }

  /** Takes the ledger's file away, while there is no scheduler. Its tables are gone with it. */
  wipe(): void {
    for (const suffix of ["", "-wal", "-shm", "-lock"]) rmSync(`${this.store}${suffix}`, { force: true });
    this.#tables.clear();
  }

  /** Starts a process. Several with one `executor` are its lives, one after the other. */
  add(executor: string, url = this.url): Recorder {
    const name = `${executor}.${this.recorders.filter((other) => other.executor === executor).length + 1}`;
    const file = join(this.folder, name);
    const { tables: asked, room = {}, roundMs } = this.#options;
    const tables = Object.entries({ ...asked, ...room }).map(([table, count]) => `${table}=${count}`);
    const extra = roundMs === undefined ? {} : { RECORDER_ROUND_MS: `${roundMs}` };
    const process = new Running([url, executor, file, ...tables], extra, RECORDER);
    const recorder = new Recorder(name, executor, process, file);
    this.recorders.push(recorder);
    return recorder;
  }

  /** Every change that the ledger's file has. */
  async changes(): Promise<readonly Change[]> {
    const database = (await loadSqlite())(this.store, { readOnly: true });
    try {
      const rows = database.prepare("SELECT text FROM changes ORDER BY revision").all();
      return rows.map(({ text }) => parseChange(String(text)));
    } finally {
      database.close();
    }
  }

  /** Every run of every process. */
  runs(): readonly Run[] {
    return this.recorders.flatMap((recorder) => recorder.runs());
  }

  /** Waits until this one may serve at least and at most so many partitions. */
  async serves(recorder: Recorder, atLeast: number, atMost = Number.POSITIVE_INFINITY): Promise<void> {
    const served = () => {
      const { size } = recorder.answers();
      return size >= atLeast && size <= atMost;
    };
    await vi.waitFor(() => expect(served()).toBe(true), { timeout: PATIENCE_MS, interval: 5 });
  }

  /** A time between two rounds of each of these, all of which have one after it. */
  async moment(...living: readonly Recorder[]): Promise<number> {
    const at = monotonicMs();
    const behind = () => living.filter((recorder) => (recorder.rounds().at(-1)?.from ?? 0) < at);
    await vi.waitFor(() => expect(behind()).toEqual([]), { timeout: PATIENCE_MS, interval: POLL_MS });
    return at;
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
    rmSync(this.folder, { recursive: true });
  }
}
