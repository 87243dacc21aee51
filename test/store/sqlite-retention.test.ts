import { afterEach, beforeEach, expect, test } from "vitest";
import type { Reign } from "../../src/driver/ports.ts";
import { emptyChange } from "../../src/model/change.ts";
import type { Revision } from "../../src/model/ids.ts";
import { checkStore } from "../../src/store/sqlite/check.ts";
import type { LedgerLimits, SqliteStore } from "../../src/store/sqlite/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Folder } from "./sqlite-fixture.ts";

/** What goes behind a checkpoint, by age and by number. */

const HOUR_MS = 3_600_000;

let folder: Folder;
let clock: FakeClock;
let store: SqliteStore;
let reign: Reign;
let floor: Revision;

beforeEach(() => {
  folder = new Folder();
  clock = new FakeClock();
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function open(ledger: LedgerLimits): Promise<void> {
  store = folder.store({ clock, ledger });
  reign = await store.acquire();
  ({ floor } = await store.load(reign));
}

async function append(from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n++) await store.append(reign, { ...emptyChange(floor + n, 1), at: clock.wall() });
}

const checkpoint = (n: number) => store.checkpoint(reign, { revision: floor + n, state: {} });

async function kept(): Promise<readonly number[]> {
  const { changes, problems } = await checkStore(folder.file());
  expect(problems).toEqual([]);
  return [changes.first ?? floor, changes.last ?? floor].map((revision) => revision - floor);
}

test("changes go when they are older than is retained, and the older checkpoint covers them", async () => {
  await open({ retainMs: HOUR_MS });
  await append(1, 4);
  clock.advance(HOUR_MS / 2);
  await append(5, 8);
  await checkpoint(7);
  clock.advance(HOUR_MS / 2);
  await checkpoint(8);
  expect(await kept()).toEqual([1, 8]);
  clock.advance(1);
  await checkpoint(8);
  expect(await kept()).toEqual([5, 8]);
  clock.advance(HOUR_MS);
  await checkpoint(8);
  // The older checkpoint is at 7: should the newer one be damaged, the change behind it is needed.
  expect(await kept()).toEqual([8, 8]);
});

test("changes go when there are more than are kept, also more than go at a time", async () => {
  await open({ maxChanges: 10 });
  await append(1, 600);
  await checkpoint(590);
  await checkpoint(600);
  expect(await kept()).toEqual([591, 600]);
});

test("a reader that is overtaken is told, and reads no hole", async () => {
  await open({ maxChanges: 10 });
  await append(1, 600);
  const reader = store.read(floor + 1, floor + 600)[Symbol.asyncIterator]();
  expect((await reader.next()).value).toMatchObject({ revision: floor + 1 });
  await checkpoint(590);
  await checkpoint(600);
  const rest = (async () => {
    while (!(await reader.next()).done);
  })();
  await expect(rest).rejects.toMatchObject({ code: "gap" });
});

test("a checkpoint that comes late is left out: what follows it may be gone", async () => {
  await open({});
  await append(1, 5);
  await checkpoint(5);
  await checkpoint(3);
  const { checkpoints } = await checkStore(folder.file());
  expect(checkpoints.map(({ revision }) => revision - floor)).toEqual([5]);
});
