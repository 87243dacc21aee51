import { expect } from "vitest";
import { check, withReader } from "../../src/store/sqlite/check.ts";
import { readChange } from "../../src/store/sqlite/records.ts";
import { Folder, openDatabase } from "./sqlite-fixture.ts";
import { Writer } from "./writer-process.ts";

/** Statements of a start and some turns: a process that is killed at one of the first so many is killed anywhere. */
const MAX_STRIKES = 320;

/**
 * Kills a writer at one of its calls to the file, again and again on the same store, and looks after each that the store is
 * what was told: every acknowledged change is there as it was, none twice, none missing in between, and at most one more.
 * The calls come from `seed`.
 */
export async function crashRepeatedly(rounds: number, seed: number): Promise<void> {
  const folder = new Folder();
  const path = folder.file();
  /** Notes of all changes ever seen, by revision: what was once there never changes. */
  const known = new Map<number, string>();
  let random = seed;
  try {
    for (let round = 1; round <= rounds; round++) {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      const strikes = 1 + (random % MAX_STRIKES);
      const writer = new Writer(path, round, ["inline", `strikes=${strikes}`]);
      const { signal } = await writer.exit;
      const where = `round ${round}, killed at call ${strikes}`;
      expect(signal, `${where}: ${writer.process.complaints.join("\n")}`).toBe("SIGKILL");
      compare(path, writer, known, where);
    }
    // Enough to have seen every kind of place: beginnings, appends, checkpoints and what goes behind them.
    expect(known.size).toBeGreaterThan(rounds);
  } finally {
    folder.remove();
  }
}

function compare(path: string, writer: Writer, known: Map<number, string>, where: string): void {
  const lines = writer.lines();
  expect(
    lines.filter(([type]) => type !== "held" && type !== "acked"),
    where,
  ).toEqual([]);
  for (const line of lines) if (line[0] === "acked") known.set(line[1], line[2]);
  const acked = Math.max(-1, ...known.keys());
  let found: ReturnType<typeof read>;
  try {
    expect(check(path, openDatabase).problems, where).toEqual([]);
    found = read(path);
  } catch (error) {
    // Killed before the tables were made: then nobody was told of anything either.
    expect(known.size, `${where}: ${error}`).toBe(0);
    return;
  }
  const { changes, oldestCheckpoint } = found;
  const revisions = [...changes.keys()];
  const [first = acked + 1] = revisions;
  const last = revisions.at(-1) ?? acked;
  expect(revisions, where).toEqual(Array.from({ length: revisions.length }, (_, index) => first + index));
  expect(last - acked, `${where}: changes behind the last that was acknowledged`).toBeOneOf([
    0,
    acked < 0 ? last - acked : 1,
  ]);
  for (const [revision, note] of known) {
    if (revision >= first) expect(changes.get(revision), where).toBe(note);
    else expect(revision, `${where}: gone without a checkpoint that covers it`).toBeLessThanOrEqual(oldestCheckpoint);
  }
  for (const [revision, note] of changes) known.set(revision, note);
}

function read(path: string): { readonly changes: ReadonlyMap<number, string>; readonly oldestCheckpoint: number } {
  return withReader(path, openDatabase, (database) => {
    const rows = database.prepare("SELECT revision, at, sum, text FROM changes ORDER BY revision").all();
    const changes = rows.map((row): [number, string] => {
      const change = readChange(row);
      const { cause } = JSON.parse(change?.text ?? "{}") as { readonly cause: readonly { readonly note: string }[] };
      return [Number(row["revision"]), cause[0]?.note ?? "none"];
    });
    const oldest = database.prepare("SELECT min(revision) AS oldest FROM checkpoints").get()?.["oldest"];
    return { changes: new Map(changes), oldestCheckpoint: Number(oldest ?? -1) };
  });
}
