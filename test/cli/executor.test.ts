import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { build, endAll, evenkeel, Running, type Scheduler, SHORT_LEASE, serve } from "./processes.ts";

beforeAll(build, 120_000);
afterEach(endAll);

interface Line {
  readonly type: string;
  readonly table: string;
  readonly partitions: string;
  readonly epoch: number;
  readonly stopMs?: number;
  readonly keys?: readonly { readonly partition: number; readonly key: string }[];
}

/** An executor whose program is this test. */
function executor(scheduler: Scheduler, id: string, ...args: readonly string[]): Running {
  return new Running(["executor", "--id", id, "--url", scheduler.url, ...args]);
}

/** What was told in one line, or in more where this machine was too slow for one: all of `count` partitions. */
async function toldAll(program: Running, type: string, count: number): Promise<Line> {
  const lines = () => program.out.map((line) => JSON.parse(line) as Line).filter((line) => line.type === type);
  const partitions = () => PartitionSet.of(lines().flatMap((line) => [...PartitionSet.parse(line.partitions)]));
  await expect.poll(() => partitions().size, { timeout: 10_000, interval: 10 }).toBe(count);
  const [first] = lines();
  if (first === undefined) throw new Error(`nothing was told of ${type}`);
  const keys = lines().flatMap((line) => line.keys ?? []);
  return { ...first, partitions: partitions().toString(), ...(keys.length === 0 ? {} : { keys }) };
}

async function told(program: Running, type: string): Promise<Line> {
  return JSON.parse(await program.line(`"type":"${type}"`)) as Line;
}

/** Says of a line that was told what the answer is to it. */
function answer(program: Running, type: "ready" | "released" | "failed", { table, partitions, epoch }: Line): void {
  program.say(JSON.stringify({ type, table, partitions, epoch }));
}

async function withTable(size: string, ...args: readonly string[]): Promise<Scheduler> {
  const scheduler = await serve(...args);
  const created = await evenkeel(["tables", "create", "trips", size, "--url", scheduler.url]);
  expect(created.code).toBe(0);
  return scheduler;
}

function converged({ url }: Scheduler): Promise<{ readonly code: number | null }> {
  return evenkeel(["wait", "--for", "converged", "--timeout", "10s", "--url", url]);
}

