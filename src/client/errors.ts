import type { StopReason } from "./ports.ts";

/** What went wrong with an executor. The class says what to do; the code is stable. */
export abstract class ExecutorError extends Error {
  abstract readonly code: "configuration" | "replaced" | "refused" | "unauthenticated" | "leave-timeout";
}

/** Fix the call: an option or a handler is wrong. Thrown by the call itself. */
export class ConfigurationError extends ExecutorError {
  override readonly name = "ConfigurationError";
  readonly code = "configuration";
}

/** End this process: a newer process with the same executor id has taken its place, and this one is never accepted again. */
export class ReplacedError extends ExecutorError {
  override readonly name = "ReplacedError";
  readonly code = "replaced";
}

/** Fix the configuration of this executor or of the scheduler: trying again comes to the same. */
export class RefusedError extends ExecutorError {
  override readonly name = "RefusedError";
  readonly code = "refused";
  constructor(
    message: string,
    /** The close code of the session, or the HTTP status of the upgrade. */
    readonly refusal: number,
  ) {
    super(message);
  }
}

/** Get another token and connect again. Not met with a `token` function, which is asked for each connection. */
export class UnauthenticatedError extends ExecutorError {
  override readonly name = "UnauthenticatedError";
  readonly code = "unauthenticated";
}

/** Nothing is served any more, but the scheduler has not confirmed it in time; it finds out by the lease. */
export class LeaveTimeoutError extends ExecutorError {
  override readonly name = "LeaveTimeoutError";
  readonly code = "leave-timeout";
}

/**
 * To be thrown by `onGrant`: this partition cannot be loaded here. Any other error counts as one with `retryable: true`.
 *
 * With `retryable: false` this process is never given the partition again.
 */
export class PartitionError extends Error {
  override readonly name = "PartitionError";
  readonly retryable: boolean;
  constructor(
    message: string,
    { retryable = true, cause }: { readonly retryable?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.retryable = retryable;
  }
}

/** The reason of a partition's aborted signal. */
export class PartitionStoppedError extends Error {
  override readonly name = "PartitionStoppedError";
  constructor(readonly reason: StopReason) {
    super(`the partition is to be stopped: ${reason}`);
  }
}
