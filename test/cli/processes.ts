import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";

/** Real processes of the command line, built as a user's. */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const BUILD_LIMIT_MS = 120_000;

/** Builds if need be. To be called once before the first process is started. */
export function build(): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { cwd: ROOT, timeout: BUILD_LIMIT_MS };
    execFile(process.execPath, ["scripts/build.mjs"], options, (error, _out, complaint) => {
      if (error === null) resolve();
      else reject(new Error(`the build failed: ${complaint}`));
    });
  });
}

/**
 * What started processes are told of their surroundings: nothing that the tests' own happens to have. A scheduler keeps its
 * store in memory unless a test says otherwise, so that none leaves a file in the checkout.
 */
function environment(extra: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("EVENKEEL_"));
  return { ...Object.fromEntries(own), EVENKEEL_STORE: "memory:", ...extra };
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<Running>();

export class Running {
  readonly process: ChildProcessWithoutNullStreams;
  readonly out: string[] = [];
  readonly complaints: string[] = [];
  readonly exit: Promise<Exit>;

  /** Runs the command line, or another script that uses what was built, if need be by another command. */
  constructor(
    args: readonly string[],
    extra: Readonly<Record<string, string>> = {},
    script = MAIN,
    by: readonly string[] = [],
  ) {
    const [command = process.execPath, ...rest] = [...by, process.execPath, script, ...args];
    this.process = spawn(command, rest, { cwd: ROOT, env: environment(extra) });
    createInterface({ input: this.process.stdout }).on("line", (line) => this.out.push(line));
    createInterface({ input: this.process.stderr }).on("line", (line) => this.complaints.push(line));
    // The program may end before it has read all that it is told.
    this.process.stdin.on("error", () => {});
    this.exit = new Promise((resolve) => {
      this.process.once("close", (code, signal) => {
        running.delete(this);
        resolve({ code, signal });
      });
    });
    running.add(this);
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new Error("the process was not started");
    return pid;
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  say(line: string): void {
    this.process.stdin.write(`${line}\n`);
  }

  /** The first line of standard output that holds the text. */
  line(text: string, withinMs = 10_000): Promise<string> {
    return this.#find(this.out, text, withinMs);
  }

  /** The first line of standard error that holds the text. */
  complaint(text: string, withinMs = 10_000): Promise<string> {
    return this.#find(this.complaints, text, withinMs);
  }

  #find(lines: readonly string[], text: string, withinMs: number): Promise<string> {
    const look = (): string => {
      const found = lines.find((line) => line.includes(text));
      if (found === undefined) {
        throw new Error(`no line has ${text}; there are:\n${[...this.out, ...this.complaints].join("\n")}`);
      }
      return found;
    };
    return vi.waitFor(look, { timeout: withinMs, interval: 10 });
  }
}

/** Ends what a test left running, however it ended. */
export async function endAll(): Promise<void> {
  const left = [...running];
  for (const each of left) {
    each.signal("SIGCONT");
    each.signal("SIGKILL");
  }
  await Promise.all(left.map((each) => each.exit));
}

export interface Ended extends Exit {
  readonly out: string;
  readonly complaints: readonly string[];
}

/** Runs a command to its end. */
export async function evenkeel(args: readonly string[], extra?: Readonly<Record<string, string>>): Promise<Ended> {
  const process = new Running(args, extra);
  const exit = await process.exit;
  return { ...exit, out: process.out.join("\n"), complaints: process.complaints };
}

export interface Scheduler {
  readonly process: Running;
  readonly url: string;
}

/** A scheduler on a free port, with short windows; `args` come after, and win. */
export async function serve(...args: readonly string[]): Promise<Scheduler> {
  const quick = ["--formation-quiet=100ms", "--formation-max=1s", "--join-quiet=50ms", "--join-max=500ms"];
  const started = new Running(["serve", "--listen=127.0.0.1:0", ...quick, ...args]);
  const listening: unknown = JSON.parse(await started.line('"server.listening"'));
  return { process: started, url: (listening as { readonly url: string }).url };
}

/** A lease whose end a test can wait for. */
export const SHORT_LEASE = [
  "--lease-duration=1500ms",
  "--lease-renew=300ms",
  "--lease-client-margin=500ms",
  "--lease-server-margin=100ms",
  "--loss-wait=1s",
] as const;
