import {
  type ExecutorHandlers,
  type LeaseNotice,
  PartitionError,
  type PartitionGrant,
  type RevokeNotice,
} from "../../client/executor.ts";
import { type Guard, type GuardOwner, GuardProcess } from "./guard-process.ts";
import { type ChildEnd, type ChildGone, monotonicMs } from "./messages.ts";

/** A partition and the child that serves it. */
interface Task {
  readonly grant: PartitionGrant;
  /** Number of its child; another one after it was started anew. */
  child: number;
  readonly ready: () => void;
  readonly fail: (error: PartitionError) => void;
  hasStarted: boolean;
  /** Nothing of the child is left. */
  isGone: boolean;
  /** Ends the unload; undefined until the partition is asked back. */
  released: (() => void) | undefined;
}

export interface ExecOptions {
  readonly command: string;
  readonly note: (line: string) => void;
  /** Gives up a partition that had been ready. */
  readonly giveUp: (grant: PartitionGrant, error: PartitionError) => void;
  /** The guard is lost and with it all children: nothing can be served any more. */
  readonly onLost: () => void;
  /** Starts the guard. Default: as a process. */
  readonly guard?: (owner: GuardOwner) => Guard;
}

/** Runs one child per partition, all under one guard. */
export class ExecHandlers implements ExecutorHandlers, GuardOwner {
  readonly #options: ExecOptions;
  readonly #guard: Guard;
  readonly #byGrant = new Map<PartitionGrant, Task>();
  readonly #byChild = new Map<number, Task>();
  /** Tasks whose children ended on the guard's warning. */
  readonly #warned = new Set<Task>();
  #children = 0;

  constructor(options: ExecOptions) {
    this.#options = options;
    this.#guard = options.guard?.(this) ?? new GuardProcess(this);
  }

  onGrant(grant: PartitionGrant): Promise<void> {
    return new Promise((resolve, reject) => {
      const task: Task = {
        grant,
        child: 0,
        ready: resolve,
        fail: reject,
        hasStarted: false,
        isGone: false,
        released: undefined,
      };
      this.#byGrant.set(grant, task);
      // Asked back before it has started: it is stopped like one that has, in the order in which the guard is told.
      grant.signal.addEventListener("abort", () => resolve(), { once: true });
      this.#start(task);
    });
  }

  onRevoke(grant: PartitionGrant, { reason, stopMs }: RevokeNotice): Promise<void> | undefined {
    const task = this.#byGrant.get(grant);
    this.#byGrant.delete(grant);
    if (task === undefined || task.isGone) return undefined;
    const killAtMs = monotonicMs() + (reason === "revoked" ? stopMs : 0);
    this.#guard.send({ type: "stop", child: task.child, killAtMs });
    return new Promise((resolve) => {
      task.released = resolve;
    });
  }

  onLease({ leftMs, renewMs, marginMs }: LeaseNotice): void {
    const now = monotonicMs();
    const lapseAtMs = now + leftMs;
    // Two renew periods before the lapse, but not before a renew can have stayed unanswered: with the shortest lease that
    // is allowed, the next one is only being sent then.
    const warnAtMs = Math.max(lapseAtMs - 2 * renewMs, now + 1.5 * renewMs);
    this.#guard.send({ type: "lease", warnAtMs, lapseAtMs, marginMs });
    for (const task of this.#warned) if (!task.grant.signal.aborted) this.#start(task);
    this.#warned.clear();
  }

  started(child: number): void {
    const task = this.#byChild.get(child);
    if (task === undefined) return;
    task.hasStarted = true;
    task.ready();
  }

  gone({ child, end, warned }: ChildGone): void {
    const task = this.#byChild.get(child);
    if (task === undefined) return;
    this.#byChild.delete(child);
    if (task.released !== undefined) {
      task.isGone = true;
      task.released();
    } else if (task.grant.signal.aborted) {
      // `onRevoke` is on its way, and finds that there is nothing to stop.
      task.isGone = true;
    } else if (warned) {
      // It ended because the lease seemed to run out. Should it go on after all, the partition is still ours to serve.
      task.isGone = true;
      this.#warned.add(task);
    } else this.#ended(task, end);
  }

  lost(): void {
    for (const task of this.#byChild.values()) {
      task.isGone = true;
      task.released?.();
      task.fail(new PartitionError("the guard of the children was lost"));
    }
    this.#byChild.clear();
    this.#options.onLost();
  }

  /** Ends all children that are left, and the guard. */
  close(): Promise<void> {
    return this.#guard.close();
  }

  #start(task: Task): void {
    const { table, partition, key, epoch } = task.grant;
    task.child = ++this.#children;
    task.isGone = false;
    this.#byChild.set(task.child, task);
    this.#guard.send({
      type: "start",
      child: task.child,
      command: this.#options.command,
      environment: {
        EVENKEEL_TABLE: table,
        EVENKEEL_PARTITION: String(partition),
        EVENKEEL_EPOCH: String(epoch),
        ...(key === undefined ? {} : { EVENKEEL_KEY: key }),
      },
    });
  }

  /** The child ended though nobody had asked it to. With 0 it had done what there was to do. */
  #ended(task: Task, end: ChildEnd): void {
    task.isGone = true;
    if (end.kind === "exited" && end.code === 0) return;
    const { table, partition } = task.grant;
    const error = new PartitionError(`the command ${describe(end)}`);
    this.#options.note(`${table}/${partition}: ${error.message}`);
    if (task.hasStarted) {
      // In a later turn, when the load that `started` has ended is known to have.
      setImmediate(() => this.#options.giveUp(task.grant, error));
    } else {
      this.#byGrant.delete(task.grant);
      task.fail(error);
    }
  }
}

function describe(end: ChildEnd): string {
  switch (end.kind) {
    case "exited":
      return `exited with ${end.code}`;
    case "killed":
      return `was ended by ${end.signal}`;
    case "not-started":
      return `could not be started: ${end.reason}`;
    default:
      return end satisfies never;
  }
}
