import { describe, expect, test } from "vitest";
import { nextRecord } from "../../src/core/tables.ts";
import type { TableRecord, TableSpec } from "../../src/model/change.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { formed } from "./formed.ts";
import { SimExecutor } from "./sim-executor.ts";
import { World } from "./world.ts";

const spec = (more: Partial<TableSpec>): TableSpec => ({
  table: tableName("t"),
  count: 4,
  handoff: "exclusive",
  stopMs: 30_000,
  balance: "count",
  selector: {},
  ...more,
});

/** The record after a spec for each list of keys, one after the other. */
function keyed(...lists: readonly (readonly string[])[]): TableRecord {
  const records = lists.reduce<TableRecord | undefined>(
    (before, keys) => nextRecord(before, spec({ keys, count: keys.length }), "api", 5),
    undefined,
  );
  if (records === undefined) throw new Error("no list");
  return records;
}

describe("what a table may become", () => {
  test("the count grows and never shrinks", () => {
    const made = nextRecord(undefined, spec({}), "api", 5);
    expect(nextRecord(made, spec({ count: 9 }), "api", 8)).toMatchObject({ count: 9, created: 5 });
    expect(() => nextRecord(made, spec({ count: 3 }), "api", 8)).toThrow(/only grows/);
  });

  test("handoff, and whether it has keys, cannot change", () => {
    const made = nextRecord(undefined, spec({}), "api", 5);
    expect(() => nextRecord(made, spec({ handoff: "overlap" }), "api", 8)).toThrow(/cannot become overlap/);
    expect(() => nextRecord(made, spec({ keys: ["a"], count: 1 }), "api", 8)).toThrow(/cannot be exchanged/);
  });

  test("keys: numbered in list order; removed ones retire their number; one that comes back gets a new number", () => {
    expect(keyed(["a", "b", "c"])).toMatchObject({ count: 3, keys: ["a", "b", "c"] });
    const without = keyed(["a", "b", "c"], ["a", "c", "d"]);
    expect(without).toMatchObject({ count: 4, keys: ["a", "b", "c", "d"], retired: PartitionSet.parse("1") });
    const back = keyed(["a", "b", "c"], ["a", "c", "d"], ["a", "c", "d", "b"]);
    expect(back).toMatchObject({ count: 5, keys: ["a", "b", "c", "d", "b"], retired: PartitionSet.parse("1") });
    expect(() => keyed(["a", "b", "c"], ["c", "a"])).toThrow(/in the order they have/);
    expect(() => keyed(["a", "b"], ["new", "a", "b"])).toThrow(/stand first/);
  });
});

describe("commands", () => {
  test("the same spec again makes no revision; another makes one", () => {
    const world = new World();
    const made = world.table("t", 4);
    const same = world.table("t", 4);
    const grown = world.table("t", 6);
    expect([made, same, grown].map((request) => world.answers.get(request))).toMatchObject([
      { ok: true, revision: 1 },
      { ok: true, revision: 1 },
      { ok: true, revision: 2 },
    ]);
  });

  test("a retired key's partition is asked back and never granted again", () => {
    const world = new World();
    world.table("t", 3, { keys: ["a", "b", "c"] });
    const a = new SimExecutor(world, "A").connect();
    world.advance(5_000);
    expect(a.pushes[0]?.keys.map(({ key }) => key)).toEqual(["a", "b", "c"]);
    world.table("t", 2, { keys: ["a", "c"] });
    world.advance(1_000);
    expect(world.owners("t")).toEqual(["A", "-", "A"]);
    expect(world.status).toMatchObject({ converged: true, tables: [{ count: 2, owned: 2, unowned: [] }] });
  });

  test("with ifRevision a command counts only on that revision, also against another in the same turn", () => {
    const world = new World();
    world.table("t", 4);
    for (const request of [101, 102]) {
      world.post({ type: "table.put", request, spec: spec({ count: request }), origin: "api", ifRevision: 1 });
    }
    world.run();
    expect(world.answers.get(101)).toMatchObject({ ok: true, revision: 2 });
    expect(world.answers.get(102)).toMatchObject({ ok: false, code: "revision-mismatch" });
    world.post({ type: "table.deleted", request: 103, table: tableName("t"), ifRevision: 1 });
    world.run();
    expect(world.answers.get(103)).toMatchObject({ ok: false, code: "revision-mismatch" });
  });

  test("a stop limit that is shortened keeps counting for revokes that are out", () => {
    const { world, executors } = formed([["A", { releaseMs: "never" }]], { t: 2 });
    const b = new SimExecutor(world, "B").connect();
    world.advance(1_000);
    world.table("t", 2, { stopMs: 1_000 });
    world.advance(20_000);
    expect(executors[0].pushes.at(-1)?.revoke[0]?.stopMs).toBe(30_000);
    expect(b.holds("t")).toEqual([]);
    world.advance(12_000);
    expect(b.holds("t")).toHaveLength(1);
  });

  test("a table that is not there cannot be deleted; one that is being removed can be again", () => {
    const { world } = formed([["A", { releaseMs: 5_000 }]], { t: 2 });
    expect(world.answers.get(world.deleteTable("u"))).toMatchObject({ ok: false, code: "not-found" });
    expect(world.answers.get(world.deleteTable("t"))).toMatchObject({ ok: true });
    const revision = world.revision;
    expect(world.answers.get(world.deleteTable("t"))).toEqual({ ok: true, table: "t", revision });
  });
});
