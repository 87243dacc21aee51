/** What `evenkeel executor --exec` and its guard tell each other. Times are ms of the machine's monotonic clock. */

export type ToGuard = StartChild | StopChild | LeaseTold;

/** Run the command through a shell, in a process group of its own. */
export interface StartChild {
  readonly type: "start";
  readonly child: number;
  readonly command: string;
  /** Beside the guard's own environment. */
  readonly environment: Readonly<Record<string, string>>;
}

/** SIGTERM to the group now, SIGKILL at `killAtMs`. A repeat may bring that nearer, never further away. */
export interface StopChild {
  readonly type: "stop";
  readonly child: number;
  readonly killAtMs: number;
}

export interface LeaseTold {
  readonly type: "lease";
  /** SIGTERM to all then, unless the lease was extended before. */
  readonly warnAtMs: number;
  /** SIGKILL to all then. */
  readonly lapseAtMs: number;
  /** By so much wall time may run ahead of monotonic time before the machine counts as having slept. */
  readonly marginMs: number;
}

export type FromGuard = ChildStarted | ChildGone;

export interface ChildStarted {
  readonly type: "started";
  readonly child: number;
  readonly pid: number;
}

/** Nothing of the child's process group is left. */
export interface ChildGone {
  readonly type: "gone";
  readonly child: number;
  readonly end: ChildEnd;
  /** It was told to end because renews stayed unanswered. */
  readonly warned: boolean;
}

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: string }
  | { readonly kind: "not-started"; readonly reason: string };

/** The monotonic clock of the machine, the same for all of its processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
