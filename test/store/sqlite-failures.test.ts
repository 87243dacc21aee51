import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Reign } from "../../src/driver/ports.ts";
import { type Change, emptyChange } from "../../src/model/change.ts";
import type { Database, OpenDatabase } from "../../src/store/sqlite/database.ts";
import { startInProcess } from "../../src/store/sqlite/in-process.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { Folder, openDatabase } from "./sqlite-fixture.ts";

/** SQLite's result codes, as their documentation numbers them. */
const CODES = {
  BUSY: 5,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  IOERR_READ: 266,
  IOERR_WRITE: 778,
  IOERR_FSYNC: 1034,
};

/** Fails the next statement that begins with `sql`, before it is run or after. */
interface Fault {
  readonly sql: string;
  readonly code: keyof typeof CODES;
  readonly when: "before" | "after";
}

let folder: Folder;
let store: SqliteStore;
let reign: Reign;
let next: Change;
let fault: Fault | undefined;
const lost: string[] = [];

const opening: OpenDatabase = (path, options) => {
  const database = openDatabase(path, options);
  return new Proxy(database, {
    get: (target, member: keyof Database) => {
      const value: unknown = target[member];
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) => {
        const met = fault !== undefined && String(args[0]).startsWith(fault.sql) ? fault : undefined;
        if (met !== undefined) fault = undefined;
        if (met?.when === "before") throw failure(met.code);
        const result: unknown = Reflect.apply(value, target, args);
        if (met?.when === "after") throw failure(met.code);
        return result;
      };
    },
  });
};

function failure(code: keyof typeof CODES): Error {
  return Object.assign(new Error(`made to fail: ${code}`), { code: "ERR_SQLITE_ERROR", errcode: CODES[code] });
}

beforeEach(async () => {
  fault = undefined;
  lost.length = 0;
  folder = new Folder();
  store = folder.store({ start: startInProcess(opening) });
  reign = await store.acquire();
  void reign.lost.then((reason) => lost.push(reason));
  next = emptyChange((await store.load(reign)).floor + 1, reign.term);
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function stored(): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const { revision } of store.read(0, Number.MAX_SAFE_INTEGER)) found.push(revision);
  return found;
}

describe("an append that fails", () => {
  const statements = ["BEGIN", "INSERT", "COMMIT"];
  const passing = ["BUSY", "READONLY", "FULL", "IOERR_WRITE"] as const;
  test.each(statements.flatMap((sql) => passing.map((code) => [sql, code] as const)))(
    "at %s with %s did not land, and its revision is the next again",
    async (sql, code) => {
      fault = { sql, code, when: "before" };
      await expect(store.append(reign, next)).rejects.toMatchObject({ code: "not-written" });
      expect(await stored()).toEqual([]);
      await store.append(reign, next);
      expect(await stored()).toEqual([next.revision]);
    },
  );

  test("before its commit did not land, whatever the reason", async () => {
    fault = { sql: "INSERT", code: "IOERR_READ", when: "before" };
    await expect(store.append(reign, next)).rejects.toMatchObject({ code: "not-written" });
  });

  test.each(["before", "after"] as const)(
    "at its commit for another reason leaves it open (fails %s it)",
    async (when) => {
      fault = { sql: "COMMIT", code: "IOERR_READ", when };
      await expect(store.append(reign, next)).rejects.toMatchObject({ name: "Error" });
      const landed = when === "after";
      expect(await stored()).toEqual(landed ? [next.revision] : []);
      const revision = landed ? next.revision + 1 : next.revision;
      await store.append(reign, { ...next, revision });
      expect((await stored()).at(-1)).toBe(revision);
    },
  );

  test.each(["IOERR_FSYNC", "CORRUPT"] as const)("with %s ends everything: nothing more is believed", async (code) => {
    fault = { sql: "COMMIT", code, when: "before" };
    await expect(store.append(reign, next)).rejects.toMatchObject({ code: "broken" });
    await expect(store.append(reign, next)).rejects.toMatchObject({ code: "broken" });
    await expect(stored()).rejects.toMatchObject({ code: "broken" });
    await expect(store.setMaxLease(reign, 1)).rejects.toMatchObject({ code: "broken" });
  });
});

describe("copying the log into the file", () => {
  /** More than the log may hold. */
  const large = () => ({ ...next, cause: [{ kind: "table" as const, note: "x".repeat(5 * 2 ** 20) }] });

  test("that fails for want of room is left for later", async () => {
    fault = { sql: "PRAGMA wal_checkpoint", code: "FULL", when: "before" };
    await store.append(reign, large());
    expect(fault).toBeUndefined();
    await store.append(reign, { ...next, revision: next.revision + 1 });
    expect(lost).toEqual([]);
  });

  test("whose fsync fails ends the reign, although the change was acknowledged", async () => {
    fault = { sql: "PRAGMA wal_checkpoint", code: "IOERR_FSYNC", when: "before" };
    await store.append(reign, large());
    await expect.poll(() => lost).toEqual([expect.stringContaining("the disk did not take what was written")]);
    await expect(store.append(reign, next)).rejects.toMatchObject({ code: "stale-reign" });
  });
});

test("a start that cannot write is refused, and the lock is free again", async () => {
  await store.close();
  fault = { sql: "COMMIT", code: "FULL", when: "before" };
  await expect(store.acquire()).rejects.toMatchObject({ code: "not-written" });
  reign = await store.acquire();
  expect(reign.term).toBe(2);
});