describe("executor", () => {
  test("a program is told what it owns, answers, hands over to another, and leaves", async () => {
    const scheduler = await withTable("--partitions=8");
    const a = executor(scheduler, "a");
    const all = await toldAll(a, "grant", 8);
    expect(all).toEqual({ type: "grant", table: "trips", partitions: "0-7", epoch: expect.any(Number) });
    answer(a, "ready", all);
    expect(await converged(scheduler)).toMatchObject({ code: 0 });

    const b = executor(scheduler, "b");
    const back = await toldAll(a, "revoke", 4);
    expect(back).toMatchObject({ table: "trips", epoch: all.epoch });
    expect(back.stopMs).toBeGreaterThan(25_000);
    expect(b.out).toEqual([]);
    answer(a, "released", back);
    const taken = await toldAll(b, "grant", 4);
    expect(taken.partitions).toBe(back.partitions);
    expect(taken.epoch).toBeGreaterThan(all.epoch);
    answer(b, "ready", taken);
    expect(await converged(scheduler)).toMatchObject({ code: 0 });

    b.signal("SIGTERM");
    answer(b, "released", await told(b, "revoke"));
    expect(await b.exit).toEqual({ code: 0, signal: null });
    // Its place is kept for its next process.
    const { out } = await evenkeel(["status", "--url", scheduler.url]);
    expect(out).toContain(`${taken.partitions} reserved for b`);
  });

  test("SIGINT leaves for good: what it owned goes to the others at once, and nothing is kept for it", async () => {
    const scheduler = await withTable("--partitions=4", "--formation-expect=2", "--formation-quiet=5s");
    const [a, b] = [executor(scheduler, "a", "--auto"), executor(scheduler, "b", "--auto")];
    await Promise.all([told(a, "grant"), told(b, "grant")]);
    expect(await converged(scheduler)).toMatchObject({ code: 0 });
    b.signal("SIGINT");
    expect(await b.exit).toEqual({ code: 0, signal: null });
    expect(await converged(scheduler)).toMatchObject({ code: 0 });
    const { out } = await evenkeel(["status", "-o", "json", "--url", scheduler.url]);
    expect(JSON.parse(out)).toMatchObject({ tables: [{ owned: 4, unowned: [] }] });
    // The last one has nobody to give anything to.
    a.signal("SIGINT");
    expect(await a.exit).toEqual({ code: 0, signal: null });
  });

  test("SIGINT without a scheduler ends at once, and with the lease if there was one", async () => {
    const alone = new Running(["executor", "--id=a", "--url=http://127.0.0.1:1"]);
    await alone.complaint("connecting to");
    alone.signal("SIGINT");
    expect(await alone.exit).toEqual({ code: 0, signal: null });

    const scheduler = await withTable("--partitions=2", ...SHORT_LEASE);
    const a = executor(scheduler, "a");
    answer(a, "ready", await told(a, "grant"));
    scheduler.process.signal("SIGKILL");
    await scheduler.process.exit;
    a.signal("SIGINT");
    expect(await a.exit).toEqual({ code: 0, signal: null });
    expect(JSON.parse(a.out.at(-1) ?? "")).toMatchObject({ type: "stop" });
  });

  test("--help says how each signal and the end of its input end it", async () => {
    const { out } = await evenkeel(["executor", "--help"]);
    for (const how of ["SIGTERM", "SIGINT", "end of its input"]) expect(out).toContain(how);
  });

  test("a grant of a table with keys tells them", async () => {
    const scheduler = await withTable("--keys=eu,us");
    const a = executor(scheduler, "a");
    expect(await toldAll(a, "grant", 2)).toMatchObject({
      partitions: "0-1",
      keys: [
        { partition: 0, key: "eu" },
        { partition: 1, key: "us" },
      ],
    });
  });

  test("a line that cannot be used is told to people, and the next one is taken", async () => {
    const scheduler = await withTable("--partitions=2");
    const a = executor(scheduler, "a");
    const grant = await toldAll(a, "grant", 2);
    a.say("{nonsense");
    await a.complaint("line 1 of standard input is ignored: it is not JSON");
    a.say(JSON.stringify({ type: "reddy", table: "trips", partitions: "0", epoch: grant.epoch }));
    await a.complaint("line 2 of standard input is ignored: type must be one of ready, released, failed");
    a.say(JSON.stringify({ type: "ready", table: "trips", partitions: "1,0", epoch: grant.epoch }));
    await a.complaint("line 3 of standard input is ignored: not a partition set");
    a.say(JSON.stringify({ type: "ready", table: "trips", partitions: "0", epoch: 1 }));
    await a.complaint("line 4 of standard input is ignored: 1 of trips 0 under epoch 1 is not held");
    answer(a, "released", grant);
    await a.complaint("line 5 of standard input is ignored: 2 of trips 0-1 under epoch");
    answer(a, "ready", grant);
    expect(await converged(scheduler)).toMatchObject({ code: 0 });
  });

  test("a partition that fails is placed elsewhere", async () => {
    const scheduler = await withTable(
      "--partitions=2",
      "--formation-expect=2",
      "--formation-quiet=5s",
      "--formation-max=5s",
    );
    const [a, b] = [executor(scheduler, "a"), executor(scheduler, "b")];
    answer(b, "ready", await told(b, "grant"));
    answer(a, "failed", await told(a, "grant"));
    await b.line(`"partitions":"${(await told(a, "grant")).partitions}"`);
  });

  test("a program that ends takes its executor with it: nobody else can say what is released", async () => {
    const scheduler = await withTable("--partitions=2");
    const a = executor(scheduler, "a");
    answer(a, "ready", await told(a, "grant"));
    a.process.stdin.end();
    await a.complaint("standard input is closed");
    await told(a, "revoke");
  });

  test("--auto answers by itself", async () => {
    const scheduler = await withTable("--partitions=2");
    const a = executor(scheduler, "a", "--auto");
    a.process.stdin.end();
    expect(await converged(scheduler)).toMatchObject({ code: 0 });
    a.signal("SIGTERM");
    expect(await a.exit).toMatchObject({ code: 0 });
    const types = a.out.map((line) => (JSON.parse(line) as Line).type);
    expect(types.filter((type, at) => type !== types[at - 1])).toEqual(["grant", "revoke"]);
  });

  test("another process with its id replaces it: it stops for good and says why", async () => {
    const scheduler = await withTable("--partitions=2");
    const first = executor(scheduler, "a");
    answer(first, "ready", await told(first, "grant"));
    executor(scheduler, "a");
    expect(await told(first, "stop")).toEqual({ type: "stop", reason: "replaced" });
    expect(await first.exit).toMatchObject({ code: 6 });
    expect(first.complaints.join("\n")).toContain("each process needs an --id of its own");
  });

  test("a lease that runs out stops everything, in one line, without waiting for the scheduler", async () => {
    const scheduler = await withTable("--partitions=4", ...SHORT_LEASE);
    const a = executor(scheduler, "a");
    answer(a, "ready", await toldAll(a, "grant", 4));
    expect(await converged(scheduler)).toMatchObject({ code: 0 });
    scheduler.process.signal("SIGSTOP");
    expect(await told(a, "stop")).toEqual({ type: "stop", reason: "lapsed" });
    scheduler.process.signal("SIGCONT");
    const types = () => a.out.map((line) => (JSON.parse(line) as Line).type);
    const changes = () => types().filter((type, at) => type !== types()[at - 1]);
    await expect.poll(changes, { timeout: 10_000 }).toEqual(["grant", "stop", "grant"]);
  });

  test("leaving without a scheduler ends before the lease does, with 0", async () => {
    const scheduler = await withTable("--partitions=2", ...SHORT_LEASE);
    const a = executor(scheduler, "a");
    answer(a, "ready", await told(a, "grant"));
    scheduler.process.signal("SIGKILL");
    await scheduler.process.exit;
    await a.complaint("connecting to");
    a.signal("SIGTERM");
    expect(await a.exit).toEqual({ code: 0, signal: null });
    expect(JSON.parse(a.out.at(-1) ?? "")).toMatchObject({ type: "stop" });
  });

  test("a wrong id, address or instance ends with 2", async () => {
    for (const args of [
      ["--id", "a b"],
      ["--id", "a", "--url", "nowhere"],
      ["--id", "a", "--instance", ""],
    ]) {
      expect(await evenkeel(["executor", ...args])).toMatchObject({ code: 2, out: "" });
    }
    expect(await evenkeel(["executor"])).toMatchObject({ code: 2 });
  });
});
