import { readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { build, endAll, evenkeel, Running, serve } from "./processes.ts";

beforeAll(build, 120_000);
afterEach(endAll);

/** Processes that the given one has started and that still run, by what the system says. */
function childrenOf(parent: number): readonly number[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(ppid) === parent ? [Number(entry)] : [];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

async function withFleet(
  ...args: readonly string[]
): Promise<{ readonly dev: Running; readonly executors: readonly number[] }> {
  const dev = new Running(["dev", "--listen=127.0.0.1:0", ...args]);
  await dev.line('"push.sent"');
  const executors = childrenOf(dev.pid);
  expect(executors.length).toBeGreaterThanOrEqual(3);
  return { dev, executors };
}

async function allGone(pids: readonly number[]): Promise<void> {
  await expect.poll(() => pids.filter((pid) => !isGone(pid)), { timeout: 5_000, interval: 10 }).toEqual([]);
}

describe("dev", () => {
  test("shows pushes of a formation, a join and a leave, and ends when its time is up", async () => {
    const { dev, executors } = await withFleet("--for=6s", "--every=1500ms");
    const [url] = dev.complaints.join("\n").match(/http:\S+/) ?? [];
    expect((await evenkeel(["status", "--url", url ?? ""])).out).toMatch(/^exec-\d +live/m);
    expect(await dev.exit).toEqual({ code: 0, signal: null });
    const pushes = dev.out.filter((line) => line.includes('"push.sent"')).join("\n");
    for (const cause of ["formation", "join", "leave"]) expect(pushes).toContain(`"kind":"${cause}"`);
    expect(dev.complaints).toContain("dev: exec-4 joins");
    expect(dev.complaints).toContain("dev: exec-1 leaves");
    await allGone(executors);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("ends everything on %s, with 0", async (signal) => {
    const { dev, executors } = await withFleet();
    dev.signal(signal);
    expect(await dev.exit).toEqual({ code: 0, signal: null });
    await allGone(executors);
  });

  test("leaves no executor behind when it is killed", async () => {
    const { dev, executors } = await withFleet();
    dev.signal("SIGKILL");
    await allGone(executors);
  });

  test("refuses an address that is in use, if it was asked for", async () => {
    const { url } = await serve();
    const { host } = new URL(url);
    expect(await evenkeel(["dev", "--listen", host, "--for=1s"])).toMatchObject({
      code: 1,
      complaints: [expect.stringContaining(`${host} is in use`)],
    });
    expect(await evenkeel(["dev", "--listen", "nowhere"])).toMatchObject({ code: 2 });
  });
});
