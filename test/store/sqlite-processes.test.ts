import { mkdirSync, renameSync, rmSync } from "node:fs";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { emptyChange } from "../../src/model/change.ts";
import { checkStore } from "../../src/store/sqlite/check.ts";
import { startInProcess } from "../../src/store/sqlite/in-process.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { StoreThread } from "../../src/store/sqlite/thread.ts";
import { build, endAll } from "../cli/processes.ts";
import { injecting, requireMachine, SMALL_DISK, STRACE, smallDisk } from "./machine.ts";
import { Folder, openDatabase } from "./sqlite-fixture.ts";
import { type Line, Writer } from "./writer-process.ts";

let folder: Folder;
const stores: SqliteStore[] = [];

beforeAll(build, 120_000);
beforeEach(() => {
  folder = new Folder();
});
afterEach(async () => {
  await endAll();
  for (const store of stores.splice(0)) await store.close();
  folder.remove();
});

function threaded(): SqliteStore {
  const store = folder.store({ start: (onLost) => new StoreThread(onLost) });
  stores.push(store);
  return store;
}

const PATIENCE = { timeout: 20_000, interval: 10 };

const typesOf = (lines: readonly Line[]) => [...new Set(lines.map(([type]) => type))];

describe("one process at a time", () => {
  test("the second is refused at once, and told of the first; when that is killed, the next has the store", async () => {
    const first = new Writer(folder.file(), 1, ["changes=3", "stay"]);
    await expect.poll(() => first.lines().filter(([type]) => type === "acked").length, PATIENCE).toBe(3);
    const { pid } = first.process;
    const refused = threaded().acquire();
    await expect(refused).rejects.toMatchObject({ name: "EvenkeelError", code: "conflict" });
    await expect(refused).rejects.toThrow(
      new RegExp(`evenkeel.db is in use by process ${pid} since 20\\d\\d-.*Z; stop`),
    );
    first.process.signal("SIGKILL");
    await first.exit;
    const next = threaded();
    const reign = await next.acquire();
    expect(reign.term).toBe(2);
    await next.load(reign);
    expect((await checkStore(folder.file())).changes.count).toBe(3);
  });

  test("one that stands still keeps it: nobody could know that it does not go on", async () => {
    const first = new Writer(folder.file(), 1, ["changes=1", "stay"]);
    await first.process.line("acked");
    first.process.signal("SIGSTOP");
    await expect(threaded().acquire()).rejects.toThrow("in use by process");
  });

  test("whoever gets in although the lock is held, its file removed, ends the reign of the first", async () => {
    const first = threaded();
    const reign = await first.acquire();
    const { floor } = await first.load(reign);
    rmSync(`${folder.file()}-lock`);
    const second = folder.store();
    const later = await second.acquire();
    stores.push(second);
    const change = emptyChange(floor + 1, reign.term);
    await expect(first.append(reign, change)).rejects.toMatchObject({ code: "stale-reign" });
    await second.append(later, { ...change, term: later.term });
  });

  test("a file that was replaced or removed under it is not written any more", async () => {
    const store = folder.store();
    const reign = await store.acquire();
    const { floor } = await store.load(reign);
    mkdirSync(folder.file("aside"));
    for (const ending of ["", "-wal", "-shm"]) renameSync(folder.file() + ending, folder.file(`aside/db${ending}`));
    const appended = store.append(reign, emptyChange(floor + 1, reign.term));
    await expect(appended).rejects.toMatchObject({
      code: "broken",
      message: expect.stringContaining("was removed or replaced"),
    });
    await store.close();
  });
});

