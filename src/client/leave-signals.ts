import type { LeaveMode } from "./connection-state.ts";
import { LeaveTimeoutError } from "./errors.ts";
import type { Executor } from "./running-executor.ts";

/** What ending on a signal has in common, whichever it is. */
interface ExitOptions {
  /** How long the scheduler is waited for. Default 25 s: what orchestrators allow by default is 30 s. */
  readonly timeoutMs?: number;
  /** Called with the exit code when all is done. Default: `process.exit`. */
  readonly exit?: (code: number) => void;
}

export interface SigtermOptions extends ExitOptions {
  /**
   * `restart`, the default: everything is given back at once and stays reserved for the next process with this id, for the
   * scheduler's `loss.return` (2 minutes unless set otherwise); nobody serves it meanwhile. `move`: nothing stays reserved,
   * each partition goes to another executor as soon as this one has released it.
   */
  readonly mode?: LeaveMode;
}

export interface LeaveSignalOptions extends ExitOptions {
  /** How to leave on which signal, see `SigtermOptions.mode`. Default: SIGTERM `restart`, SIGINT, which is Ctrl-C, `move`. */
  readonly modes?: Readonly<Partial<Record<NodeJS.Signals, LeaveMode>>>;
}

const DEFAULT_TIMEOUT_MS = 25_000;

const DEFAULT_MODES: NonNullable<LeaveSignalOptions["modes"]> = { SIGTERM: "restart", SIGINT: "move" };

/**
 * On the first of the signals: leaves, and exits with 0 when left, with 1 if the scheduler did not confirm in time. Nothing
 * is served any more in either case. A second signal ends the process at once. Gives back a function that takes the
 * listeners away.
 */
export function leaveOnSignals(
  executor: Executor,
  { modes = DEFAULT_MODES, timeoutMs = DEFAULT_TIMEOUT_MS, exit }: LeaveSignalOptions = {},
): () => void {
  const leave = async (mode: LeaveMode) => {
    const code = await executor.leave({ mode, timeoutMs }).then(
      () => 0,
      (error: unknown) => (error instanceof LeaveTimeoutError ? 1 : 0),
    );
    if (exit === undefined) process.exit(code);
    else exit(code);
  };
  const listeners = Object.entries(modes).map(([signal, mode]) => {
    const listener = () => {
      release();
      void leave(mode);
    };
    process.on(signal, listener);
    return { signal, listener };
  });
  const release = () => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
  return release;
}

/** As `leaveOnSignals`, on SIGTERM alone and as `mode` says: for a program that answers Ctrl-C itself. */
export function leaveOnSigterm(executor: Executor, { mode = "restart", ...rest }: SigtermOptions = {}): () => void {
  return leaveOnSignals(executor, { ...rest, modes: { SIGTERM: mode } });
}
