import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { sleep } from "../time.ts";

/** How long an executor may take to leave before it is taken for stuck and ended. */
const LEAVE_LIMIT_MS = 10_000;

/** Executors as child processes, which come and go. */
export class DevFleet {
  readonly #url: string;
  readonly #note: (line: string) => void;
  /** In the order in which they joined. */
  readonly #members = new Map<string, ChildProcess>();

  constructor(url: string, note: (line: string) => void) {
    this.#url = url;
    this.#note = note;
  }

  get ids(): readonly string[] {
    return [...this.#members.keys()];
  }

  join(id: string): void {
    // Built, it stands beside this file.
    const module = fileURLToPath(new URL("./executor-process.js", import.meta.url));
    const child = fork(module, [this.#url, id], { stdio: ["ignore", "inherit", "inherit", "ipc"], execArgv: [] });
    this.#members.set(id, child);
    child.once("exit", (code, signal) => {
      if (this.#members.get(id) !== child) return;
      this.#members.delete(id);
      this.#note(`${id} ended by itself (${signal ?? `exit code ${code}`})`);
    });
  }

  /** Asks the executor to leave, and resolves when it is gone. */
  async leave(id: string): Promise<void> {
    const child = this.#members.get(id);
    if (child === undefined) return;
    this.#members.delete(id);
    child.send("leave", () => {});
    const waiting = new AbortController();
    const gone = exitOf(child);
    await Promise.race([gone, sleep(LEAVE_LIMIT_MS, waiting.signal)]);
    waiting.abort();
    child.kill("SIGKILL");
    await gone;
  }

  /** Ends all at once. Resolves when they are gone. */
  async end(): Promise<void> {
    const children = [...this.#members.values()];
    this.#members.clear();
    await Promise.all(
      children.map((child) => {
        const gone = exitOf(child);
        child.kill("SIGKILL");
        return gone;
      }),
    );
  }
}

function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", () => resolve()));
}
