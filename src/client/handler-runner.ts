import { MAX_REASON_CHARS } from "../protocol/limits.ts";
import { PartitionError, PartitionStoppedError } from "./errors.ts";
import { epochOf, type Handle, type HandleFailure } from "./handle.ts";
import type { ClientClock, ClientLog, LeaseNotice, StopReason } from "./ports.ts";
import { Slices } from "./slices.ts";

/** A partition that this executor is to load. The same object is handed to `onRevoke`. */
export interface PartitionGrant {
  readonly table: string;
  readonly partition: number;
  /** Only in tables that have keys. */
  readonly key?: string;
  /**
   * Fencing token: give it to any storage that keeps the highest seen. In an overlap table this is the preparation's, and a
   * later grant brings another, which `owns` tells.
   */
  readonly epoch: number;
  /**
   * Aborted when the partition is to be stopped; its `reason` is a PartitionStoppedError. Where tens of thousands are stopped
   * at once the last ones hear of it a little later, `owns` at once. A getter: a copy by spread is without it.
   */
  readonly signal: AbortSignal;
}

/** Why and how fast a partition is to be stopped. */
export interface RevokeNotice {
  /** Only a `revoked` partition may still be served, and only until `owns` says no. */
  readonly reason: StopReason;
  /** Time left until it is served no longer, whatever the handler does. 0 unless it is `revoked`. */
  readonly stopMs: number;
}

/** The owner's code. Calls for different partitions run side by side; one that throws or hangs delays no other. */
export interface ExecutorHandlers {
  /**
   * Loads a partition: once per load, in overlap tables at the prepare. Resolved: it is ready. Rejected: it failed, see
   * PartitionError, and `onRevoke` is not called for it.
   */
  onGrant(grant: PartitionGrant): unknown;
  /**
   * Unloads a partition that was loaded; called after `onGrant` has settled. Resolved: it is released. Rejected: it is
   * not known to be unloaded, so it is released only when its time is up.
   */
  onRevoke(grant: PartitionGrant, notice: RevokeNotice): unknown;
  /** The lease was extended: it holds as told from now. For owners who guard it in another process. */
  onLease?(notice: LeaseNotice): void;
}

/** Where the runner tells how handles got on. */
export interface HandlerOutcomes {
  loaded(handles: readonly Handle[]): void;
  failed(handle: Handle, failure: HandleFailure): void;
  unloaded(handles: readonly Handle[]): void;
}

/** What is handed to the owner's code. Hardly anybody asks for all signals of a large share, so each is made when asked for. */
class Granted implements PartitionGrant {
  readonly table: string;
  readonly partition: number;
  declare readonly key?: string;
  readonly epoch: number;
  #abort: AbortController | undefined;
  #stopped: PartitionStoppedError | undefined;

  constructor(handle: Handle) {
    this.table = handle.table;
    this.partition = handle.partition;
    if (handle.key !== undefined) this.key = handle.key;
    this.epoch = epochOf(handle);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#stopped !== undefined) this.#abort.abort(this.#stopped);
    }
    return this.#abort.signal;
  }

  stop(error: PartitionStoppedError): void {
    this.#stopped = error;
    this.#abort?.abort(error);
  }
}

/** A partition whose `onGrant` was called and that the owner's code is not known to be done with. */
interface Task {
  readonly grant: Granted;
  /** `empty`: `onGrant` rejected after the stop, so there is nothing to unload. */
  load: "running" | "done" | "empty";
  /** Set when its turn to unload has come. */
  unloadFor: StopReason | undefined;
  isCut: boolean;
}

/**
 * Runs the owner's handlers, each partition for itself. They are called in slices, see `Slices`, and what comes of the calls
 * of one slice is told together. What is stopped before its `onGrant` was called is unloaded without it.
 */
export class HandlerRunner {
  readonly #handlers: ExecutorHandlers;
  readonly #outcomes: HandlerOutcomes;
  readonly #clock: ClientClock;
  readonly #log: ClientLog;
  readonly #slices: Slices;
  readonly #tasks = new Map<Handle, Task>();
  #cutTasks = 0;
  #loaded: Handle[] = [];
  #unloaded: Handle[] = [];
  #isTelling = false;
  readonly #idle: (() => void)[] = [];

  constructor(handlers: ExecutorHandlers, outcomes: HandlerOutcomes, clock: ClientClock, log: ClientLog) {
    this.#handlers = handlers;
    this.#outcomes = outcomes;
    this.#clock = clock;
    this.#log = log;
    this.#slices = new Slices(clock, () => this.#wakeIfIdle());
  }

  /** Calls `onGrant` for each from the next microtask on, when all of the push has been applied. */
  start(handles: readonly Handle[]): void {
    this.#slices.add("load", handles, (handle) => this.#load(handle));
  }

