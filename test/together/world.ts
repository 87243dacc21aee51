import type { CoreState } from "../../src/core/state.ts";
import type { TableSpec } from "../../src/model/change.ts";
import { tableName } from "../../src/model/ids.ts";
import type { Settings } from "../../src/model/settings.ts";
import { Chance } from "./chance.ts";
import { Disk } from "./disk.ts";
import { Machine } from "./machine.ts";
import { type Habits, Process } from "./process.ts";
import { Scheduler } from "./scheduler.ts";
import { Timeline } from "./timeline.ts";
import { Path } from "./wire.ts";
import { Witness } from "./witness.ts";

/** What a world starts from. */
export interface Climate {
  readonly seed: number;
  readonly settings: Settings;
  /** Rate of the scheduler's clock beside 1, in parts of the configured error, −1 to 1. */
  readonly drift: number;
  readonly tinyPages: boolean;
  readonly latencyMs: number;
}

/** How a process is started. `drift` as for the scheduler. */
export interface Start {
  readonly executor: string;
  readonly weight: number;
  readonly capacity: number | undefined;
  readonly drift: number;
  readonly wallIsSet: boolean;
  readonly habits: Habits;
  readonly stopTimeoutMs: number;
}

/** How long a peer can be gone before the heartbeat closes its session (src/gateway): two pings unanswered, and a half. */
const SILENCE_MS = 25_000;

/** Numbers that a table of keys may come to in one history. */
const MAX_KEY_NUMBERS = 24;

/** Processes are asked what they serve at random moments, so long apart at most. */
const ASK_EVERY_MS = 400;

/** A scheduler, its store, processes with the SDK, and the network between them, all in virtual time. */
export class World {
  readonly timeline = new Timeline();
  readonly disk: Disk;
  readonly processes: Process[] = [];
  readonly witness: Witness;
  readonly climate: Climate;
  readonly chance: Chance;
  readonly trace: ((line: string) => void) | undefined;
  scheduler: Scheduler | undefined;
  /** Nothing more befalls anyone. */
  isHealed = false;
  #terms = 0;
  #last: Scheduler | undefined;
  /** Ends what holds processes up, the scheduler's included. */
  #releases: (() => void)[] = [];
  #failure: Error | undefined;

  constructor(climate: Climate, trace?: (line: string) => void) {
    this.climate = climate;
    this.trace = trace;
    this.chance = new Chance(climate.seed);
    this.witness = new Witness(this.timeline);
    this.disk = new Disk(this.timeline, this.chance.fork("disk"));
    this.startScheduler();
    this.#askLater(this.chance.fork("witness"));
  }

  get settings(): Settings {
    return this.climate.settings;
  }

  get alive(): Process[] {
    return this.processes.filter((process) => process.isAlive);
  }

  note(line: string): void {
    this.trace?.(`${this.timeline.now.toFixed(3)} ${line}`);
  }

