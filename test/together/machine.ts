import type { Chance } from "./chance.ts";
import type { Planned, Timeline } from "./timeline.ts";

export interface MachineOptions {
  /** Rate of the monotonic clock: 1.01 gains 1 %. */
  readonly rate: number;
  /** Monotonic time at the start. */
  readonly offset: number;
  /** Wall time keeps the rate of real time, as on a machine that is set by others; else that of its own clock. */
  readonly wallIsSet: boolean;
  /** Monotonic time in whole ms. */
  readonly whole: boolean;
}

/** Wall time of every machine at the start of the world. */
const WALL_START_MS = 1_767_225_600_000;

/** Timers are late by up to this, and now and then by much more. */
const LATE_MS = 2;
const VERY_LATE_MS = 40;

interface Alarm {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * One process on its machine: its clocks, its timers, and a door that is shut while it does not run. What comes in meanwhile
 * waits; afterwards it is handled in its order, before or after the timers that were due.
 */
export class Machine {
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  readonly #options: MachineOptions;
  /** Monotonic time at a real moment, from which it goes on unless the machine sleeps. */
  #since: { real: number; now: number };
  readonly #startedAt: number;
  #wallJumpMs = 0;
  readonly #alarms = new Set<Alarm>();
  #order = 0;
  #armed: { readonly due: number; readonly planned: Planned } | undefined;
  readonly #backlog: (() => void)[] = [];
  #isDraining = false;
  #stops = 0;
  #sleeps = 0;
  isDead = false;
  /** Timers that fired. */
  fired = 0;
  /** Called when the process runs again, before anything else of it. */
  onThaw: () => void = () => {};

  constructor(timeline: Timeline, chance: Chance, options: MachineOptions) {
    this.#timeline = timeline;
    this.#chance = chance;
    this.#options = options;
    this.#startedAt = timeline.now;
    this.#since = { real: timeline.now, now: options.offset };
  }

  get isRunning(): boolean {
    return !this.isDead && this.#stops === 0;
  }

  now(): number {
    const now = this.#exact();
    return this.#options.whole ? Math.floor(now) : now;
  }

  wall(): number {
    const { rate, wallIsSet } = this.#options;
    const elapsed = (this.#timeline.now - this.#startedAt) * (wallIsSet ? 1 : rate);
    return Math.floor(WALL_START_MS + elapsed + this.#wallJumpMs);
  }

  setTimer(delayMs: number, callback: () => void): { cancel(): void } {
    if (!(delayMs >= 0 && delayMs < 2 ** 31)) throw new Error(`a timer's delay of ${delayMs}`);
    const alarm = { due: this.#exact() + Math.max(1, delayMs), order: this.#order++, callback };
    this.#alarms.add(alarm);
    this.#arm();
    return { cancel: () => void this.#alarms.delete(alarm) };
  }

  /** Runs this in the process: now, or when it runs again and has done what waits already. */
  enter(run: () => void): void {
    if (this.isDead) return;
    if (this.isRunning && this.#backlog.length === 0) run();
    else {
      this.#backlog.push(run);
      this.#drain();
    }
  }

  /** SIGSTOP or a blocked loop: nothing runs, the clocks go on. Gives the way to end it. */
  stop(): () => void {
    this.#stops++;
    return once(() => {
      this.#stops--;
      this.#thaw();
    });
  }

  /** The machine is suspended: its monotonic clock stands still as well. */
  sleep(): () => void {
    this.#since = { real: this.#timeline.now, now: this.#exact() };
    this.#sleeps++;
    this.#stops++;
    return once(() => {
      this.#since = { real: this.#timeline.now, now: this.#exact() };
      this.#sleeps--;
      this.#stops--;
      this.#thaw();
    });
  }

  /** Someone sets the clock. */
  jumpWall(ms: number): void {
    this.#wallJumpMs += ms;
  }

  kill(): void {
    this.isDead = true;
    this.#alarms.clear();
    this.#backlog.length = 0;
    this.#armed?.planned.cancel();
  }

  #exact(): number {
    const { real, now } = this.#since;
    return this.#sleeps > 0 ? now : now + (this.#timeline.now - real) * this.#options.rate;
  }

  #thaw(): void {
    if (!this.isRunning) return;
    this.onThaw();
    this.#armed?.planned.cancel();
    this.#armed = undefined;
    const readsFirst = this.#chance.hits(0.5);
    if (readsFirst) this.#drain();
    this.#arm(readsFirst ? LATE_MS : 0);
    if (!readsFirst) this.#drain(LATE_MS);
  }

  #drain(delayMs = 0): void {
    if (this.#isDraining || !this.isRunning) return;
    this.#isDraining = true;
    this.#timeline.after(delayMs + (this.#chance.hits(0.1) ? 1 : 0), () => {
      this.#isDraining = false;
      if (!this.isRunning) return;
      this.#backlog.shift()?.();
      if (this.#backlog.length > 0) this.#drain();
    });
  }

  #arm(delayMs = 0): void {
    const next = this.#next();
    if (next === undefined || !this.isRunning) return;
    if (this.#armed !== undefined && this.#armed.due <= next.due) return;
    this.#armed?.planned.cancel();
    const waitMs = Math.max(delayMs, (next.due - this.#exact()) / this.#options.rate);
    const lateMs = this.#chance.next() * (this.#chance.hits(0.01) ? VERY_LATE_MS : LATE_MS);
    const inMs = waitMs > delayMs ? waitMs + lateMs : delayMs;
    this.#armed = { due: next.due, planned: this.#timeline.after(inMs, () => this.#fire()) };
  }

  #fire(): void {
    this.#armed = undefined;
    if (!this.isRunning) return;
    const next = this.#next();
    if (next !== undefined && next.due <= this.#exact()) {
      this.#alarms.delete(next);
      this.fired++;
      next.callback();
    }
    this.#arm();
  }

  #next(): Alarm | undefined {
    let first: Alarm | undefined;
    for (const alarm of this.#alarms) {
      if (first === undefined || alarm.due < first.due || (alarm.due === first.due && alarm.order < first.order))
        first = alarm;
    }
    return first;
  }
}

function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    run();
  };
}
