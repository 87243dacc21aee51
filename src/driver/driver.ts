import type { Effect } from "../core/effects.ts";
import type { Event } from "../core/events.ts";
import type { Change, TableOrigin, TableRecord, TableSpec } from "../model/change.ts";
import { EvenkeelError, present } from "../model/errors.ts";
import type { Revision, TableName } from "../model/ids.ts";
import { type Settings, stretched } from "../model/settings.ts";
import type { Status } from "../model/status.ts";
import { Appender, type Outcome } from "./appender.ts";
import type { Core } from "./core.ts";
import type {
  Clock,
  Loaded,
  LogPort,
  Reign,
  SchedulerApi,
  SessionHost,
  SessionPort,
  StampProof,
  Stamps,
  Store,
  Timer,
} from "./ports.ts";
import { Requests } from "./requests.ts";
import { StallWatch } from "./stall-watch.ts";
import { createStamps } from "./stamps.ts";
import { WakeTimer } from "./wake-timer.ts";

/** Changes between two checkpoints: what a start has to fold at most, and what a store in memory keeps. */
export const CHECKPOINT_EVERY = 1_000;

/** Entries of changes after which a checkpoint is due before that: a start folds them, some µs each, before its first push. */
export const CHECKPOINT_ENTRIES = 20_000;

/** How long a turn may have been due before the sockets are read once more: an ordinary round takes less. */
const UNREAD_LIMIT_MS = 20;

/** How long a scheduler that failed waits for its store to be given up before it says so. */
const GIVE_UP_MS = 2_000;

/** How much longer than the core's own time-out a shutdown may take, for a core that does not finish by itself. */
const SHUTDOWN_MARGIN_MS = 1_000;

export interface DriverOptions<State> {
  readonly core: Core<State>;
  readonly clock: Clock;
  readonly store: Store;
  readonly settings: Settings;
  readonly log: LogPort;
  /** Changes between two checkpoints. Default CHECKPOINT_EVERY. */
  readonly checkpointEvery?: number;
}

interface Running<State> {
  readonly kind: "running";
  readonly reign: Reign;
  readonly appender: Appender;
  readonly stamps: Stamps;
  state: State;
  /** Set while the sessions are being sent away. */
  onFinished?: () => void;
}

type Run<State> = { readonly kind: "idle" } | Running<State> | { readonly kind: "over"; readonly why: string };

/**
 * Turns the core: gathers events, hands them to `step` with the time, carries its effects out in their order, and wakes it
 * when it asked for that. It decides nothing itself, but for one rule: while the outcome of an append is unknown no turn is
 * run, so that nothing is sent that might rest on what is not durable (PROTOCOL §4).
 */
export class Driver<State> implements SessionHost, SchedulerApi, Stamps {
  readonly #options: DriverOptions<State>;
  readonly #requests = new Requests();
  readonly #wake: WakeTimer;
  readonly #stalls: StallWatch;
  readonly #reportFailure: (error: Error) => void;
  /** Resolves with the reason when this scheduler cannot go on: a broken invariant, or a reign that is over. */
  readonly failed: Promise<Error>;
  #run: Run<State> = { kind: "idle" };
  #inbox: Event[] = [];
  #sessions: SessionPort | undefined;
  #isTurnDue = false;
  #uncheckpointed = { changes: 0, entries: 0 };
  #oldLeases: Timer | undefined;

  constructor(options: DriverOptions<State>) {
    this.#options = options;
    this.#wake = new WakeTimer(options.clock, () => this.#schedule());
    this.#stalls = new StallWatch(options.clock, options.settings.lease.renewMs, () => this.#schedule());
    const { promise, resolve } = newPromise<Error>();
    this.failed = promise;
    this.#reportFailure = resolve;
  }

