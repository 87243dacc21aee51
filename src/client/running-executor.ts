import { assert } from "../model/errors.ts";
import type { TableName } from "../model/ids.ts";
import { Connection } from "./connection.ts";
import type { ChangeableTraits, ConnectionStatus, LeaveMode } from "./connection-state.ts";
import { type ExecutorError, LeaveTimeoutError, RefusedError, ReplacedError, UnauthenticatedError } from "./errors.ts";
import { type ExecutorHandlers, failureOf, HandlerRunner } from "./handler-runner.ts";
import { checkHandlers, type ExecutorOptions, logTo, readOptions, readUpdate } from "./options.ts";
import type { Closing, ConnectionPorts } from "./ports.ts";
import { StatusFeed } from "./status-feed.ts";

/** What an executor knows of itself at one moment. */
export type ExecutorStatus = ConnectionStatus;

/**
 * How an executor ended.
 *
 * - `left`: the scheduler confirmed that nothing is owned any more.
 * - `closed`: by `close`.
 * - `lapsed`: it was leaving for a restart, and its lease ran out before the scheduler answered.
 * - `replaced`, `refused`, `unauthenticated`: for the reason in `error`.
 */
export type ExecutorClosed =
  | { readonly reason: "left" | "closed" | "lapsed" }
  | { readonly reason: "replaced" | "refused" | "unauthenticated"; readonly error: ExecutorError };

/** How to leave. */
export interface LeaveOptions {
  /**
   * `move`, the default: every partition is moved to others first, as far as there are any, and nothing stays reserved.
   * `restart`: everything is asked back at once and its place kept for the next process with this id, for the scheduler's
   * `loss.return` (2 minutes unless set otherwise); nobody serves it meanwhile.
   */
  readonly mode?: LeaveMode;
  /** After this everything is stopped and the connection closed without the scheduler's word. Default: no limit. */
  readonly timeoutMs?: number;
}

/**
 * A worker that takes part in a fleet: it stays connected, is told what it owns, and runs the handlers. Made by
 * `connectExecutor`.
 */
export class Executor {
  /**
   * Resolves when it is over for good and every handler has ended, or had `stopTimeoutMs` to. Never rejects: an end that
   * needs the owner comes as `error` in the result.
   */
  readonly closed: Promise<ExecutorClosed>;
  readonly #connection: Connection;
  readonly #feed: StatusFeed;
  readonly #clock: ConnectionPorts["clock"];

  /** For `startExecutor`. */
  constructor(options: ExecutorOptions, handlers: ExecutorHandlers, ports: ConnectionPorts) {
    checkHandlers(handlers);
    const connectionOptions = readOptions(options);
    this.#clock = ports.clock;
    const { promise, resolve } = deferred<Closing>();
    const outcomes = {
      loaded: (...args: Parameters<Connection["loaded"]>) => this.#connection.loaded(...args),
      failed: (...args: Parameters<Connection["failed"]>) => this.#connection.failed(...args),
      unloaded: (...args: Parameters<Connection["unloaded"]>) => this.#connection.unloaded(...args),
    };
    const runner = new HandlerRunner(handlers, outcomes, ports.clock, ports.log);
    this.#feed = new StatusFeed(() => this.#connection.status());
    this.#connection = new Connection(connectionOptions, ports, {
      start: (handles) => runner.start(handles),
      stop: (handles, reason) => runner.stop(handles, reason),
      cut: (handles) => runner.cut(handles),
      leased: (notice) => runner.leased(notice),
      changed: () => this.#feed.changed(),
      finished: resolve,
    });
    this.closed = promise.then(async (closing) => {
      await this.#within(connectionOptions.patienceMs, runner.idle());
      return closedBy(closing);
    });
    this.#connection.start();
  }

  /**
   * Epoch under which this process may serve the partition at this moment, or undefined: it may not. True from the grant
   * on, loaded or not, and judged by the clock against the lease and, once revoked, against the stop limit. Ask before each use.
   */
  owns(table: string, partition: number): number | undefined {
    return this.#connection.owns(table as TableName, partition);
  }

  /** The status now. */
  status(): ExecutorStatus {
    return this.#connection.status();
  }

  /** The status now and after each change, until it is closed: `for await (const status of executor.statuses())`. */
  statuses(): AsyncGenerator<ExecutorStatus, void, undefined> {
    return this.#feed.statuses();
  }

  /**
   * Gives up a partition that had loaded and cannot go on: it is not served from here on, the scheduler takes it back, and
   * `onRevoke` follows. `error` may be a PartitionError. False if the partition is not held.
   */
  fail(table: string, partition: number, error: unknown): boolean {
    const handle = this.#connection.current(table as TableName, partition);
    if (handle?.state !== "loaded") return false;
    this.#connection.failed(handle, failureOf(error));
    return true;
  }

  /** Changes weight, capacity, labels or address. Throws ConfigurationError. */
  update(traits: ChangeableTraits): void {
    this.#connection.update(readUpdate(traits));
  }

  /**
   * Leaves the fleet and resolves when nothing is owned any more and the connection is closed. Rejects with
   * LeaveTimeoutError after `timeoutMs`, and with the error of an end that came first.
   */
  async leave({ mode = "move", timeoutMs }: LeaveOptions = {}): Promise<void> {
    this.#connection.leave(mode);
    const closed = timeoutMs === undefined ? await this.closed : await this.#within(timeoutMs, this.closed);
    if (closed === undefined) {
      await this.close();
      throw new LeaveTimeoutError(
        `the scheduler did not confirm within ${timeoutMs} ms that nothing is owned any more`,
      );
    }
    if ("error" in closed) throw closed.error;
  }

  /** Stops everything at once and closes, without leaving: the scheduler waits for this executor until its lease is over. */
  async close(): Promise<void> {
    this.#connection.close();
    await this.closed;
  }

  /** What the promise comes to; undefined if that takes longer than `ms`. */
  async #within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
    const { promise: late, resolve } = deferred<undefined>();
    const timer = this.#clock.setTimer(ms, () => resolve(undefined));
    const first = await Promise.race([promise, late]);
    timer.cancel();
    return first;
  }
}

/** Starts an executor on the given ports: those of Node in `connectExecutor`, those of a test or a simulation elsewhere. */
export function startExecutor(
  options: ExecutorOptions,
  handlers: ExecutorHandlers,
  ports: Omit<ConnectionPorts, "log">,
): Executor {
  return new Executor(options, handlers, { ...ports, log: logTo(options.logger) });
}

function closedBy(closing: Closing): ExecutorClosed {
  switch (closing.kind) {
    case "left":
    case "closed":
    case "lapsed":
      return { reason: closing.kind };
    case "replaced": {
      const error = new ReplacedError(`another process with this executor id has taken over: ${closing.detail}`);
      return { reason: "replaced", error };
    }
    case "unauthenticated":
      return { reason: "unauthenticated", error: new UnauthenticatedError(`no valid token: ${closing.detail}`) };
    case "refused": {
      const error = new RefusedError(
        `the scheduler refuses this executor (${closing.code}): ${closing.detail}`,
        closing.code,
      );
      return { reason: "refused", error };
    }
    default:
      return closing satisfies never;
  }
}

function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  assert(settle !== undefined, "a promise runs its executor at once");
  return { promise, resolve: settle };
}