  async advance(durationMs: number): Promise<void> {
    await this.timeline.advance(durationMs);
    if (this.#failure !== undefined) throw this.#failure;
  }

  startScheduler(): void {
    if (this.scheduler !== undefined) return;
    const { climate, timeline, disk } = this;
    const chance = this.chance.fork(`scheduler ${++this.#terms}`);
    const rate = 1 + climate.drift * climate.settings.lease.driftRate;
    const machine = new Machine(timeline, chance.fork("machine"), {
      rate,
      offset: chance.between(0, 1e6),
      wallIsSet: true,
      whole: true,
    });
    this.scheduler = new Scheduler({
      timeline,
      chance,
      machine,
      disk,
      settings: climate.settings,
      term: this.#terms,
      tinyPages: climate.tinyPages,
      trace: (line) => this.note(line),
      fail: (error) => this.#fail(error),
      onEnded: () => void this.ask(),
    });
  }

  start({ executor, weight, capacity, drift, wallIsSet, habits, stopTimeoutMs }: Start): Process {
    const { timeline, climate } = this;
    const instance = `i${this.processes.length}`;
    const chance = this.chance.fork(`process ${instance}`);
    const machine = new Machine(timeline, chance.fork("machine"), {
      rate: 1 + drift * climate.settings.lease.driftRate,
      offset: chance.between(0, 1e6),
      wallIsSet,
      whole: false,
    });
    const process = new Process(
      { executor, instance, weight, capacity, stopTimeoutMs, habits },
      {
        timeline,
        chance,
        machine,
        path: new Path(timeline, chance.fork("path"), climate.latencyMs),
        scheduler: () => this.scheduler,
        trace: (line) => this.note(line),
        fail: (error) => this.#fail(error),
        pushed: (by) => this.#askIfServing(by),
      },
    );
    // Half of them ask at once what they may still do; the others handle first what waits for them.
    machine.onThaw = () => {
      if (chance.hits(0.5)) this.ask();
    };
    this.processes.push(process);
    return process;
  }

  put(table: string, count: number, more: Partial<TableSpec> = {}): void {
    // Numbers of keys are never used again, so there may be more of them than keys.
    this.witness.know(table, more.keys === undefined ? count : MAX_KEY_NUMBERS);
    this.scheduler?.put({
      table: tableName(table),
      count,
      handoff: "exclusive",
      stopMs: 3_000,
      balance: "count",
      selector: {},
      ...more,
    });
  }

  /** Another process with this id, on a like machine. */
  startAgain({ options }: Process): Process {
    const { executor, weight, capacity, habits, stopTimeoutMs } = options;
    return this.start({ executor, weight, capacity, habits, stopTimeoutMs, drift: 0, wallIsSet: true });
  }

  /** The process does not run for a while, and its socket is closed when it answers no ping. */
  stopFor({ machine, wire }: Process, forMs: number, way: "stop" | "sleep"): void {
    this.#holdFor(forMs, machine[way]());
    this.timeline.after(SILENCE_MS, () => {
      if (!machine.isRunning && wire !== undefined) this.scheduler?.closeSilent(wire);
    });
  }

  /** The scheduler's loop stands. */
  stallFor(forMs: number): void {
    if (this.scheduler !== undefined) this.#holdFor(forMs, this.scheduler.machine.stop());
  }

  /** The scheduler ends without a word, and after a while another takes the store over. */
  killScheduler(forMs: number, noticeMs: () => number): void {
    if (this.scheduler === undefined) return;
    this.scheduler.kill(noticeMs);
    this.#last = this.scheduler;
    this.scheduler = undefined;
    this.#holdFor(forMs, () => this.startScheduler());
  }

  /** The scheduler is asked to stop; once it has, another takes the store over after a while. */
  retireScheduler(forMs: number): void {
    const { scheduler } = this;
    scheduler?.retire(() => {
      if (this.scheduler === scheduler) this.killScheduler(forMs, () => 0);
    });
  }

  /** Everything that is held up goes on. */
  endDisturbances(): void {
    this.isHealed = true;
    for (const release of this.#releases.splice(0)) release();
  }

  /** State of the scheduler, or of the last one. */
  get #core(): CoreState | undefined {
    return (this.scheduler ?? this.#last)?.state;
  }

  /** Asks every process what it serves. */
  ask(): Map<string, Process> {
    try {
      return this.#core === undefined ? new Map() : this.witness.ask(this.alive, this.#core);
    } catch (error) {
      this.#fail(error as Error);
      return new Map();
    }
  }

  /** Only a push gives a process something to serve, so at each the others are asked. */
  #askIfServing(process: Process): void {
    if (this.witness.answersOf(process).size > 0) this.ask();
  }

  #holdFor(forMs: number, end: () => void): void {
    let isOver = false;
    const release = () => {
      if (!isOver) end();
      isOver = true;
    };
    this.#releases.push(release);
    this.timeline.after(forMs, release);
  }

  #askLater(chance: Chance): void {
    this.timeline.after(chance.between(0, ASK_EVERY_MS), () => {
      this.ask();
      this.#askLater(chance);
    });
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.note(`FAILED ${error.message}`);
  }
}
