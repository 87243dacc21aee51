import { spawn } from "node:child_process";
import {
  type ChildEnd,
  type FromGuard,
  type LeaseTold,
  monotonicMs,
  type StartChild,
  type StopChild,
} from "./messages.ts";
import { isGroupGone, signalGroup } from "./process-group.ts";

/** How often a group is looked at whose first process has ended, or that was told to. */
const GROUP_POLL_MS = 25;
/** How often wall and monotonic time are compared. */
const SLEEP_CHECK_MS = 250;
/** How long children may take to end once nobody is left who could renew their lease. */
const ORPHAN_GRACE_MS = 2_000;

interface Child {
  readonly id: number;
  /** Of its first process, and so the name of its group; undefined if it could not be started. */
  readonly pid: number | undefined;
  killAtMs: number;
  /** Told to end because the lease was about to lapse; it counts as told also if the lease was extended after that. */
  warned: boolean;
  /** The lapse that it was told of. */
  warnedOfMs: number;
  killed: boolean;
  /** How the first process ended; others of its group may go on. */
  end: ChildEnd | undefined;
}

function newChild(id: number, pid: number | undefined): Child {
  const never = Number.POSITIVE_INFINITY;
  return { id, pid, killAtMs: never, warned: false, warnedOfMs: never, killed: false, end: undefined };
}

/**
 * The children of an executor, one process group each, and the deadlines that they are held to: the lease that all rest
 * on, and the stop limit of each. Nobody has to be alive for these to be kept but the process that this runs in.
 */
export class Children {
  readonly #children = new Map<number, Child>();
  readonly #report: (message: FromGuard) => void;
  #lease: (LeaseTold & { readonly sinceMs: number; readonly sinceWallMs: number }) | undefined;
  #orphanedKillAtMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(report: (message: FromGuard) => void) {
    this.#report = report;
  }

  get count(): number {
    return this.#children.size;
  }

  start({ child: id, command, environment }: StartChild): void {
    if (this.#hasLapsed(monotonicMs())) {
      const end: ChildEnd = { kind: "not-started", reason: "there is no lease to run under" };
      this.#report({ type: "gone", child: id, end, warned: false });
      return;
    }
    const started = spawn("/bin/sh", ["-c", command], {
      // Makes it the leader of a session, and so of a process group.
      detached: true,
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ...environment },
    });
    const child = newChild(id, started.pid);
    this.#children.set(id, child);
    started.once("error", (error) => {
      child.end ??= { kind: "not-started", reason: error.message };
      this.#look();
    });
    started.once("exit", (code, signal) => {
      child.end ??= signal === null ? { kind: "exited", code: code ?? 0 } : { kind: "killed", signal };
      this.#look();
    });
    if (started.pid !== undefined) this.#report({ type: "started", child: id, pid: started.pid });
    this.#look();
  }

  stop({ child: id, killAtMs }: StopChild): void {
    const child = this.#children.get(id);
    if (child === undefined) return;
    if (child.killAtMs === Number.POSITIVE_INFINITY) this.#signal(child, "SIGTERM");
    child.killAtMs = Math.min(child.killAtMs, killAtMs);
    this.#look();
  }

  lease(told: LeaseTold): void {
    this.#lease = { ...told, sinceMs: monotonicMs(), sinceWallMs: Date.now() };
    this.#look();
  }

  /** Nobody renews the lease any more: everything ends, in order if it is quick about it. */
  orphaned(): void {
    if (this.#orphanedKillAtMs !== Number.POSITIVE_INFINITY) return;
    this.#orphanedKillAtMs = monotonicMs() + ORPHAN_GRACE_MS;
    for (const child of this.#children.values()) this.#signal(child, "SIGTERM");
    this.#look();
  }

  /** Carries out what is due, and sees to it that the next is. */
  #look(): void {
    clearTimeout(this.#timer);
    const now = monotonicMs();
    const lapsed = this.#hasLapsed(now);
    const warned = this.#lease !== undefined && now >= this.#lease.warnAtMs;
    for (const child of this.#children.values()) {
      if (lapsed || now >= Math.min(child.killAtMs, this.#orphanedKillAtMs)) this.#kill(child);
      else if (warned) this.#warn(child, this.#lease?.lapseAtMs ?? now);
      this.#settle(child);
    }
    if (this.#children.size === 0) return;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, this.#nextDueMs(now) - now));
  }

  #nextDueMs(now: number): number {
    let next = now + SLEEP_CHECK_MS;
    for (const due of [this.#lease?.warnAtMs, this.#lease?.lapseAtMs, this.#orphanedKillAtMs]) {
      if (due !== undefined && due > now) next = Math.min(next, due);
    }
    for (const { end, killed, killAtMs } of this.#children.values()) {
      if (end !== undefined || killed) next = Math.min(next, now + GROUP_POLL_MS);
      else if (killAtMs > now) next = Math.min(next, killAtMs);
    }
    return next;
  }

  /** Without a lease nothing may run. A machine that slept has let leases run out that its monotonic clock knows nothing of. */
  #hasLapsed(now: number): boolean {
    const lease = this.#lease;
    if (lease === undefined || now >= lease.lapseAtMs) return true;
    return Date.now() - lease.sinceWallMs - (now - lease.sinceMs) > lease.marginMs;
  }

  #kill(child: Child): void {
    child.killed = true;
    this.#signal(child, "SIGKILL");
  }

  #warn(child: Child, lapseAtMs: number): void {
    const isEnding = child.killAtMs !== Number.POSITIVE_INFINITY;
    if (isEnding || child.warnedOfMs === lapseAtMs) return;
    child.warned = true;
    child.warnedOfMs = lapseAtMs;
    this.#signal(child, "SIGTERM");
  }

  #signal({ pid }: Child, signal: NodeJS.Signals): void {
    if (pid !== undefined) signalGroup(pid, signal);
  }

  #settle(child: Child): void {
    const { id, pid, end, warned } = child;
    if (end === undefined || (pid !== undefined && !isGroupGone(pid))) return;
    this.#children.delete(id);
    this.#report({ type: "gone", child: id, end, warned });
  }
}
