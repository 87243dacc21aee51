import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { isGroupGone, signalGroup } from "../../src/cli/exec/process-group.ts";
import { build, endAll, evenkeel, Running, type Scheduler, SHORT_LEASE, serve } from "./processes.ts";

const PARTITIONS = 2;

let folder: string;

beforeAll(build, 120_000);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-exec-"));
});
afterEach(async () => {
  const groups = groupsStarted();
  await endAll();
  try {
    // The guards end their children, whatever became of the test.
    await allGone(groups);
  } finally {
    for (const group of groups) signalGroup(group, "SIGKILL");
    rmSync(folder, { recursive: true });
  }
});

/** A command that says that it runs, with its pid, and then runs `what`. Its pid is the name of its group. */
function command(what: string): string {
  return `echo $$ > ${folder}/up-$EVENKEEL_PARTITION-$EVENKEEL_EPOCH-$$; ${what}`;
}

const ENDURES = "trap '' TERM; while :; do sleep 0.05; done";

async function withChildren(what: string, ...args: readonly string[]): Promise<[Running, Scheduler]> {
  const scheduler = await serve(...args);
  await evenkeel(["tables", "create", "trips", `--partitions=${PARTITIONS}`, "--url", scheduler.url]);
  return [new Running(["executor", "--id=a", "--url", scheduler.url, "--exec", command(what)]), scheduler];
}

/** Groups of all the children that have started, whether they still run or not. */
function groupsStarted(): readonly number[] {
  const files = readdirSync(folder).filter((name) => name.startsWith("up-"));
  return files.map((name) => Number(readFileSync(join(folder, name), "utf8"))).filter((group) => group > 0);
}

function allStarted(count = PARTITIONS): Promise<readonly number[]> {
  return vi.waitFor(
    () => {
      const groups = groupsStarted();
      expect(groups.length).toBeGreaterThanOrEqual(count);
      return groups;
    },
    { timeout: 10_000, interval: 10 },
  );
}

async function allGone(groups: readonly number[], withinMs = 10_000): Promise<void> {
  await expect
    .poll(() => groups.filter((group) => !isGroupGone(group)), { timeout: withinMs, interval: 10 })
    .toEqual([]);
}

describe("executor --exec", () => {
  test("runs one child per partition, told which, and counts it as ready when it has started", async () => {
    const scheduler = await serve();
    await evenkeel(["tables", "create", "events", "--keys=eu,us", "--url", scheduler.url]);
    const say = 'echo "$EVENKEEL_TABLE $EVENKEEL_PARTITION $EVENKEEL_KEY $EVENKEEL_EPOCH"; sleep 1000';
    const a = new Running(["executor", "--id=a", "--url", scheduler.url, "--exec", command(say)]);
    expect(await a.line("events 0")).toMatch(/^events 0 eu \d+$/);
    expect(await a.line("events 1")).toMatch(/^events 1 us \d+$/);
    const waited = await evenkeel(["wait", "--for=converged", "--timeout=10s", "--url", scheduler.url]);
    expect(waited.code).toBe(0);
  });

  test("on SIGTERM it leaves: children are asked to end, and it ends with 0 when all is released", async () => {
    const [a, scheduler] = await withChildren(
      `trap 'touch ${folder}/asked; exit 0' TERM; while :; do sleep 0.05; done`,
    );
    const groups = await allStarted();
    a.signal("SIGTERM");
    expect(await a.exit).toEqual({ code: 0, signal: null });
    await allGone(groups, 0);
    expect(readdirSync(folder)).toContain("asked");
    const { out } = await evenkeel(["status", "--url", scheduler.url]);
    expect(out).toContain("0-1 reserved for a");
  });

  test("a child that does not end is killed at its table's stop, with all that it started", async () => {
    const scheduler = await serve();
    await evenkeel(["tables", "create", "trips", "--partitions=2", "--stop=1s", "--url", scheduler.url]);
    const what = `(${ENDURES}) & ${ENDURES}`;
    const a = new Running(["executor", "--id=a", "--url", scheduler.url, "--exec", command(what)]);
    const groups = await allStarted();
    const before = performance.now();
    a.signal("SIGTERM");
    expect(await a.exit).toEqual({ code: 0, signal: null });
    expect(performance.now() - before).toBeGreaterThanOrEqual(900);
    await allGone(groups, 0);
  });

  test("a child that fails makes its partition fail, and only that", async () => {
    const [a, scheduler] = await withChildren(`[ $EVENKEEL_PARTITION = 0 ] && exit 3; sleep 1000`);
    await a.complaint("trips/0: the command exited with 3");
    const { out } = await evenkeel(["status", "-o", "json", "--url", scheduler.url]);
    expect(JSON.parse(out)).toMatchObject({ executors: [{ executor: "a", owned: 1, ready: 1 }] });
  });

  test("a child that ends with 0 had done its work: the partition stays", async () => {
    const [, scheduler] = await withChildren("exit 0");
    await allStarted();
    const waited = await evenkeel(["wait", "--for=converged", "--timeout=10s", "--url", scheduler.url]);
    expect(waited.code).toBe(0);
  });
});

describe("no child outlives its lease", () => {
  test("when the executor is killed", async () => {
    const [a] = await withChildren(ENDURES);
    const groups = await allStarted();
    a.signal("SIGKILL");
    await allGone(groups, 5_000);
  });

  test("when the executor is stopped: the guard counts on without it", async () => {
    const [a] = await withChildren(ENDURES, ...SHORT_LEASE);
    const groups = await allStarted();
    a.signal("SIGSTOP");
    await allGone(groups, 5_000);
    // It wakes into a lapsed lease, says hello afresh, and serves again.
    a.signal("SIGCONT");
    await allStarted(2 * PARTITIONS);
  });

  test("when the scheduler is gone: asked to end before the lapse, killed at it", async () => {
    const what = `trap 'touch ${folder}/warned-$$' TERM; while :; do sleep 0.05; done`;
    const [, scheduler] = await withChildren(what, ...SHORT_LEASE);
    const groups = await allStarted();
    scheduler.process.signal("SIGSTOP");
    await vi.waitFor(
      () => expect(readdirSync(folder).filter((name) => name.startsWith("warned"))).toHaveLength(2),
      5_000,
    );
    expect(groups.filter(isGroupGone)).toEqual([]);
    await allGone(groups, 5_000);
  });

  test("when the guard is killed: the executor ends its children, and itself with 1", async () => {
    const [a, scheduler] = await withChildren(ENDURES);
    const groups = await allStarted();
    // Only then does the executor know them: a child that was started while the guard dies is nobody's.
    expect((await evenkeel(["wait", "--timeout=20s", "--url", scheduler.url])).code).toBe(0);
    const guard = readFileSync(`/proc/${groups[0]}/stat`, "latin1").split(") ")[1]?.split(" ")[1];
    process.kill(Number(guard), "SIGKILL");
    await allGone(groups, 5_000);
    expect(await a.exit).toMatchObject({ code: 1 });
    expect(a.complaints.at(-1)).toContain("the guard of the children was killed");
  });
});

test("children that end on the warning are started anew when the lease goes on", async () => {
  const [, scheduler] = await withChildren("exec sleep 1000", ...SHORT_LEASE, "--lease-duration=4s");
  const groups = await allStarted();
  scheduler.process.signal("SIGSTOP");
  await allGone(groups, 5_000);
  scheduler.process.signal("SIGCONT");
  await allStarted(2 * PARTITIONS);
  const waited = await evenkeel(["wait", "--for=converged", "--timeout=10s", "--url", scheduler.url]);
  expect(waited.code).toBe(0);
});
