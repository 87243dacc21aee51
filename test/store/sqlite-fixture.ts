import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSqlite, type OpenDatabase } from "../../src/store/sqlite/database.ts";
import { startInProcess } from "../../src/store/sqlite/in-process.ts";
import { SqliteStore, type SqliteStoreOptions } from "../../src/store/sqlite/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

/** Stores in files of their own, worked on in this thread unless said otherwise. */

export const openDatabase: OpenDatabase = await loadSqlite();

let ids = 0;
export const random = { id: () => `id-${++ids}` };

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "evenkeel-store-"));

  file(name = "evenkeel.db"): string {
    return join(this.path, name);
  }

  store(options: Partial<SqliteStoreOptions> = {}): SqliteStore {
    const start = startInProcess(openDatabase);
    return new SqliteStore({ path: this.file(), clock: new FakeClock(), random, start, ...options });
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
