import { MAX_REASON_CHARS } from "../protocol/limits.ts";
import { PartitionError, PartitionStoppedError } from "./errors.ts";
import { epochOf, type Handle, type HandleFailure } from "./handle.ts";
import type { ClientClock, ClientLog, LeaseNotice, StopReason } from "./ports.ts";

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
  /** Aborted when the partition is to be stopped; its `reason` is a PartitionStoppedError. */
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

/** Where the runner tells how a handle got on. */
export interface HandlerOutcomes {
  loaded(handle: Handle): void;
  failed(handle: Handle, failure: HandleFailure): void;
  unloaded(handle: Handle): void;
}

interface Task {
  readonly grant: PartitionGrant;
  readonly abort: AbortController;
  /** Settles when `onGrant` has: true if there is something to unload. Never rejects. */
  readonly load: Promise<boolean>;
}

/** Runs the owner's handlers, each partition for itself. */
export class HandlerRunner {
  readonly #handlers: ExecutorHandlers;
  readonly #outcomes: HandlerOutcomes;
  readonly #clock: ClientClock;
  readonly #log: ClientLog;
  readonly #tasks = new Map<Handle, Task>();
  readonly #idle: (() => void)[] = [];

  constructor(handlers: ExecutorHandlers, outcomes: HandlerOutcomes, clock: ClientClock, log: ClientLog) {
    this.#handlers = handlers;
    this.#outcomes = outcomes;
    this.#clock = clock;
    this.#log = log;
  }

  start(handles: readonly Handle[]): void {
    for (const handle of handles) {
      const abort = new AbortController();
      const grant: PartitionGrant = {
        table: handle.table,
        partition: handle.partition,
        ...(handle.key !== undefined && { key: handle.key }),
        epoch: epochOf(handle),
        signal: abort.signal,
      };
      // The handler runs in a later microtask, when the task is known and all of the push has been applied.
      const load = Promise.resolve().then(() => this.#load(handle, grant));
      this.#tasks.set(handle, { grant, abort, load });
    }
  }

  /** Aborts every signal before this returns, then unloads each once its load has settled. */
  stop(handles: readonly Handle[], reason: StopReason): void {
    for (const handle of handles) this.#tasks.get(handle)?.abort.abort(new PartitionStoppedError(reason));
    for (const handle of handles) {
      const task = this.#tasks.get(handle);
      void task?.load.then((isLoaded) => this.#unload(handle, task.grant, isLoaded, reason));
    }
  }

  /** Nobody waits for these any more, whatever their handlers do. */
  cut(handles: readonly Handle[]): void {
    for (const handle of handles) {
      this.#log.log("error", "partition.cut", { ...placeOf(handle), hint: "its handler did not stop it in time" });
      this.#forget(handle);
    }
  }

  leased(notice: LeaseNotice): void {
    try {
      this.#handlers.onLease?.(notice);
    } catch (error) {
      this.#log.log("error", "lease.handler-failed", { reason: failureOf(error).reason });
    }
  }

  /** Resolves when no handler runs and nothing is loaded. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#tasks.size === 0) resolve();
      else this.#idle.push(resolve);
    });
  }

  async #load(handle: Handle, grant: PartitionGrant): Promise<boolean> {
    try {
      grant.signal.throwIfAborted();
      await this.#handlers.onGrant(grant);
    } catch (error) {
      if (!grant.signal.aborted) {
        const failure = failureOf(error);
        this.#log.log("warn", "partition.failed", { ...placeOf(handle), ...failure });
        this.#forget(handle);
        this.#outcomes.failed(handle, failure);
      }
      return false;
    }
    this.#outcomes.loaded(handle);
    return true;
  }

  async #unload(handle: Handle, grant: PartitionGrant, isLoaded: boolean, reason: StopReason): Promise<void> {
    try {
      if (isLoaded) await this.#handlers.onRevoke(grant, { reason, stopMs: this.#leftMs(handle, reason) });
      this.#outcomes.unloaded(handle);
    } catch (error) {
      this.#log.log("error", "partition.unload-failed", { ...placeOf(handle), reason: failureOf(error).reason });
    }
    this.#forget(handle);
  }

  #leftMs(handle: Handle, reason: StopReason): number {
    if (reason !== "revoked" || handle.limit === undefined) return 0;
    return Math.max(0, handle.limit.deadlineMs - this.#clock.now());
  }

  #forget(handle: Handle): void {
    this.#tasks.delete(handle);
    if (this.#tasks.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
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
