import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AdminClient } from "../../src/client/admin.ts";
import { connectExecutor, type Executor } from "../../src/client/executor.ts";
import { build, endAll, evenkeel, Running, type Scheduler, SHORT_LEASE, serve } from "../cli/processes.ts";
import { injecting, requireMachine, STRACE } from "./machine.ts";

/** The scheduler as a process, on a store in a file. */

const PATIENCE = { timeout: 20_000, interval: 20 };

let folder: string;
const executors: Executor[] = [];

beforeAll(build, 120_000);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-serve-"));
});
afterEach(async () => {
  for (const executor of executors.splice(0)) await executor.close();
  await endAll();
  rmSync(folder, { recursive: true, force: true });
});

const start = (...args: readonly string[]): Promise<Scheduler> =>
  serve(`--store=sqlite:${folder}/evenkeel.db`, ...args);

const statusOf = ({ url }: Scheduler) => new AdminClient({ url }).status();

const converged = (scheduler: Scheduler) =>
  expect.poll(() => statusOf(scheduler), PATIENCE).toMatchObject({ converged: true, state: "converged" });

function connect(url: string): Executor {
  const executor = connectExecutor({ url, executor: "a" }, { onGrant: () => {}, onRevoke: () => {} });
  executors.push(executor);
  return executor;
}

describe("serve on a store in a file", () => {
  test("goes on after a kill: same incarnation, same epochs, a higher term, and no revision is lost", async () => {
    const first = await start();
    const port = new URL(first.url).port;
    await new AdminClient({ url: first.url }).putTable("trips", { partitions: 8 });
    const executor = connect(first.url);
    await converged(first);
    const before = await statusOf(first);
    const epochs = () => Array.from({ length: 8 }, (_, partition) => executor.owns("trips", partition));
    const owned = epochs();
    expect(owned).not.toContain(undefined);
    first.process.signal("SIGKILL");
    await first.process.exit;
    const second = await start(`--listen=127.0.0.1:${port}`);
    await converged(second);
    const after = await statusOf(second);
    expect(after.incarnation).toBe(before.incarnation);
    expect(after.term).toBe(before.term + 1);
    expect(after.revision).toBeGreaterThanOrEqual(before.revision);
    expect(epochs()).toEqual(owned);
  });

  test("is refused while another has it, at once, by process and time", async () => {
    const first = await start();
    const second = await evenkeel(["serve", "--listen=127.0.0.1:0", `--store=sqlite:${folder}/evenkeel.db`]);
    expect(second.code).toBe(6);
    expect(second.complaints).toEqual([
      expect.stringMatching(
        new RegExp(`evenkeel.db is in use by process ${first.process.pid} since .*; stop that one`),
      ),
    ]);
    expect((await evenkeel(["store", "check", `${folder}/evenkeel.db`])).code).toBe(0);
  });

  test("stopped in order, it leaves one file and its lock", async () => {
    const { process } = await start();
    process.signal("SIGTERM");
    expect(await process.exit).toEqual({ code: 0, signal: null });
    expect(readdirSync(folder).sort()).toEqual(["evenkeel.db", "evenkeel.db-lock"]);
  });

  test("S2: restored from an old copy it is another incarnation, which grants anew when the leases are out", async () => {
    const first = await start(...SHORT_LEASE);
    await new AdminClient({ url: first.url }).putTable("trips", { partitions: 8 });
    connect(first.url);
    await converged(first);
    expect((await evenkeel(["store", "backup", `${folder}/evenkeel.db`, `${folder}/backup.db`])).code).toBe(0);
    const before = await statusOf(first);
    first.process.signal("SIGKILL");
    await first.process.exit;
    rmSync(`${folder}/evenkeel.db`);
    const made = await evenkeel(["store", "restore", `${folder}/backup.db`, `${folder}/evenkeel.db`]);
    expect(made.complaints).toEqual([]);
    const second = await start(`--listen=${new URL(first.url).host}`, ...SHORT_LEASE);
    await converged(second);
    const after = await statusOf(second);
    expect(after.incarnation).not.toBe(before.incarnation);
    expect(after.revision).toBeGreaterThan(before.revision);
    expect(after.tables).toMatchObject([{ table: "trips", owned: 8 }]);
  });

  test("while the disk takes seconds for a write, leases go on and nobody is declared lost", async (context) => {
    requireMachine(context, STRACE);
    const options = ["serve", "--listen=127.0.0.1:0", `--store=sqlite:${folder}/evenkeel.db`, ...SHORT_LEASE];
    const slow = new Running(options, {}, undefined, injecting("fsync,fdatasync", "delay_enter=4000000:when=20+"));
    const { url } = JSON.parse(await slow.line('"server.listening"', 20_000)) as { readonly url: string };
    const admin = new AdminClient({ url, timeoutMs: 20_000 });
    await admin.putTable("trips", { partitions: 1 });
    const executor = connect(url);
    await expect.poll(() => executor.owns("trips", 0), PATIENCE).toBeDefined();
    // Each is a change; from one of them on the disk is slow, for more than twice the lease.
    for (let n = 0, tookMs = 0; tookMs < 3_000; n++) {
      const begun = performance.now();
      const watching = setInterval(() => expect.soft(executor.owns("trips", 0), `change ${n}`).toBeDefined(), 20);
      await admin.putTable(`t${n}`, { partitions: 1 }).finally(() => clearInterval(watching));
      tookMs = performance.now() - begun;
      expect(n).toBeLessThan(30);
    }
    expect(slow.out.filter((line) => /"executor\.(suspected|lost)"|"store\.failed"/.test(line))).toEqual([]);
    expect((await admin.status()).executors).toMatchObject([{ executor: "a", state: "live", suspect: false }]);
  });

  test("ends with a message when an fsync fails", async (context) => {
    requireMachine(context, STRACE);
    const options = ["serve", "--listen=127.0.0.1:0", `--store=sqlite:${folder}/evenkeel.db`];
    const failing = new Running(options, {}, undefined, injecting("fsync,fdatasync", "error=EIO:when=16+"));
    const { url } = JSON.parse(await failing.line('"server.listening"', 20_000)) as { readonly url: string };
    const admin = new AdminClient({ url });
    // A start takes fewer than the calls that are let through; each table is a change, so one of them meets the failure.
    for (let n = 0; n < 20; n++) await admin.putTable(`t${n}`, { partitions: 1 }).catch(() => undefined);
    expect(await failing.exit).toEqual({ code: 1, signal: null });
    expect(failing.complaints.join("\n")).toContain("the disk did not take what was written to");
    expect(failing.complaints.join("\n")).toContain("start again");
  });
});

test("dev leaves nothing of its store behind", async () => {
  const surroundings = { TMPDIR: folder };
  const dev = new Running(["dev", "--listen=127.0.0.1:0", "--for=3s"], surroundings);
  await dev.line('"server.listening"');
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/^evenkeel-dev-/)]);
  expect(await dev.exit).toEqual({ code: 0, signal: null });
  expect(readdirSync(folder)).toEqual([]);
});
