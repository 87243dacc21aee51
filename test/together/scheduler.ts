import { describe } from "../../src/core/describe.ts";
import type { Effect } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { createState } from "../../src/core/start.ts";
import type { CoreState } from "../../src/core/state.ts";
import { step } from "../../src/core/step.ts";
import { Appender, type Outcome } from "../../src/driver/appender.ts";
import type { Stamps } from "../../src/driver/ports.ts";
import { StallWatch } from "../../src/driver/stall-watch.ts";
import { createStamps } from "../../src/driver/stamps.ts";
import { WakeTimer } from "../../src/driver/wake-timer.ts";
import type { TableSpec } from "../../src/model/change.ts";
import { type SessionId, sessionId } from "../../src/model/ids.ts";
import type { Settings } from "../../src/model/settings.ts";
import type { Status } from "../../src/model/status.ts";
import type { Chance } from "./chance.ts";
import type { Disk } from "./disk.ts";
import { GateSession } from "./gate.ts";
import type { Machine } from "./machine.ts";
import type { Timeline } from "./timeline.ts";
import type { Wire } from "./wire.ts";

/** As in src/driver: a turn that is later than this reads the sockets once more. */
const UNREAD_LIMIT_MS = 20;

export interface SchedulerOptions {
  readonly timeline: Timeline;
  readonly chance: Chance;
  readonly machine: Machine;
  readonly disk: Disk;
  readonly settings: Settings;
  readonly term: number;
  readonly tinyPages: boolean;
  trace(line: string): void;
  /** Something that must never be. */
  fail(error: Error): void;
  /** The core has counted something as ended, or folded a change. */
  onEnded(): void;
}

/** One reign: the core, turned as src/driver turns it, with the driver's own appender, stall watch and wake timer. */
export class Scheduler {
  readonly machine: Machine;
  state: CoreState;
  turns = 0;
  /** Wires of sessions that were taken and are not gone. */
  readonly wires = new Map<SessionId, Wire>();
  readonly #options: SchedulerOptions;
  readonly #sessions = new Map<SessionId, GateSession>();
  readonly #appender: Appender;
  readonly #stamps: Stamps;
  readonly #wake: WakeTimer;
  readonly #stalls: StallWatch;
  #inbox: Event[] = [];
  #isTurnDue = false;
  #sessionCount = 0;
  #requests = 0;
  #onDone: (() => void) | undefined;

  constructor(options: SchedulerOptions) {
    const { machine, disk, settings, term } = options;
    this.#options = options;
    this.machine = machine;
    const reign = disk.reign(term);
    disk.door = (run) => machine.enter(run);
    this.state = createState({
      settings,
      incarnation: reign.incarnation,
      term,
      floor: 0,
      changes: [...disk.changes],
      maxLeaseMs: disk.changes.length === 0 ? 0 : settings.lease.durationMs,
      now: machine.now(),
    });
    const store = disk as unknown as ConstructorParameters<typeof Appender>[0]["store"];
    const log = { log: () => {} };
    this.#appender = new Appender({ clock: machine, store, reign, log, onSettled: (outcome) => this.#settle(outcome) });
    this.#stamps = createStamps(reign.stampKey, reign.incarnation, term);
    this.#wake = new WakeTimer(machine, () => this.#schedule());
    this.#stalls = new StallWatch(machine, settings.lease.renewMs, () => this.#schedule());
    this.#stalls.start();
    this.#schedule();
  }

  get status(): Status {
    return describe(this.state, this.machine.now());
  }

  /** True while nothing is asked of the core that it was not told. */
  get isAtRest(): boolean {
    return !this.#appender.isUnknown && this.#inbox.length === 0;
  }

  /** It was asked to stop. */
  get isRetiring(): boolean {
    return this.#onDone !== undefined;
  }