describe("a thread that ends", () => {
  const ENDING = new URL(
    'data:text/javascript,import { parentPort } from "node:worker_threads"; parentPort.on("message", () => process.exit(3));',
  );
  const FAILING = new URL(
    'data:text/javascript,import { parentPort } from "node:worker_threads"; parentPort.on("message", () => { throw new Error("no memory"); });',
  );

  test.each([
    ["by itself", ENDING, "the store's thread ended with 3"],
    ["by a fault", FAILING, "the store's thread failed: no memory"],
  ])("%s leaves what was asked of it open, says why, and takes nothing more", async (_, file, reason) => {
    const lost: string[] = [];
    const thread = new StoreThread((why) => lost.push(why), file);
    const calls = [thread.call("load"), thread.call("release")];
    for (const call of calls) await expect(call).rejects.toThrow(reason);
    await expect(thread.call("load")).rejects.toThrow(reason);
    expect(lost).toEqual([reason]);
    await thread.end();
    expect(lost).toEqual([reason]);
  });

  test("ends the reign: its calls are refused, and who waits is next", async () => {
    const threads: ((reason: string) => void)[] = [];
    const store = folder.store({
      start: (onLost) => {
        threads.push(onLost);
        return startInProcess(openDatabase)(onLost);
      },
    });
    const reign = await store.acquire();
    const { floor } = await store.load(reign);
    const next = store.acquire().catch((error: Error) => error.message);
    threads[0]?.("the store's thread ended with 3");
    expect(await reign.lost).toBe("the store's thread ended with 3");
    await expect(store.append(reign, emptyChange(floor + 1, 1))).rejects.toMatchObject({ code: "stale-reign" });
    // Nobody has ended the engine in this process, so its lock is still there.
    expect(await next).toContain("in use by this very process");
  });
});

describe("a disk that is full", () => {
  test("takes no change, says so, and goes on by itself when there is room", async (context) => {
    requireMachine(context, SMALL_DISK);
    const path = `${folder.path}/evenkeel.db`;
    const { process } = new Writer(path, 1, ["fill"], smallDisk("1m", folder.path));
    await process.line('"closed"', 20_000);
    expect(await process.exit).toEqual({ code: 0, signal: null });
    const lines = process.out.map((line) => JSON.parse(line) as Line);
    const failures = lines.filter(([type]) => type === "failed");
    expect(failures.length).toBeGreaterThan(0);
    for (const failure of failures) expect(failure).toEqual(["failed", "not-written", expect.stringContaining("full")]);
    const acked = lines.flatMap((line) => (line[0] === "acked" ? [line[1]] : []));
    expect(lines.findLastIndex(([type]) => type === "acked")).toBeGreaterThan(
      lines.findLastIndex(([type]) => type === "failed"),
    );
    expect(acked).toEqual(acked.map((_, index) => (acked[0] ?? 0) + index));
  });
});

describe("a disk that fails", () => {
  test("an fsync that fails ends it: what was written may be lost without a word", async (context) => {
    requireMachine(context, STRACE);
    const writer = new Writer(folder.file(), 1, ["changes=40"], injecting("fsync,fdatasync", "error=EIO:when=12"));
    expect((await writer.exit).code).toBe(3);
    const failure = writer.lines().find(([type]) => type === "failed");
    expect(failure).toEqual(["failed", "broken", expect.stringContaining("the disk did not take what was written to")]);
    expect(failure?.[2]).toContain("start again");
    const acked = writer.lines().filter(([type]) => type === "acked").length;
    expect(acked).toBeGreaterThan(0);
    // Started again on a disk that works, everything that was acknowledged is there.
    const { problems, changes } = await checkStore(folder.file());
    expect(problems).toEqual([]);
    expect(changes.count).toBeGreaterThanOrEqual(Math.min(acked, 8));
    const store = threaded();
    await store.load(await store.acquire());
  });

  test("a write that fails leaves nothing behind, and the next change takes its revision", async (context) => {
    requireMachine(context, STRACE);
    const writer = new Writer(folder.file(), 1, ["changes=30"], injecting("pwrite64", "error=ENOSPC:when=60"));
    expect((await writer.exit).code).toBe(0);
    const lines = writer.lines();
    expect(typesOf(lines)).toEqual(["held", "acked", "failed", "closed"]);
    expect(lines.filter(([type]) => type === "failed")).toEqual([
      ["failed", "not-written", expect.stringContaining("full")],
    ]);
    const acked = lines.flatMap((line) => (line[0] === "acked" ? [line[1]] : []));
    expect(acked).toEqual(acked.map((_, index) => (acked[0] ?? 0) + index));
    expect((await checkStore(folder.file())).problems).toEqual([]);
  });
});
