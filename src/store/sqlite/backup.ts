import { StoreError } from "../../driver/ports.ts";
import { check, type StoreReport, withReader } from "./check.ts";
import { loadSqlite } from "./database.ts";
import { judgeRead } from "./failures.ts";
import { readMeta, writeMeta } from "./meta.ts";
import { makeFile, type Target } from "./replace.ts";

export interface BackupOptions extends Target {
  readonly from: string;
  /** ms since 1970. */
  readonly now: number;
}

/**
 * Copies a store as it is at one moment, also beside a running scheduler, and checks the copy. The copy says of itself that
 * it is a backup: served as it is, it would give out revisions and epochs a second time, so only a restore makes a store
 * of it. Throws StoreError `broken` if the store is damaged, and EvenkeelError.
 */
export async function backupStore({ from, now, ...target }: BackupOptions): Promise<StoreReport> {
  const open = await loadSqlite();
  withReader(from, open, () => undefined);
  const report = makeFile(target, open, (path) => {
    const source = open(from, { readOnly: true });
    try {
      source.prepare("VACUUM INTO ?").run(path);
    } catch (error) {
      throw judgeRead(error, from);
    } finally {
      source.close();
    }
    const copy = open(path);
    const { holder: _, ...meta } = readMeta(copy, from);
    writeMeta(copy, { ...meta, backedUp: now });
    copy.close();
    return check(path, open);
  });
  const [problem] = report.problems;
  if (problem !== undefined) throw new StoreError("broken", `${from} is damaged: ${problem}`);
  return { ...report, path: target.to };
}