  accept(wire: Wire): void {
    const { machine, tinyPages, term, fail } = this.#options;
    const id = sessionId(`s${term}.${++this.#sessionCount}`);
    const session = new GateSession({
      id,
      wire,
      machine,
      stamps: this.#stamps,
      tinyPages,
      post: (event) => this.post(event),
      breach: (reason) => fail(new Error(`a frame of the SDK is refused: ${reason}`)),
      onGone: () => {
        this.#sessions.delete(id);
        this.wires.delete(id);
      },
    });
    this.#sessions.set(id, session);
    this.wires.set(id, wire);
  }

  /** The heartbeat found that a peer answers no ping. */
  closeSilent(wire: Wire): void {
    for (const [id, known] of this.wires)
      if (known === wire) this.#sessions.get(id)?.close(4408, "no ping was answered");
  }

  post(event: Event): void {
    this.#inbox.push(event);
    this.#schedule();
  }

  put(spec: TableSpec): void {
    this.post({ type: "table.put", request: ++this.#requests, spec, origin: "api" });
  }

  delete(table: TableSpec["table"]): void {
    this.post({ type: "table.deleted", request: ++this.#requests, table });
  }

  /** Is asked to stop. `onDone` when it has. */
  retire(onDone: () => void): void {
    this.#onDone = onDone;
    this.post({ type: "shutdown.requested" });
  }

  /** The process ends without a word; its sockets break. */
  kill(noticeMs: () => number): void {
    this.machine.kill();
    this.#appender.close();
    for (const wire of this.wires.values()) wire.break(noticeMs(), 0);
  }

  #schedule(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    const { timeline, chance, machine } = this.#options;
    const dueAt = machine.now();
    timeline.after(chance.between(0, 1), () =>
      machine.enter(() => {
        if (machine.now() - dueAt <= UNREAD_LIMIT_MS) return this.#turn();
        timeline.after(0, () => machine.enter(() => this.#turn()));
      }),
    );
  }

  #turn(): void {
    const { machine, trace, fail, onEnded } = this.#options;
    this.#isTurnDue = false;
    if (this.#appender.isUnknown) return;
    const events = this.#inbox;
    this.#inbox = [];
    const now = machine.now();
    const stalledMs = this.#stalls.take(now);
    if (stalledMs > 0) events.unshift({ type: "loop.stalled", stalledMs });
    this.turns++;
    const { ended, ledger } = this.state;
    try {
      for (const event of events) trace(`  event ${JSON.stringify(event)}`);
      const { state, effects, wakeAt } = step(this.state, events, now);
      this.state = state;
      for (const effect of effects) this.#carryOut(effect);
      this.#wake.arm(wakeAt, now);
      checkInvariants(state);
    } catch (error) {
      return fail(error instanceof Error ? error : new Error(String(error)));
    }
    if (this.state.ended !== ended || this.state.ledger !== ledger) onEnded();
  }

  #carryOut(effect: Effect): void {
    if (effect.type !== "log") this.#options.trace(`  effect ${JSON.stringify(effect)}`);
    switch (effect.type) {
      case "store.append":
        if (effect.change.cause.length === 0) throw new Error(`change ${effect.change.revision} has no cause`);
        return this.#appender.append(effect.change);
      case "request.answered":
      case "log":
        return;
      case "shutdown.finished":
        this.#options.timeline.after(0, () => this.#onDone?.());
        return;
      default:
        this.#sessions.get(effect.session)?.deliver(effect);
    }
  }

  #settle(outcome: Outcome): void {
    if (outcome.type === "deposed") return this.#options.fail(outcome.error);
    const { change, unknownMs } = outcome;
    const event: Event =
      outcome.type === "committed"
        ? { type: "change.committed", change }
        : { type: "append.failed", revision: change.revision, error: outcome.error };
    if (unknownMs > 0) this.#inbox.unshift({ type: "loop.stalled", stalledMs: unknownMs }, event);
    else this.#inbox.push(event);
    this.#schedule();
  }
}
