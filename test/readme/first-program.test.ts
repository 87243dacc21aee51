import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
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

describe("the README's first program", () => {
  test("is at most 20 lines", async () => {
    const lines = (await firstProgram()).trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(20);
  });

  test("is pushed a share and gives it back on SIGTERM", async () => {
    const server = await startServer({
      settings: { ...DEFAULT_SETTINGS, formation: { quietMs: 100, maxMs: 1_000 } },
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
    const child = spawn(process.execPath, [join(folder, "first.mjs"), "worker-1"], {
      env: { ...process.env, EVENKEEL_URL: server.wsUrl },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const lines: string[] = [];
      const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
      const served = new Promise<void>((resolve) => {
        child.stdout.setEncoding("utf8").on("data", (text: string) => {
          lines.push(...text.trimEnd().split("\n"));
          if (lines.filter((line) => line.startsWith("serving orders/")).length === 3) resolve();
        });
      });
      await served;
      child.kill("SIGTERM");
      expect(await exit).toBe(0);
      expect(lines.filter((line) => line.startsWith("gave back orders/"))).toHaveLength(3);
    } finally {
      child.kill("SIGKILL");
      await rm(folder, { recursive: true, force: true });
      await server.stop();
    }
  });
});
