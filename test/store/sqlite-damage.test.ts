import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LogPort } from "../../src/driver/ports.ts";
import { emptyChange } from "../../src/model/change.ts";
import type { Revision } from "../../src/model/ids.ts";
import { checkStore } from "../../src/store/sqlite/check.ts";
import { readMeta, writeMeta } from "../../src/store/sqlite/meta.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { Folder, openDatabase } from "./sqlite-fixture.ts";

/** Files that a disk, or somebody, has damaged. */

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder.remove());

/** So many changes, with a checkpoint at each of `checkpoints` (counted from 1). Returns the revision before the first. */
async function write(count: number, checkpoints: readonly number[] = []): Promise<Revision> {
  const store = folder.store();
  const reign = await store.acquire();
  const { floor } = await store.load(reign);
  for (let n = 1; n <= count; n++) {
    await store.append(reign, {
      ...emptyChange(floor + n, reign.term),
      cause: [{ kind: "table", note: `number ${n}` }],
    });
    if (checkpoints.includes(n)) await store.checkpoint(reign, { revision: floor + n, state: { upTo: n } });
  }
  await store.close();
  return floor;
}

/** Changes the file behind the store's back. */
function tamper(sql: string, ...values: readonly (string | number)[]): void {
  const database = openDatabase(folder.file());
  database.prepare(sql).run(...values);
  database.close();
}

/** As if the last process had been cut off. */
function cutOff(): void {
  const database = openDatabase(folder.file());
  const meta = readMeta(database, folder.file());
  writeMeta(database, { ...meta, holder: { pid: 1, host: "elsewhere", since: 0 } });
  database.close();
}

async function open(
  log?: LogPort,
): Promise<{ readonly store: SqliteStore; readonly revisions: readonly Revision[]; readonly base: unknown }> {
  const store = folder.store(log === undefined ? {} : { log });
  const { changes, checkpoint } = await store.load(await store.acquire());
  return { store, revisions: changes.map(({ revision }) => revision), base: checkpoint?.state };
}

const SPOIL = "UPDATE changes SET text = replace(text, 'number', 'numbre') WHERE revision = ?";

describe("damage inside is refused, with the record and what to do", () => {
  test("a change that does not match its checksum", async () => {
    const floor = await write(5);
    tamper(SPOIL, floor + 3);
    const message = `change ${floor + 3} does not match its checksum; see all of it with evenkeel store check`;
    await expect(open()).rejects.toMatchObject({ name: "StoreError", code: "broken" });
    await expect(open()).rejects.toThrow(message);
    expect((await checkStore(folder.file())).problems).toEqual([`change ${floor + 3} does not match its checksum`]);
  });

  test("a change that stands in another's place", async () => {
    const floor = await write(5);
    tamper("DELETE FROM changes WHERE revision = ?", floor + 5);
    tamper("INSERT INTO changes SELECT ?, at, sum, text FROM changes WHERE revision = ?", floor + 5, floor + 4);
    await expect(open()).rejects.toThrow(`change ${floor + 5} does not match its checksum`);
  });

  test("changes that are missing", async () => {
    const floor = await write(6);
    tamper("DELETE FROM changes WHERE revision IN (?, ?)", floor + 2, floor + 3);
    await expect(open()).rejects.toThrow(`changes ${floor + 2} to ${floor + 3} are missing`);
    expect((await checkStore(folder.file())).problems).toEqual([`changes ${floor + 2} to ${floor + 3} are missing`]);
  });

  test("the last change after a clean end: nobody was writing it", async () => {
    const floor = await write(5);
    tamper(SPOIL, floor + 5);
    await expect(open()).rejects.toThrow(`change ${floor + 5} does not match its checksum`);
  });

  test("both checkpoints, as what they held may stand nowhere else", async () => {
    await write(5, [2, 4]);
    tamper("UPDATE checkpoints SET text = text || ' '");
    await expect(open()).rejects.toThrow("no checkpoint matches its checksum");
    expect((await checkStore(folder.file())).checkpoints.map(({ good }) => good)).toEqual([false, false]);
  });

  test("the record of the store itself", async () => {
    await write(1);
    tamper("UPDATE meta SET text = replace(text, '\"maxLeaseMs\":0', '\"maxLeaseMs\":1')");
    await expect(open()).rejects.toThrow("table meta");
    expect((await checkStore(folder.file())).problems).toEqual([expect.stringContaining("table meta")]);
  });

  test("pages that were overwritten", async () => {
    await write(400);
    const file = openSync(folder.file(), "r+");
    for (let page = 5; page < 12; page++) writeSync(file, Buffer.alloc(4_096, 0x5a), 0, 4_096, page * 4_096);
    closeSync(file);
    await expect(open()).rejects.toMatchObject({ code: "broken", message: expect.stringContaining("is damaged") });
    expect((await checkStore(folder.file())).problems.length).toBeGreaterThan(0);
  });

  test("after the refusal the lock is free: the next one is refused for the same, not for the lock", async () => {
    const floor = await write(3);
    tamper(SPOIL, floor + 1);
    await expect(open()).rejects.toThrow("checksum");
    await expect(open()).rejects.toThrow("checksum");
  });
});

