import { CommanderError } from "commander";
import { ConnectError } from "../client/admin.ts";
import { ConfigError, formatProblem } from "../config/source.ts";
import { ERROR_TABLE, EvenkeelError } from "../model/errors.ts";

/** Exit codes that follow from no error of the scheduler. Those that do stand in the table of errors. */
export const EXIT = { ok: 0, failed: 1, usage: 2, cannotConnect: 3, refused: 5, conflict: 6, unhealthy: 7 } as const;

/** A command that ends with other than 0, and what it says of it. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  constructor(
    readonly exit: number,
    message: string,
    readonly hint?: string,
  ) {
    super(message);
  }
}

export function usage(message: string, hint?: string): CommandFailure {
  return new CommandFailure(EXIT.usage, message, hint);
}

/** True for what may be over soon: nobody answers, or the scheduler is not ready yet. */
export function isPassing(error: Error): boolean {
  return (
    error instanceof ConnectError || (error instanceof EvenkeelError && ERROR_TABLE[error.code].exit === EXIT.unhealthy)
  );
}

export interface Verdict {
  readonly exit: number;
  /** For standard error, whole lines without a newline at the end; absent if all is said already. */
  readonly text?: string;
}

/** What to say of an error, and with which code to end. Only a fault of this program shows a stack. */
export function judge(error: unknown): Verdict {
  if (error instanceof CommandFailure) return { exit: error.exit, text: withHint(error.message, error.hint) };
  if (error instanceof EvenkeelError) {
    return { exit: ERROR_TABLE[error.code].exit, text: withHint(error.detail, error.hint) };
  }
  if (error instanceof ConnectError) {
    const hint = "start one with evenkeel serve, or say where it is: --url or EVENKEEL_URL";
    return { exit: EXIT.cannotConnect, text: withHint(error.message, hint) };
  }
  // Known by its name: the store's own module comes with the server, which most commands do without.
  if (error instanceof Error && error.name === "StoreError") {
    return { exit: EXIT.failed, text: withHint(error.message, undefined) };
  }
  if (error instanceof ConfigError) {
    const count = error.problems.length === 1 ? "a problem" : `${error.problems.length} problems`;
    const lines = error.problems.map((problem) => `  ${formatProblem(problem)}`);
    return { exit: EXIT.usage, text: [`evenkeel: the configuration has ${count}:`, ...lines].join("\n") };
  }
  // Its text, with a suggestion where there is one, was written when it was found.
  if (error instanceof CommanderError) return { exit: error.exitCode === 0 ? EXIT.ok : EXIT.usage };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exit: EXIT.failed, text: `evenkeel: this is a fault of evenkeel itself: ${stack}` };
}

function withHint(message: string, hint: string | undefined): string {
  return `evenkeel: ${message}${hint === undefined ? "" : `; ${hint}`}`;
}
