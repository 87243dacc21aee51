import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Reign } from "../../src/driver/ports.ts";
import { emptyChange } from "../../src/model/change.ts";
import type { Revision } from "../../src/model/ids.ts";
import { REVISIONS_PER_SECOND } from "../../src/store/first-revision.ts";
import { backupStore } from "../../src/store/sqlite/backup.ts";
import { checkStore } from "../../src/store/sqlite/check.ts";
import { type RestoreOptions, restoreStore } from "../../src/store/sqlite/restore.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Folder } from "./sqlite-fixture.ts";

let folder: Folder;
let store: SqliteStore;
let reign: Reign;
let floor: Revision;
const NOW = new FakeClock().wall();

beforeEach(async () => {
  folder = new Folder();
  store = folder.store();
  reign = await store.acquire();
  ({ floor } = await store.load(reign));
  await store.setMaxLease(reign, 15_000);
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function append(...numbers: readonly number[]): Promise<void> {
  for (const n of numbers) await store.append(reign, { ...emptyChange(floor + n, reign.term), at: NOW + n });
}

const backup = (to: string, force = false) =>
  backupStore({ from: folder.file(), to: folder.file(to), now: NOW, force });

const restore = (options: Partial<RestoreOptions> = {}) =>
  restoreStore({
    from: folder.file("backup.db"),
    to: folder.file("new.db"),
    now: NOW + 3_600_000,
    incarnation: "second",
    convert: ({ incarnation, checkpoint, changes }, start) => {
      return { incarnation, checkpoint, changes: changes.map(({ revision }) => revision - floor), start };
    },
    ...options,
  });

describe("check", () => {
  test("says what is in a store that is in use, and who has it", async () => {
    await append(1, 2, 3);
    await store.checkpoint(reign, { revision: floor + 2, state: {} });
    expect(await checkStore(folder.file())).toEqual({
      path: folder.file(),
      bytes: expect.any(Number),
      store: {
        incarnation: reign.incarnation,
        term: 1,
        created: NOW,
        maxLeaseMs: 15_000,
        holder: { pid: process.pid, host: expect.any(String), since: NOW },
      },
      changes: { count: 3, first: floor + 1, last: floor + 3 },
      checkpoints: [{ revision: floor + 2, bytes: 2, good: true }],
      problems: [],
    });
  });

  test("tells nobody the key of the stamps, nor lets others read the file", async () => {
    const key = Buffer.from(reign.stampKey).toString("base64");
    expect(JSON.stringify(await checkStore(folder.file()))).not.toContain(key);
    for (const ending of ["", "-wal"]) expect(statSync(folder.file() + ending).mode & 0o077).toBe(0);
  });
});

describe("backup", () => {
  test("copies a store that is being written, as it was at one moment", async () => {
    await append(1, 2);
    const report = await backup("backup.db");
    await append(3);
    expect(report).toMatchObject({
      path: folder.file("backup.db"),
      changes: { count: 2, last: floor + 2 },
      problems: [],
    });
    expect(statSync(folder.file("backup.db")).mode & 0o077).toBe(0);
    const { store: copied } = await checkStore(folder.file("backup.db"));
    expect(copied).toMatchObject({ incarnation: reign.incarnation, backedUp: NOW });
    expect(copied?.holder).toBeUndefined();
  });

  test("is not served as it is", async () => {
    await append(1);
    await backup("backup.db");
    const before = readFileSync(folder.file("backup.db"));
    const opened = folder.store({ path: folder.file("backup.db") }).acquire();
    await expect(opened).rejects.toMatchObject({
      name: "EvenkeelError",
      detail: expect.stringContaining("is a backup of 2026-"),
    });
    await expect(opened).rejects.toThrow("evenkeel store restore");
    expect(readFileSync(folder.file("backup.db")).equals(before)).toBe(true);
  });

  test("replaces no file unless it is told to, and leaves nothing else behind", async () => {
    await append(1);
    writeFileSync(folder.file("backup.db"), "precious");
    await expect(backup("backup.db")).rejects.toMatchObject({ code: "conflict" });
    expect(readFileSync(folder.file("backup.db"), "utf8")).toBe("precious");
    await backup("other.db");
    await append(2);
    expect(await backup("other.db", true)).toMatchObject({ changes: { count: 2 } });
    expect(existsSync(`${folder.file("other.db")}.new-${process.pid}`)).toBe(false);
  });

  test("is refused to a store in use, and of what is not there", async () => {
    await expect(backup("evenkeel.db", true)).rejects.toThrow("is in use");
    expect((await store.load(reign)).changes).toEqual([]);
    await expect(backupStore({ from: folder.file("none"), to: folder.file("b"), now: NOW })).rejects.toMatchObject({
      code: "not-found",
    });
    await expect(backup("no/b.db")).rejects.toThrow("there is no folder");
  });
});

describe("restore", () => {
  test("is a new incarnation above every earlier revision, with a new key, a higher term and a quarantine", async () => {
    await append(1, 2, 3);
    await store.checkpoint(reign, { revision: floor + 2, state: "two" });
    await backup("backup.db");
    const restored = await restore();
    const first = ((NOW + 3_600_000) / 1_000) * REVISIONS_PER_SECOND;
    expect(restored).toEqual({ incarnation: "second", upTo: floor + 3, first, quarantineMs: 15_000, warnings: [] });
    expect((await checkStore(folder.file("new.db"))).problems).toEqual([]);
    const next = folder.store({ path: folder.file("new.db") });
    const second = await next.acquire();
    expect(second).toMatchObject({ incarnation: "second", term: reign.term + 1 });
    expect(second.stampKey).not.toEqual(reign.stampKey);
    const start = { incarnation: "second", revision: first - 1 };
    expect(await next.load(second)).toEqual({
      floor: first - 1,
      maxLeaseMs: 15_000,
      quarantineMs: 15_000,
      checkpoint: {
        revision: first - 1,
        state: { incarnation: reign.incarnation, checkpoint: "two", changes: [3], start },
      },
      changes: [],
    });
    await next.append(second, emptyChange(first, second.term));
    await next.endQuarantine(second);
    await next.close();
    const again = folder.store({ path: folder.file("new.db") });
    const loaded = await again.load(await again.acquire());
    expect(loaded.quarantineMs).toBeUndefined();
    expect(loaded.changes.map(({ revision }) => revision)).toEqual([first]);
    await again.close();
  });

  test("goes on above the last revision also where the clock is behind", async () => {
    await append(1, 2);
    await backup("backup.db");
    expect(await restore({ now: NOW - 86_400_000 })).toMatchObject({ first: floor + 3 });
  });

  test("waits for the largest lease that is known, or a longer one that is named, never a shorter", async () => {
    await backup("backup.db");
    await expect(restore({ maxLeaseMs: 14_999 })).rejects.toThrow("leases of 15s");
    expect(await restore({ maxLeaseMs: 60_000 })).toMatchObject({ quarantineMs: 60_000 });
    await store.setMaxLease(reign, 0);
    await backup("backup.db", true);
    await expect(restore({ force: true })).rejects.toThrow("--max-lease");
  });

  test("in a quarantine counts the lease that this one is for", async () => {
    await backup("backup.db");
    await restore({ maxLeaseMs: 60_000 });
    const again = { from: folder.file("new.db"), to: folder.file("newer.db") };
    expect(await restore(again)).toMatchObject({ quarantineMs: 60_000 });
  });

  test("of a store in place: what was rolled back becomes a new incarnation", async () => {
    await append(1);
    const from = folder.file();
    await expect(restore({ from, to: from, force: true })).rejects.toThrow(`in use by this very process`);
    await store.close();
    await expect(restore({ from, to: from })).rejects.toMatchObject({ code: "conflict" });
    expect(await restore({ from, to: from, force: true })).toMatchObject({ upTo: floor + 1 });
    store = folder.store();
    reign = await store.acquire();
    expect(reign.incarnation).toBe("second");
  });

  test("of a damaged copy is refused, and makes no file", async () => {
    await append(1);
    await backup("backup.db");
    const bytes = readFileSync(folder.file("backup.db"));
    bytes.fill(0x5a, 4_096);
    writeFileSync(folder.file("backup.db"), bytes);
    await expect(restore()).rejects.toMatchObject({ name: "StoreError", code: "broken" });
    expect(existsSync(folder.file("new.db"))).toBe(false);
  });
});
