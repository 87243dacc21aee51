import { describe, expect, test } from "vitest";
import { computePlan } from "../../src/plan/plan.ts";
import { loads, type NamedTable, type NamedWorld, named, step, table, toInput } from "./world.ts";

function refusing(base: NamedTable, excluded: Readonly<Record<number, readonly string[]>>): NamedTable {
  return {
    ...base,
    excluded: new Map(Object.entries(excluded).map(([partition, names]) => [Number(partition), names])),
  };
}

const nine = (p6: string | undefined): NamedTable => ({
  table: "t",
  owners: ["A", "A", "A", "B", "B", "B", p6, "C", "C"],
});

describe("executors that must not be given a partition", () => {
  test("H5 the partition goes elsewhere, and who refused it gets another in exchange", () => {
    const after = step({ executors: named("A", "B", "C"), tables: [refusing(nine(undefined), { 6: ["C"] })] });
    expect(loads(after)).toEqual({ A: 3, B: 3, C: 3 });
    expect(after.tables[0]?.owners[6]).not.toBe("C");
    expect(after).toMatchObject({ moves: 1, unowned: 0 });
  });

  test("what an executor has it may keep", () => {
    const after = step({ executors: named("A", "B", "C"), tables: [refusing(nine("C"), { 6: ["A", "B", "C"] })] });
    expect(after).toMatchObject({ moves: 0, kept: 9 });
  });

  test("gainers swap numbers, at no further move", () => {
    const free = refusing(table("t", 4), { 0: ["A"], 1: ["A"] });
    const after = step({ executors: named("A", "B"), tables: [free] });
    expect(after.tables[0]?.owners).toEqual(["B", "B", "A", "A"]);
  });

  test("a loser gives what others may take, and keeps what they may not", () => {
    const all = refusing(table("t", 4, "A"), { 2: ["B"], 3: ["B"] });
    const after = step({ executors: named("A", "B"), tables: [all] });
    expect(after.tables[0]?.owners).toEqual(["B", "B", "A", "A"]);
    expect(after.moves).toBe(2);
  });

  test("with tables of one partition each, whole tables are exchanged", () => {
    const tables = ["a", "b", "c", "d"].map((name) => table(name, 1, name < "c" ? "A" : "B"));
    const refused = refusing(table("e", 1), { 0: ["B"] });
    const third = refusing(table("f", 1), { 0: ["B"] });
    const after = step({ executors: named("A", "B"), tables: [...tables, refused, third] });
    expect(loads(after)).toEqual({ A: 3, B: 3 });
    expect(loads(after, "e")).toEqual({ A: 1, B: 0 });
    expect(after).toMatchObject({ moves: 1, unowned: 0 });
  });

  test("placing comes before fairness", () => {
    const after = step({
      executors: named("A", "B"),
      tables: [refusing(table("t", 4), { 0: ["A"], 1: ["A"], 2: ["A"], 3: ["A"] })],
    });
    expect(loads(after)).toEqual({ A: 0, B: 4 });
  });

  test("room is made by passing partitions on, also over several executors", () => {
    const executors = [
      { executor: "A", capacity: 1 },
      { executor: "B", capacity: 1 },
      { executor: "C", capacity: 1 },
    ];
    const tables = [
      refusing(table("a", 1, "A"), { 0: ["C"] }),
      refusing(table("b", 1, "B"), { 0: ["A"] }),
      refusing(table("c", 1), { 0: ["B", "C"] }),
    ];
    const after = step({ executors, tables });
    expect(after.tables.map(({ owners }) => owners[0])).toEqual(["B", "C", "A"]);
    expect(after).toMatchObject({ moves: 2, unowned: 0 });
  });

  test("what nobody may take stays unowned for back-off, and does not count in the quotas", () => {
    const tables = [refusing(table("t", 5), { 4: ["A", "B"] })];
    const after = step({ executors: named("A", "B"), tables });
    expect(loads(after)).toEqual({ A: 2, B: 2 });
    const input = toInput({ executors: named("A", "B"), tables });
    expect(computePlan(input).tables[0]?.unowned).toEqual([{ partition: 4, reason: "backoff" }]);
  });

  test("what only full executors may take is unowned for back-off; without any room, for capacity", () => {
    const tables = [refusing(table("t", 2), { 0: ["B"], 1: ["B"] })];
    const reasons = (capacity: number) =>
      computePlan(
        toInput({
          executors: [
            { executor: "A", capacity: 1 },
            { executor: "B", capacity },
          ],
          tables,
        }),
      ).tables[0]?.unowned.map(({ reason }) => reason);
    expect(reasons(1)).toEqual(["backoff"]);
    expect(reasons(0)).toEqual(["capacity"]);
  });

  test("an executor above its capacity gives up even what nobody else may take", () => {
    const tables = [refusing(table("t", 2, "A"), { 0: ["A", "B"], 1: ["A", "B"] })];
    const after = step({ executors: [{ executor: "A", capacity: 1 }, { executor: "B" }], tables });
    expect(loads(after)).toEqual({ A: 1, B: 0 });
    expect(step(after)).toMatchObject({ moves: 0, unowned: 1 });
  });

  test("an executor that refuses everything gets nothing, and everything is placed", () => {
    const everything = Object.fromEntries([...Array(3_000).keys()].map((partition) => [partition, ["B"]]));
    const tables = [refusing(table("t", 3_000), everything), refusing(table("u", 3_000), everything)];
    const after = step({ executors: named("A", "B", "C", "D"), tables });
    expect(loads(after)).toEqual({ A: 2_000, B: 0, C: 2_000, D: 2_000 });
  });
});

