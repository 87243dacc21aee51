import { beforeAll, describe, test } from "vitest";
import { startInProcess } from "../../src/store/sqlite/in-process.ts";
import type { StartExecutor } from "../../src/store/sqlite/operations.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { StoreThread } from "../../src/store/sqlite/thread.ts";
import { testStore } from "../../src/testing/store-conformance.ts";
import { build } from "../cli/processes.ts";
import { Folder, openDatabase } from "./sqlite-fixture.ts";

const inThread: StartExecutor = (onLost) => new StoreThread(onLost);

function testSqlite(name: string, start: StartExecutor): void {
  testStore({ describe, test }, name, async ({ maxChanges }) => {
    const folder = new Folder();
    const ledger = maxChanges === undefined ? {} : { maxChanges };
    const stores: SqliteStore[] = [];
    const open = (): SqliteStore => {
      const store = folder.store({ start, ledger });
      stores.push(store);
      return store;
    };
    return {
      store: open(),
      reopen: async () => open(),
      close: async () => {
        for (const store of stores) await store.close();
        folder.remove();
      },
    };
  });
}

beforeAll(build, 120_000);

testSqlite("sqlite:", startInProcess(openDatabase));
testSqlite("sqlite: in its thread", inThread);
