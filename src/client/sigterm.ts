import { LeaveTimeoutError } from "./errors.ts";
import type { Executor } from "./running-executor.ts";

export interface SigtermOptions {
  /** How long the scheduler is waited for. Default 25 s: what orchestrators allow by default is 30 s. */
  readonly timeoutMs?: number;
  /** Called with the exit code when all is done. Default: `process.exit`. */
  readonly exit?: (code: number) => void;
}

const DEFAULT_TIMEOUT_MS = 25_000;

/**
 * On SIGTERM: leaves for a restart, so that this executor's place is kept for the next process with its id, and exits with
 * 0 when left, with 1 if the scheduler did not confirm in time. Nothing is served any more in either case. Gives back a
 * function that takes the listener away.
 */
export function leaveOnSigterm(
  executor: Executor,
  { timeoutMs = DEFAULT_TIMEOUT_MS, exit }: SigtermOptions = {},
): () => void {
  const leave = async () => {
    const code = await executor.leave({ mode: "restart", timeoutMs }).then(
      () => 0,
      (error: unknown) => (error instanceof LeaveTimeoutError ? 1 : 0),
    );
    if (exit === undefined) process.exit(code);
    else exit(code);
  };
  const listener = () => void leave();
  process.once("SIGTERM", listener);
  return () => void process.off("SIGTERM", listener);
}