describe("damage that can be lived with is told", () => {
  test("the last change of a process that was cut off is removed, and the next takes its revision", async () => {
    const floor = await write(5);
    cutOff();
    tamper(SPOIL, floor + 5);
    const warnings: unknown[] = [];
    const { store, revisions } = await open({ log: (level, event, fields) => warnings.push([level, event, fields]) });
    expect(revisions).toEqual([1, 2, 3, 4].map((n) => floor + n));
    expect(warnings).toEqual([
      ["warn", "store.failed", expect.objectContaining({ damage: expect.stringContaining(`change ${floor + 5}`) })],
    ]);
    await store.close();
    expect((await checkStore(folder.file())).problems).toEqual([]);
  });

  test("not so the last but one", async () => {
    const floor = await write(5);
    cutOff();
    tamper(SPOIL, floor + 4);
    await expect(open()).rejects.toThrow(`change ${floor + 4} does not match its checksum`);
  });

  test("nor one that a checkpoint covers", async () => {
    const floor = await write(5, [2, 5]);
    cutOff();
    tamper("UPDATE checkpoints SET text = text || ' ' WHERE revision = ?", floor + 5);
    tamper(SPOIL, floor + 5);
    await expect(open()).rejects.toThrow(`change ${floor + 5} is missing`);
  });

  test("a checkpoint is passed over for the one before it", async () => {
    const floor = await write(6, [2, 4]);
    tamper("UPDATE checkpoints SET text = text || ' ' WHERE revision = ?", floor + 4);
    const { revisions, base } = await open();
    expect(base).toEqual({ upTo: 2 });
    expect(revisions).toEqual([3, 4, 5, 6].map((n) => floor + n));
  });
});

describe("a file that is no store", () => {
  test("of a newer version", async () => {
    await write(1);
    tamper("PRAGMA user_version = 2");
    await expect(open()).rejects.toMatchObject({ name: "EvenkeelError", code: "invalid" });
    await expect(open()).rejects.toThrow(
      "written by another version of evenkeel: its tables are version 2, this one knows 1",
    );
  });

  test("of another program", async () => {
    const database = openDatabase(folder.file());
    database.exec("CREATE TABLE notes (text)");
    database.close();
    const before = readFileSync(folder.file());
    await expect(open()).rejects.toThrow("not a store of evenkeel");
    await expect(checkStore(folder.file())).rejects.toThrow("not a store of evenkeel");
    expect(readFileSync(folder.file()).equals(before)).toBe(true);
  });

  test("of no database at all", async () => {
    writeFileSync(folder.file(), "hello ".repeat(1_000));
    await expect(open()).rejects.toMatchObject({ code: "broken" });
    expect(readFileSync(folder.file(), "utf8")).toBe("hello ".repeat(1_000));
    await expect(checkStore(folder.file())).rejects.toThrow("file is not a database");
  });

  test("in a folder that is not there, or that is one", async () => {
    await expect(folder.store({ path: folder.file("no/such.db") }).acquire()).rejects.toThrow("there is no folder");
    await expect(folder.store({ path: folder.path }).acquire()).rejects.toThrow("it is a folder");
    await expect(checkStore(folder.file("none.db"))).rejects.toMatchObject({ code: "not-found" });
  });
});