/** Small worlds that each need one thing to be done right, found by leaving it out. `A.B#` are owners, a letter each. */
describe("exclusions in small worlds", () => {
  const world = (
    executors: Readonly<Record<string, number | undefined>>,
    ...tables: readonly (readonly [owners: string, excluded?: Readonly<Record<number, string>>])[]
  ): NamedWorld => ({
    executors: Object.entries(executors).map(([executor, capacity]) => ({
      executor,
      ...(capacity === undefined ? {} : { capacity }),
    })),
    tables: tables.map(([owners, excluded = {}], at) =>
      refusing(
        { table: `t${at}`, owners: [...owners].map((letter) => (letter === "." ? undefined : letter)) },
        Object.fromEntries(Object.entries(excluded).map(([partition, names]) => [partition, [...names]])),
      ),
    ),
  });
  const any = undefined;

  test("within a table an exchange is a move; by way of another table it would be two", () => {
    const after = step(world({ A: any, B: any }, ["A..A", { 1: "B" }], ["A"]));
    expect(after).toMatchObject({ moves: 1, unowned: 0 });
    expect(Object.values(loads(after, "t0"))).toEqual([2, 2]);
  });

  test("an exchange among what is free anyway comes before one that moves", () => {
    expect(step(world({ A: any, B: any }, ["A..", { 2: "B" }]))).toMatchObject({ moves: 0, unowned: 0 });
  });

  test("where a table alone cannot be evened, totals are, through a third executor", () => {
    const after = step(world({ A: any, B: any, C: any }, ["A.B", { 0: "C", 1: "BC" }]));
    expect(loads(after)).toEqual({ A: 1, B: 1, C: 1 });
  });

  test("nobody stays above capacity because the bounds cannot be met", () => {
    const after = step(world({ A: 1, B: any }, ["BAA.A", { 1: "B" }], ["A.", { 0: "AB" }]));
    expect(loads(after)).toEqual({ A: 1, B: 5 });
    expect(after.unowned).toBe(1);
  });

  test("what an executor cannot take is not counted on", () => {
    const after = step(world({ A: 1, B: any }, ["..AA", { 0: "B", 1: "AB", 3: "B" }], ["A"]));
    expect(after).toMatchObject({ moves: 2, unowned: 2 });
  });

  test("what nobody may take is no part of anyone's share", () => {
    expect(loads(step(world({ A: any, B: 1 }, ["A..", { 1: "AB" }])))).toEqual({ A: 1, B: 1 });
  });

  test("what others may take is given up before what nobody may", () => {
    const after = step(world({ A: 4 }, ["A.A"], ["AAAA", { 3: "A" }]));
    expect(after.tables[1]?.owners[3]).toBe("A");
    expect(after).toMatchObject({ moves: 2, unowned: 3 });
  });

  test("what is given up so that nobody may take it changes the shares, and the plan is made with those", () => {
    const after = step(world({ A: 2, B: 2 }, ["BBBB", { 0: "AB" }], ["A.AAA", { 0: "AB", 2: "AB", 4: "AB" }]));
    expect(step(after)).toMatchObject({ moves: 0, kept: 4 });
  });

  test("a change that betters nothing is not made", () => {
    const after = step(world({ A: 2, B: 4, C: any }, [".BB", { 0: "AC", 1: "BC", 2: "BC" }]));
    expect(after).toMatchObject({ moves: 1, unowned: 0 });
  });
});
