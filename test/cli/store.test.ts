import { existsSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../src/cli/program.ts";
import { emptyChange } from "../../src/model/change.ts";
import { executorId, instanceId, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { Folder, openDatabase } from "../store/sqlite-fixture.ts";

let folder: Folder;
let store: SqliteStore;

const [executor, instance, table] = [executorId("a"), instanceId("i"), tableName("trips")];
const SPEC = { table, count: 4, handoff: "exclusive", stopMs: 1_000, balance: "count", selector: {} } as const;

/** A store that is open, with a table whose partitions one executor owns. */
beforeEach(async () => {
  folder = new Folder();
  store = folder.store();
  const reign = await store.acquire();
  const { floor } = await store.load(reign);
  await store.setMaxLease(reign, 15_000);
  await store.append(reign, {
    ...emptyChange(floor + 1, 1),
    executors: [{ executor, instance, state: "live", replaced: [], weight: 1 }],
    tables: [{ ...SPEC, created: floor + 1, origin: "api" }],
  });
  const own = [{ table, partitions: PartitionSet.upTo(4), executor, instance }];
  await store.append(reign, { ...emptyChange(floor + 2, 1), own });
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function evenkeel(
  args: string,
): Promise<{ readonly exit: number; readonly out: string; readonly notes: string }> {
  let out = "";
  const notes: string[] = [];
  const context = {
    out: (text: string) => {
      out += text;
    },
    note: (line: string) => void notes.push(line),
    environment: {},
    folder: folder.path,
  };
  return { exit: await run(args.split(" "), context), out, notes: notes.join("\n") };
}

describe("store check", () => {
  test("shows what is there, beside the process that has it open", async () => {
    const { exit, out } = await evenkeel("store check sqlite:./evenkeel.db");
    expect(exit).toBe(0);
    expect(out).toMatch(
      /^STORE +BYTES +CHANGES +FIRST +LAST +TERM +MAX-LEASE\n\S+evenkeel\.db +\d+ +2 +\d+ +\d+ +1 +15s$/m,
    );
    expect(out).toContain(`by process ${process.pid} on`);
    expect(out).toMatch(/no damage found\n$/);
  });

  test("ends with 7 where something is damaged, and names it", async () => {
    const database = openDatabase(folder.file());
    database.exec("UPDATE changes SET at = at + 1");
    database.close();
    const { exit, out, notes } = await evenkeel("store check evenkeel.db");
    expect(exit).toBe(7);
    expect(out.match(/^DAMAGE change \d+ does not match its checksum$/gm)).toHaveLength(2);
    expect(notes).toContain("has 2 problems; take the last good backup");
    const { problems } = JSON.parse((await evenkeel("store check evenkeel.db -o json")).out) as { problems: unknown[] };
    expect(problems).toHaveLength(2);
  });

  test("of what is not there: 4, of another file: 2", async () => {
    expect(await evenkeel("store check none.db")).toMatchObject({
      exit: 4,
      notes: expect.stringContaining("there is no store"),
    });
    writeFileSync(folder.file("text.db"), "hello ".repeat(100));
    expect(await evenkeel("store check text.db")).toMatchObject({
      exit: 2,
      notes: expect.stringContaining("not a database"),
    });
  });
});

describe("store backup and restore", () => {
  test("make a new incarnation in which what was owned is asked back, for the same executor", async () => {
    expect(await evenkeel("store backup evenkeel.db backup.db")).toMatchObject({
      exit: 0,
      out: expect.stringContaining("a backup of 20"),
    });
    const { exit, out } = await evenkeel("store restore backup.db new.db");
    expect(exit).toBe(0);
    expect(out).toContain("grants nothing for 15s");
    const next = folder.store({ path: folder.file("new.db") });
    const loaded = await next.load(await next.acquire());
    await next.close();
    expect(loaded.quarantineMs).toBe(15_000);
    expect(loaded.checkpoint?.state).toMatchObject({
      holdings: [{ executor: "a", instance: "i", table: "trips", state: "releasing", to: "a", partitions: "0-3" }],
    });
  });

  test("are refused: a file that is there (6), a store in use (6), a lease that is too short (2)", async () => {
    await evenkeel("store backup evenkeel.db backup.db");
    expect(await evenkeel("store backup evenkeel.db backup.db")).toMatchObject({
      exit: 6,
      notes: expect.stringContaining("--force"),
    });
    expect(await evenkeel("store backup evenkeel.db backup.db --force")).toMatchObject({ exit: 0 });
    expect(await evenkeel("store restore evenkeel.db new.db")).toMatchObject({
      exit: 6,
      notes: expect.stringContaining("in use"),
    });
    expect(await evenkeel("store restore backup.db new.db --max-lease 1s")).toMatchObject({ exit: 2 });
    expect(existsSync(folder.file("new.db"))).toBe(false);
    expect(await evenkeel("store restore backup.db new.db --max-lease 1m -o json")).toMatchObject({
      exit: 0,
      out: expect.stringContaining('"quarantineMs": 60000'),
    });
  });

  test("of a damaged copy: 1, with what to do", async () => {
    await evenkeel("store backup evenkeel.db backup.db");
    const database = openDatabase(folder.file("backup.db"));
    database.exec("UPDATE changes SET at = at + 1");
    database.close();
    const { exit, notes } = await evenkeel("store restore backup.db new.db");
    expect(exit).toBe(1);
    expect(notes).toMatch(
      /^evenkeel: \S+backup\.db is damaged: change \d+ does not match its checksum; see all of it with/,
    );
  });
});