  /** Waits for the right to write, loads the ledger and begins to turn. Rejects if the store cannot be had or read. */
  async start(): Promise<void> {
    const { core, clock, store, log } = this.#options;
    const reign = await store.acquire();
    const { incarnation, term } = reign;
    const { state, loaded } = await this.#load(reign).catch(async (error: unknown) => {
      await store.release(reign);
      throw error;
    });
    const appender = new Appender({ clock, store, reign, log, onSettled: (outcome) => this.#settle(outcome) });
    const stamps = createStamps(reign.stampKey, incarnation, term);
    this.#run = { kind: "running", reign, appender, stamps, state };
    for (const change of loaded.changes) this.#countUncheckpointed(change);
    log.log("info", "leader.elected", { term, incarnation, revision: core.currentRevision(state) });
    void reign.lost.then((reason) => this.#depose(new Error(reason)));
    this.#forgetOldLeases(reign, loaded);
    this.#stalls.start();
    this.#schedule();
  }

  async #load(reign: Reign): Promise<{ readonly state: State; readonly loaded: Loaded }> {
    const { core, clock, store, settings } = this.#options;
    const loaded = await store.load(reign);
    const { checkpoint } = loaded;
    const { durationMs } = settings.lease;
    // Durable before its first use, so that a successor waits for it.
    if (durationMs > loaded.maxLeaseMs) await store.setMaxLease(reign, durationMs);
    const { incarnation, term } = reign;
    const state = core.createState({
      ...loaded,
      ...(checkpoint === undefined ? {} : { checkpoint: checkpoint.state }),
      settings,
      incarnation,
      term,
      now: clock.now(),
    });
    return { state, loaded };
  }

  attachSessions(port: SessionPort): void {
    this.#sessions = port;
  }

  post(event: Event): void {
    if (this.#run.kind === "over") return;
    this.#inbox.push(event);
    this.#schedule();
  }

  ready(): boolean {
    const run = this.#run;
    return run.kind === "running" && run.onFinished === undefined && !run.appender.isUnknown;
  }

  mint(revision: Revision): string {
    return this.#running().stamps.mint(revision);
  }

  verify(stamp: string): StampProof | undefined {
    return this.#running().stamps.verify(stamp);
  }

  status(): Status {
    const { state, appender } = this.#running();
    const status = this.#options.core.describe(state, this.#options.clock.now());
    if (!appender.isUnknown) return status;
    const waitingFor = ["the store to say whether the last change was written", ...status.waitingFor];
    return { ...status, state: "store-failed", converged: false, waitingFor };
  }

  tables(): readonly TableRecord[] {
    return this.#options.core.listTables(this.#running().state);
  }

  revision(): Revision {
    return this.#options.core.currentRevision(this.#running().state);
  }

  async putTable(
    spec: TableSpec,
    origin: TableOrigin,
    ifRevision?: Revision,
  ): Promise<{ table: TableRecord; revision: Revision }> {
    const { revision } = await this.#command((request) => ({
      type: "table.put",
      request,
      spec,
      origin,
      ...withRevision(ifRevision),
    }));
    const table = this.tables().find((record) => record.table === spec.table);
    if (table === undefined) throw new EvenkeelError("conflict", `table ${spec.table} was deleted at the same time`);
    return { table, revision };
  }

  async deleteTable(table: TableName, ifRevision?: Revision): Promise<{ revision: Revision }> {
    const { revision } = await this.#command((request) => ({
      type: "table.deleted",
      request,
      table,
      ...withRevision(ifRevision),
    }));
    return { revision };
  }

  /** The configuration's tables, be it none. Resolves when they are committed; rejects with what of them is refused. */
  async declareTables(specs: readonly TableSpec[]): Promise<{ revision: Revision }> {
    const { revision } = await this.#command((request) => ({ type: "tables.declared", request, specs }));
    return { revision };
  }

  /** Sends every session away, within the time that the settings allow, and gives the right to write up. */
  async stop(): Promise<void> {
    const run = this.#run;
    if (run.kind === "idle") this.#end("the scheduler was stopped");
    if (run.kind !== "running" || run.onFinished !== undefined) return;
    const { clock, settings, store } = this.#options;
    const { promise, resolve } = newPromise<void>();
    run.onFinished = resolve;
    const timer = clock.setTimer(settings.shutdown.timeoutMs + SHUTDOWN_MARGIN_MS, resolve);
    this.post({ type: "shutdown.requested" });
    await promise;
    timer.cancel();
    this.#end("the scheduler was stopped");
    await store.release(run.reign);
  }

  #running(): Running<State> {
    if (this.#run.kind === "running") return this.#run;
    const detail = this.#run.kind === "idle" ? "the scheduler does not lead yet" : this.#run.why;
    throw new EvenkeelError("not-ready", detail, "try again shortly");
  }

  async #command(event: (request: number) => Event) {
    const { appender, onFinished } = this.#running();
    if (onFinished !== undefined) throw new EvenkeelError("not-ready", "the scheduler is shutting down");
    if (appender.isUnknown) {
      throw new EvenkeelError("store-unavailable", "the outcome of the last write is unknown", "try again shortly");
    }
    return this.#requests.open((request) => this.post(event(request)));
  }

  /** A turn runs after the I/O callbacks of this round of the loop: what sockets hold is read first, and a burst is one turn. */
  #schedule(): void {
    if (this.#isTurnDue || this.#run.kind !== "running") return;
    this.#isTurnDue = true;
    const { clock } = this.#options;
    const dueAt = clock.now();
    setImmediate(() => {
      // Something held this round of the loop up: the sockets were read before it, and have to be read after it.
      if (clock.now() - dueAt > UNREAD_LIMIT_MS) setImmediate(() => this.#turn());
      else this.#turn();
    });
  }

  #turn(): void {
    this.#isTurnDue = false;
    const run = this.#run;
    if (run.kind !== "running" || run.appender.isUnknown) return;
    const events = this.#inbox;
    this.#inbox = [];
    // The clock is read after the events were gathered: what came in before a deadline is never judged by a later one.
    const now = this.#options.clock.now();
    const stalledMs = this.#stalls.take(now);
    if (stalledMs > 0) events.unshift({ type: "loop.stalled", stalledMs });
    try {
      const { state, effects, wakeAt } = this.#options.core.step(run.state, events, now);
      run.state = state;
      for (const effect of effects) this.#carryOut(run, effect);
      this.#wake.arm(wakeAt, now);
      this.#keepCheckpoint(run);
    } catch (error) {
      this.#fail("core.failed", error instanceof Error ? error : new Error(String(error)));
    }
  }

  #carryOut(run: Running<State>, effect: Effect): void {
    switch (effect.type) {
      case "store.append":
        return run.appender.append({ ...effect.change, at: this.#options.clock.wall() });
      case "session.welcome":
      case "session.push":
      case "session.lease":
      case "session.goaway":
      case "session.left":
      case "session.close":
        return present(this.#sessions, "the port of sessions").deliver(effect);
      case "request.answered":
        return this.#requests.answer(effect.request, effect.answer);
      case "log":
        return this.#options.log.log(effect.level, effect.event, effect.fields);
      case "shutdown.finished":
        return run.onFinished?.();
      default:
        return effect satisfies never;
    }
  }

  /** What waited in the inbox while an outcome was unknown comes after it; nobody's time ran meanwhile. */
  #settle(outcome: Outcome): void {
    if (outcome.type === "deposed") return this.#depose(outcome.error);
    const { change, unknownMs } = outcome;
    const event: Event =
      outcome.type === "committed"
        ? { type: "change.committed", change }
        : { type: "append.failed", revision: change.revision, error: outcome.error };
    if (unknownMs > 0) this.#inbox.unshift({ type: "loop.stalled", stalledMs: unknownMs }, event);
    else this.#inbox.push(event);
    if (outcome.type === "committed") this.#countUncheckpointed(change);
    this.#schedule();
  }

  #countUncheckpointed({ executors, tables, release, unown, own }: Change): void {
    this.#uncheckpointed.changes++;
    for (const { length } of [executors, tables, release, unown, own]) this.#uncheckpointed.entries += length;
  }

  #keepCheckpoint({ state, reign }: Running<State>): void {
    const { core, store, log, checkpointEvery = CHECKPOINT_EVERY } = this.#options;
    const { changes, entries } = this.#uncheckpointed;
    if (changes < checkpointEvery && entries < CHECKPOINT_ENTRIES) return;
    this.#uncheckpointed = { changes: 0, entries: 0 };
    // A start that finds no newer checkpoint only folds more changes, so a failure is told and left to the next time.
    store.checkpoint(reign, core.toCheckpoint(state)).catch((error: unknown) => {
      log.log("warn", "store.failed", { checkpoint: core.currentRevision(state), error: String(error) });
    });
  }

  /** When the leases of earlier reigns have run out, the store need not tell the next start of them. */
  #forgetOldLeases(reign: Reign, { maxLeaseMs, quarantineMs = 0 }: Loaded): void {
    const { clock, store, settings, log } = this.#options;
    const { durationMs } = settings.lease;
    if (maxLeaseMs <= durationMs && quarantineMs === 0) return;
    this.#oldLeases = clock.setTimer(stretched(Math.max(maxLeaseMs, quarantineMs), settings.lease), () => {
      const done = [
        maxLeaseMs > durationMs ? store.setMaxLease(reign, durationMs) : undefined,
        quarantineMs > 0 ? store.endQuarantine(reign) : undefined,
      ];
      // Left as it is, the next start only waits longer than it must.
      Promise.all(done).catch((error: unknown) => log.log("warn", "store.failed", { error: String(error) }));
    });
  }

  #depose(error: Error): void {
    if (this.#run.kind === "running") this.#fail("leader.lost", error);
  }

  /** Stops turning for good: a state that cannot be trusted, or a reign that is over, must not reach anybody. */
  #fail(event: string, error: Error): void {
    const { log, store, clock } = this.#options;
    log.log("error", event, { error: error.message, stack: error.stack });
    const run = this.#run;
    this.#end(`the scheduler failed: ${error.message}`);
    if (run.kind === "running") {
      run.onFinished?.();
      // Another scheduler need not wait for this process to be gone, nor this process for a disk that hangs.
      const released = store
        .release(run.reign)
        .catch((cause: unknown) => log.log("warn", "store.failed", { error: String(cause) }));
      const timer = clock.setTimer(GIVE_UP_MS, () => this.#reportFailure(error));
      void released.then(() => {
        timer.cancel();
        this.#reportFailure(error);
      });
    } else {
      this.#reportFailure(error);
    }
  }

  #end(why: string): void {
    if (this.#run.kind === "running") this.#run.appender.close();
    this.#run = { kind: "over", why };
    this.#wake.cancel();
    this.#oldLeases?.cancel();
    this.#stalls.stop();
    this.#inbox = [];
    this.#requests.rejectAll(new EvenkeelError("not-ready", why));
  }
}

function withRevision(ifRevision: Revision | undefined): { readonly ifRevision?: Revision } {
  return ifRevision === undefined ? {} : { ifRevision };
}

function newPromise<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}
