/** Public entry `evenkeel/executor`: take part in a fleet from a Node process. */

import type { ExecutorHandlers } from "./handler-runner.ts";
import { nodeDial } from "./node-socket.ts";
import type { ExecutorOptions } from "./options.ts";
import type { ClientClock, ClientRandom } from "./ports.ts";
import { type Executor, startExecutor } from "./running-executor.ts";

export type { ChangeableTraits, LeaveMode } from "./connection-state.ts";
export {
  ConfigurationError,
  ExecutorError,
  LeaveTimeoutError,
  PartitionError,
  PartitionStoppedError,
  RefusedError,
  ReplacedError,
  UnauthenticatedError,
} from "./errors.ts";
export type { ExecutorHandlers, PartitionGrant, RevokeNotice } from "./handler-runner.ts";
export { type LeaveSignalOptions, leaveOnSignals, leaveOnSigterm, type SigtermOptions } from "./leave-signals.ts";
export type { ExecutorLogger, ExecutorOptions, TokenSource } from "./options.ts";
export type { LeaseNotice, StopReason } from "./ports.ts";
export type { Executor, ExecutorClosed, ExecutorStatus, LeaveOptions } from "./running-executor.ts";

/** Monotonic and wall time of this process. Node's monotonic clock stands still while the machine sleeps; the lease rule reckons with that. */
const NODE_CLOCK: ClientClock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  setTimer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

const NODE_RANDOM: ClientRandom = { next: () => Math.random() };

/**
 * Connects this process as an executor and keeps it connected until it leaves, is closed or is replaced.
 *
 * Returns at once; `statuses` tells how it gets on. Throws ConfigurationError for a wrong option or handler. A scheduler
 * that cannot be reached is tried again for ever.
 */
export function connectExecutor(options: ExecutorOptions, handlers: ExecutorHandlers): Executor {
  return startExecutor(options, handlers, {
    clock: NODE_CLOCK,
    random: NODE_RANDOM,
    dial: nodeDial(options.token),
  });
}
