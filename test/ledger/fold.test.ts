import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkLedger } from "../../src/core/invariants.ts";
import { fromCheckpoint, type LedgerCheckpoint, toCheckpoint } from "../../src/ledger/checkpoint.ts";
import { readCell } from "../../src/ledger/chunks.ts";
import { fold } from "../../src/ledger/fold.ts";
import { CHUNK_SIZE, emptyLedger, type LedgerState, STATE_OWNED, STATE_RELEASING } from "../../src/ledger/state.ts";
import { type Change, type ExecutorRecord, emptyChange, type TableRecord } from "../../src/model/change.ts";
import { type ExecutorId, executorId, instanceId, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";

const T = tableName("t");
const cause = [{ kind: "balance" as const }];

function record(name: string, count: number, more: Partial<TableRecord> = {}): TableRecord {
  const spec = {
    table: tableName(name),
    count,
    handoff: "exclusive",
    stopMs: 0,
    balance: "count",
    selector: {},
  } as const;
  return { ...spec, created: 1, origin: "api", ...more };
}

function executor(id: string, instance = `${id}-1`): ExecutorRecord {
  return { executor: executorId(id), instance: instanceId(instance), state: "live", replaced: [], weight: 1 };
}

function next(ledger: LedgerState, more: Partial<Change>): LedgerState {
  return fold(ledger, { ...emptyChange(ledger.revision + 1, 1), cause, ...more });
}

const own = (id: string, partitions: string) => ({
  table: T,
  partitions: PartitionSet.parse(partitions),
  executor: executorId(id),
  instance: instanceId(`${id}-1`),
});
const release = (id: string, partitions: string, to?: string) => ({
  table: T,
  partitions: PartitionSet.parse(partitions),
  executor: executorId(id),
  ...(to === undefined ? {} : { to: executorId(to) }),
});

/** Table t of 3,000 partitions, all A's. */
function started(): LedgerState {
  return next(emptyLedger("life", 10), {
    executors: [executor("A"), executor("B")],
    tables: [record("t", 3_000)],
    own: [own("A", "0-2999")],
  });
}

const cell = (ledger: LedgerState, partition: number) => readCell(ledger.tables.get(T)?.chunks ?? [], partition);

describe("fold", () => {
  test("the epoch of a grant is the revision that granted it", () => {
    const ledger = started();
    expect(cell(ledger, 2_999)).toMatchObject({ state: STATE_OWNED, epoch: 11 });
    const released = next(ledger, { release: [release("A", "5-6", "B")] });
    expect(cell(released, 5)).toMatchObject({ state: STATE_RELEASING, epoch: 11 });
    const given = next(released, { own: [own("B", "5-6")] });
    expect(cell(given, 5)).toMatchObject({ state: STATE_OWNED, epoch: 13 });
    expect(given.holders.map((holder) => [holder?.executor, holder?.ownedCount, holder?.releasingCount])).toEqual([
      ["A", 2_998, 0],
      ["B", 2, 0],
    ]);
  });

  test("old chunks are never written to: their bytes stay as they were, and untouched ones are shared", () => {
    const before = started();
    const bytes = (ledger: LedgerState) =>
      (ledger.tables.get(T)?.chunks ?? []).map((chunk) => {
        const hash = createHash("sha256");
        for (const column of [chunk.state, chunk.holder, chunk.epoch]) hash.update(column);
        return hash.digest("hex");
      });
    const hashes = bytes(before);
    const after = next(before, { release: [release("A", `${CHUNK_SIZE}-${CHUNK_SIZE + 3}`)] });
    expect(bytes(before)).toEqual(hashes);
    const chunks = (ledger: LedgerState) => ledger.tables.get(T)?.chunks ?? [];
    expect(chunks(after).map((chunk, at) => chunk === chunks(before)[at])).toEqual([true, false, true]);
  });

  test("an unowned partition keeps its last epoch, so that the next is above it", () => {
    const released = next(started(), { release: [release("A", "7")] });
    const free = next(released, { unown: [{ table: T, partitions: PartitionSet.parse("7"), reason: "capacity" }] });
    expect(cell(free, 7)).toMatchObject({ holder: -1, epoch: 11 });
    expect(free.tables.get(T)?.unowned).toEqual([{ reason: "capacity", partitions: PartitionSet.parse("7") }]);
  });

  test("a slot that is free is used again", () => {
    const ledger = next(started(), { release: [release("A", "0-2999")] });
    const moved = next(ledger, { own: [own("B", "0-2999")] });
    expect(moved.holders.map((holder) => holder?.executor)).toEqual([undefined, "B"]);
    const back = next(next(moved, { release: [release("B", "1")] }), { own: [own("A", "1")] });
    expect(back.holders.map((holder) => holder?.executor)).toEqual(["A", "B"]);
    checkLedger(back);
  });

  test("a table grows; its new partitions are unowned", () => {
    const grown = next(started(), { tables: [record("t", 3_100)] });
    expect(grown.tables.get(T)?.unowned).toEqual([
      { reason: "no-executor", partitions: PartitionSet.parse("3000-3099") },
    ]);
    checkLedger(grown);
  });

  test("a removed table goes with what is still being given back", () => {
    const removing = next(started(), {
      tables: [record("t", 3_000, { removing: true })],
      release: [release("A", "0-2999")],
    });
    const gone = next(removing, { tables: [{ table: T, removed: true }] });
    expect([gone.tables.size, gone.holders.filter((holder) => holder !== undefined)]).toEqual([0, []]);
  });

  test.each<[string, Partial<Change>, RegExp]>([
    ["a partition of another owner is asked back", { release: [release("B", "1")] }, /not B's to release/],
    ["an owned partition is given away", { own: [own("B", "1")] }, /was not asked for it/],
    [
      "an owned partition is unowned",
      { unown: [{ table: T, partitions: PartitionSet.parse("1"), reason: "capacity" }] },
      /was not asked for it/,
    ],
    [
      "an instance that is not registered is given something",
      { release: [release("A", "1")], own: [{ ...own("B", "1"), instance: instanceId("B-9") }] },
      /not registered/,
    ],
    ["a table that is not there", { own: [{ ...own("A", "1"), table: tableName("u") }] }, /not in the ledger/],
    ["a partition beyond the table", { release: [release("A", "5000")] }, /beyond the table/],
    ["entries of overlap tables", { ready: [{ ...release("A", "1") }] }, /not supported yet/],
    ["a revision that is not the next", { revision: 99 }, /does not follow/],
  ])("refused as a broken invariant: %s", (_what, change, message) => {
    const ledger = started();
    expect(() => next(ledger, change)).toThrow(message);
  });
});

/** Random valid histories: releases, grants and unowning of one table of 40 partitions among three executors. */
const step = fc.record({
  kind: fc.constantFrom("give", "ask", "free"),
  partitions: fc.uniqueArray(fc.nat(39), { minLength: 1, maxLength: 12 }),
  to: fc.constantFrom("A", "B", "C"),
});

function apply(
  ledger: LedgerState,
  { kind, partitions, to }: { kind: string; partitions: number[]; to: string },
): LedgerState {
  const among = (states: number[]) => partitions.filter((partition) => states.includes(cell(ledger, partition).state));
  const id = executorId(to);
  if (kind === "give")
    return next(ledger, { own: [{ ...own(to, ""), partitions: PartitionSet.of(among([0, STATE_RELEASING])) }] });
  if (kind === "free")
    return next(ledger, {
      unown: [{ table: T, reason: "reserved", to: id, partitions: PartitionSet.of(among([0, STATE_RELEASING])) }],
    });
  const byOwner = new Map<ExecutorId, number[]>();
  for (const partition of among([STATE_OWNED])) {
    const owner = ledger.holders[cell(ledger, partition).holder]?.executor;
    if (owner !== undefined) byOwner.set(owner, [...(byOwner.get(owner) ?? []), partition]);
  }
  return next(ledger, {
    release: [...byOwner].map(([owner, list]) => ({
      table: T,
      executor: owner,
      to: id,
      partitions: PartitionSet.of(list),
    })),
  });
}

describe("any history", () => {
  const history = (steps: { kind: string; partitions: number[]; to: string }[]) =>
    steps.reduce(
      apply,
      next(emptyLedger("life", 10), {
        executors: [executor("A"), executor("B"), executor("C")],
        tables: [record("t", 40)],
      }),
    );

  test("leaves both forms of ownership in agreement", () => {
    fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => checkLedger(history(steps))));
  });

  test("survives a checkpoint, as text, and goes on from it in the same way", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), fc.array(step, { maxLength: 5 }), (before, after) => {
        const ledger = history(before);
        const text = JSON.stringify(toCheckpoint(ledger));
        const restored = fromCheckpoint(JSON.parse(text) as LedgerCheckpoint);
        checkLedger(restored);
        expect(JSON.stringify(toCheckpoint(restored))).toBe(text);
        expect(toCheckpoint(after.reduce(apply, restored))).toEqual(toCheckpoint(after.reduce(apply, ledger)));
      }),
    );
  });
});
