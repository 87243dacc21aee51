import { expect, test } from "vitest";
import { fromCheckpoint, toCheckpoint } from "../../src/ledger/checkpoint.ts";
import { readLedger, restoredCheckpoint } from "../../src/ledger/restored.ts";
import { tableStates } from "../../src/ledger/state.ts";
import { type Change, emptyChange } from "../../src/model/change.ts";
import { executorId, instanceId, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";

const [a, b] = [executorId("a"), executorId("b")];
const instance = instanceId("i");
const table = tableName("trips");
const set = PartitionSet.parse;

/** Two executors with a table of ten: a has 0–4 and gives 3–4 to b, b has 5–8, nobody has 9. */
const changes: readonly Change[] = [
  {
    ...emptyChange(100, 1),
    executors: [a, b].map((executor) => ({ executor, instance, state: "live", replaced: [], weight: 1 })),
    tables: [
      {
        table,
        count: 10,
        created: 100,
        origin: "api",
        handoff: "exclusive",
        stopMs: 1_000,
        balance: "count",
        selector: {},
      },
    ],
  },
  {
    ...emptyChange(101, 1),
    own: [
      { table, partitions: set("0-4"), executor: a, instance },
      { table, partitions: set("5-8"), executor: b, instance },
    ],
  },
  { ...emptyChange(102, 1), release: [{ table, partitions: set("3-4"), executor: a, to: b }] },
];

test("a restored ledger owns nothing: everything owned is asked back, meant for the same executor", () => {
  const old = readLedger({ incarnation: "old", floor: 99, changes });
  const restored = restoredCheckpoint(old, { incarnation: "new", revision: 5_000 });
  expect(restored).toMatchObject({ incarnation: "new", revision: 5_000, declared: true });
  expect(restored.executors).toEqual(toCheckpoint(old).executors);
  expect(
    restored.holdings.map(({ executor, state, epoch, to, partitions }) => [executor, state, epoch, to, partitions]),
  ).toEqual([
    ["a", "releasing", 101, "a", "0-2"],
    ["a", "releasing", 101, "b", "3-4"],
    ["b", "releasing", 101, "b", "5-8"],
  ]);
  const [state] = tableStates(fromCheckpoint(restored));
  expect(state).toMatchObject({ owned: 0, releasing: 9 });
  expect(state?.unowned.map(({ partitions }) => String(partitions))).toEqual(["9"]);
});

test("a ledger is read from its checkpoint and what came after it as well as from the changes alone", () => {
  const old = readLedger({ incarnation: "old", floor: 99, changes });
  const checkpoint = toCheckpoint(readLedger({ incarnation: "old", floor: 99, changes: changes.slice(0, 2) }));
  const again = readLedger({ incarnation: "old", floor: 99, checkpoint, changes: changes.slice(2) });
  expect(toCheckpoint(again)).toEqual(toCheckpoint(old));
});
