import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, test } from "vitest";
import { tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS } from "../../src/model/settings.ts";
import { startServer } from "../../src/server.ts";
import { build } from "../cli/processes.ts";

const root = new URL("../..", import.meta.url).pathname;

beforeAll(build, 120_000);

/** The program of the README, as a reader would copy it. */
async function firstProgram(): Promise<string> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const program = /```js\n([\s\S]*?)```/.exec(readme)?.[1];
  if (program === undefined) throw new Error("the README has no program");
  return program;
}

/** A scheduler with a table of three partitions, and the program in a folder of this checkout, as the README says to run it. */
class Trial {
  readonly #server: Awaited<ReturnType<typeof startServer>>;
  readonly #folder: string;
  readonly #runs: Run[] = [];

  private constructor(server: Awaited<ReturnType<typeof startServer>>, folder: string) {
    this.#server = server;
    this.#folder = folder;
  }

  static async begin(): Promise<Trial> {
    const server = await startServer({
      settings: {
        ...DEFAULT_SETTINGS,
        formation: { quietMs: 100, maxMs: 1_000 },
        // Who takes an id over is given its partitions when the lease of the process before is out.
        lease: { ...DEFAULT_SETTINGS.lease, durationMs: 3_000, renewMs: 500 },
      },
      listen: { host: "127.0.0.1", port: 0 },
      store: { kind: "memory" },
      log: { level: "error", pretty: "never" },
      tables: [
        { table: tableName("orders"), count: 3, handoff: "exclusive", stopMs: 30_000, balance: "count", selector: {} },
      ],
    });
    // Inside the package, so that `evenkeel/executor` is this checkout.
    const folder = await mkdtemp(join(root, "dist", "readme-"));
    await writeFile(join(folder, "first.mjs"), await firstProgram());
    return new Trial(server, folder);
  }

  /** Runs the program and waits until it serves all there is. */
  async run(id: string): Promise<Run> {
    const run = new Run(join(this.#folder, "first.mjs"), id, this.#server.wsUrl);
    this.#runs.push(run);
    await run.said("serving orders/", 3);
    return run;
  }

  async end(): Promise<void> {
    for (const run of this.#runs) run.kill("SIGKILL");
    await rm(this.#folder, { recursive: true, force: true });
    await this.#server.stop();
  }
}

/** One process of the program. */
class Run {
  readonly lines: string[] = [];
  readonly exit: Promise<number | null>;
  readonly #child: ChildProcess;
  #heard: () => void = () => {};

  constructor(file: string, id: string, url: string) {
    const child = spawn(process.execPath, [file, id], {
      env: { ...process.env, EVENKEEL_URL: url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    this.exit = new Promise((resolve) => child.once("close", resolve));
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.lines.push(line.trimEnd());
      this.#heard();
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  count(start: string): number {
    return this.lines.filter((line) => line.startsWith(start)).length;
  }

  /** Waits until it has said as many lines that begin so. */
  said(start: string, times: number): Promise<void> {
    return new Promise((resolve) => {
      this.#heard = () => {
        if (this.count(start) >= times) resolve();
      };
      this.#heard();
    });
  }
}

describe("the README's first program", () => {
  test("is at most 20 lines", async () => {
    const lines = (await firstProgram()).trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(20);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "is pushed a share, gives it back on %s and says how it ended",
    async (signal) => {
      const trial = await Trial.begin();
      try {
        const run = await trial.run("worker-1");
        run.kill(signal);
        expect(await run.exit).toBe(0);
        expect(run.count("gave back orders/")).toBe(3);
        expect(run.lines.at(-1)).toBe("over: left");
      } finally {
        await trial.end();
      }
    },
  );

  test("leaves everything to others on Ctrl-C, without waiting for its own next process", async () => {
    const trial = await Trial.begin();
    try {
      const first = await trial.run("worker-1");
      first.kill("SIGINT");
      await first.exit;
      const second = await trial.run("worker-2");
      expect(second.count("serving orders/")).toBe(3);
    } finally {
      await trial.end();
    }
  });

  test("ends and says so when another process takes its id over", async () => {
    const trial = await Trial.begin();
    try {
      const first = await trial.run("worker-1");
      await trial.run("worker-1");
      expect(await first.exit).toBe(0);
      expect(first.lines.at(-1)).toMatch(/^over: replaced another process with this executor id has taken over/);
    } finally {
      await trial.end();
    }
  });
});
