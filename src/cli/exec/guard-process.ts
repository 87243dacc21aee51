import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ChildGone, FromGuard, ToGuard } from "./messages.ts";
import { signalGroup } from "./process-group.ts";

export interface GuardOwner {
  started(child: number): void;
  gone(message: ChildGone): void;
  /** The guard itself ended, against all intent. What it guarded has been killed. */
  lost(): void;
}

/** The guard as its parent sees it. */
export interface Guard {
  send(message: ToGuard): void;
  /** Ends all children, in order if they are quick about it, and then the guard. Resolves when both are gone. */
  close(): Promise<void>;
}

/** The guard as a process. */
export class GuardProcess implements Guard {
  readonly #process: ChildProcess;
  readonly #owner: GuardOwner;
  /** Pids of the children that are not gone, for the case that the guard is lost. */
  readonly #pids = new Map<number, number>();
  #closed = false;

  constructor(owner: GuardOwner) {
    this.#owner = owner;
    // Built, it stands beside this file. In a session of its own, so that a signal to a terminal's foreground does not reach it.
    this.#process = fork(fileURLToPath(new URL("./guard.js", import.meta.url)), {
      detached: true,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [],
    });
    this.#process.on("message", (message) => this.#hear(message as FromGuard));
    this.#process.on("error", () => this.#lose());
    this.#process.on("exit", () => this.#lose());
  }

  send(message: ToGuard): void {
    // A guard that is lost says so by its exit.
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.connected) this.#process.disconnect();
    await ended;
  }

  #hear(message: FromGuard): void {
    switch (message.type) {
      case "started":
        this.#pids.set(message.child, message.pid);
        return this.#owner.started(message.child);
      case "gone":
        this.#pids.delete(message.child);
        return this.#owner.gone(message);
      default:
        return message satisfies never;
    }
  }

  #lose(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const pid of this.#pids.values()) signalGroup(pid, "SIGKILL");
    this.#owner.lost();
  }
}