  /** Aborts every signal, then unloads each once its load has settled. As many as fit a slice are aborted when this returns. */
  stop(handles: readonly Handle[], reason: StopReason): void {
    const error = new PartitionStoppedError(reason);
    this.#slices.begin(handles, (handle) => {
      const task = this.#tasks.get(handle);
      task?.grant.stop(error);
    });
    this.#slices.add("unload", handles, (handle) => this.#unloadInTurn(handle, reason));
  }

  /** Nobody waits for these any more, whatever their handlers do. */
  cut(handles: readonly Handle[]): void {
    const running: Handle[] = [];
    for (const handle of handles) {
      const task = this.#tasks.get(handle);
      if (task === undefined || task.isCut) continue;
      task.isCut = true;
      this.#cutTasks++;
      running.push(handle);
    }
    this.#slices.add("load", running, (handle) => {
      this.#log.log("error", "partition.cut", { ...placeOf(handle), hint: "its handler did not stop it in time" });
    });
    this.#wakeIfIdle();
  }

  leased(notice: LeaseNotice): void {
    try {
      this.#handlers.onLease?.(notice);
    } catch (error) {
      this.#log.log("error", "lease.handler-failed", { reason: failureOf(error).reason });
    }
  }

  /** Resolves when no handler runs and nothing is loaded, but for what was cut. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#wakeIfIdle();
    });
  }

  #load(handle: Handle): void {
    // Stopped meanwhile: it is unloaded in its turn, or was given up altogether.
    if (handle.state !== "loading") return;
    const task: Task = {
      grant: new Granted(handle),
      load: "running",
      unloadFor: undefined,
      isCut: false,
    };
    this.#tasks.set(handle, task);
    call(
      () => this.#handlers.onGrant(task.grant),
      () => this.#hasLoaded(handle, task),
      (error) => this.#hasNotLoaded(handle, task, error),
    );
  }

  #hasLoaded(handle: Handle, task: Task): void {
    task.load = "done";
    if (handle.state === "loading") this.#tell(this.#loaded, handle);
    else if (task.unloadFor !== undefined) this.#unload(handle, task, task.unloadFor);
  }

  #hasNotLoaded(handle: Handle, task: Task, error: unknown): void {
    task.load = "empty";
    if (handle.state !== "loading") {
      if (task.unloadFor !== undefined) this.#unload(handle, task, task.unloadFor);
      return;
    }
    const failure = failureOf(error);
    this.#log.log("warn", "partition.failed", { ...placeOf(handle), ...failure });
    this.#forget(handle, task);
    this.#outcomes.failed(handle, failure);
  }

  #unloadInTurn(handle: Handle, reason: StopReason): void {
    const task = this.#tasks.get(handle);
    if (task === undefined) return this.#tell(this.#unloaded, handle);
    task.unloadFor = reason;
    if (task.load !== "running") this.#unload(handle, task, reason);
  }

  #unload(handle: Handle, task: Task, reason: StopReason): void {
    const hasUnloaded = (): void => {
      this.#forget(handle, task);
      this.#tell(this.#unloaded, handle);
    };
    if (task.load === "empty") return hasUnloaded();
    call(
      () => this.#handlers.onRevoke(task.grant, { reason, stopMs: this.#leftMs(handle, reason) }),
      hasUnloaded,
      (error) => {
        this.#log.log("error", "partition.unload-failed", { ...placeOf(handle), reason: failureOf(error).reason });
        this.#forget(handle, task);
      },
    );
  }

  #leftMs(handle: Handle, reason: StopReason): number {
    if (reason !== "revoked" || handle.limit === undefined) return 0;
    return Math.max(0, handle.limit.deadlineMs - this.#clock.now());
  }

  #forget(handle: Handle, task: Task): void {
    this.#tasks.delete(handle);
    if (task.isCut) this.#cutTasks--;
    this.#wakeIfIdle();
  }

  /** Tells of it in a later microtask, together with what settles until then. */
  #tell(list: Handle[], handle: Handle): void {
    list.push(handle);
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => this.#tellAll());
  }

  #tellAll(): void {
    const [loaded, unloaded] = [this.#loaded, this.#unloaded];
    this.#loaded = [];
    this.#unloaded = [];
    this.#isTelling = false;
    if (loaded.length > 0) this.#outcomes.loaded(loaded);
    if (unloaded.length > 0) this.#outcomes.unloaded(unloaded);
    this.#wakeIfIdle();
  }

  #wakeIfIdle(): void {
    if (this.#idle.length === 0 || this.#tasks.size > this.#cutTasks || this.#isTelling || !this.#slices.isIdle) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Calls a handler. Few partitions wait for anything, so a promise is only made where the handler gave one. */
function call(handler: () => unknown, resolved: () => void, rejected: (error: unknown) => void): void {
  let pending: Promise<unknown> | undefined;
  try {
    const result = handler();
    if (isThenable(result)) pending = Promise.resolve(result);
  } catch (error) {
    return rejected(error);
  }
  if (pending === undefined) return resolved();
  void pending.then(resolved, rejected);
}

function isThenable(value: unknown): boolean {
  const mayHaveMembers = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayHaveMembers && "then" in value && typeof value.then === "function";
}

function placeOf(handle: Handle): Readonly<Record<string, unknown>> {
  return { table: handle.table, partition: handle.partition, epoch: epochOf(handle) };
}

const LONE_SURROGATES = /\p{Surrogate}/gu;

/** What the scheduler is told of an error: its message within the limits of the wire. */
export function failureOf(error: unknown): HandleFailure {
  const message = error instanceof Error ? error.message || error.name : String(error);
  const reason = [...message.replace(LONE_SURROGATES, "\uFFFD")].slice(0, MAX_REASON_CHARS).join("");
  return { reason, retryable: error instanceof PartitionError ? error.retryable : true };
}
