import { describe, expect, test } from "vitest";
import { placeTable } from "../../src/plan/placement.ts";
import { computePlan } from "../../src/plan/plan.ts";
import { loads, type NamedWorld, named, planWorld, step, table, toInput } from "./world.ts";

const letters = (text: string) => ({
  table: "t",
  owners: [...text].map((letter) => (letter === "." ? undefined : letter === "#" ? null : letter)),
});

/** Owners of the only table as text, a letter per partition. */
function picture({ tables }: NamedWorld): string {
  return (tables[0]?.owners ?? []).map((owner) => (owner === null ? "#" : (owner ?? "."))).join("");
}

const plan = (text: string, ...names: string[]) =>
  picture(planWorld({ executors: named(...names), tables: [letters(text)] }));

function ranges({ tables }: NamedWorld): number {
  return tables.reduce(
    (sum, { owners }) => sum + owners.filter((owner, at) => at === 0 || owner !== owners[at - 1]).length,
    0,
  );
}

describe("which partitions", () => {
  test("a first plan gives each executor one range", () => {
    expect(plan("............", "A", "B", "C")).toBe("AAAABBBBCCCC");
  });

  test("a first plan of many tables gives each executor one range of each", () => {
    const tables = [...Array(7).keys()].map((at) => table(`t${at}`, 31 + at));
    expect(ranges(planWorld({ executors: named("A", "B", "C", "D"), tables }))).toBe(7 * 4);
  });

  test("what is free goes to the neighbour that needs some", () => {
    expect(plan("BBB......AAA", "A", "B")).toBe("BBBBBBAAAAAA");
    expect(plan("AAA...BBB...", "A", "B")).toBe("AAAAAABBBBBB");
  });

  test("a neighbour that gives is taken from at the border", () => {
    expect(plan("AABBBBBB", "A", "B")).toBe("AAAABBBB");
    expect(plan("BBBBBBAA", "A", "B")).toBe("BBBBAAAA");
  });

  test("two neighbours that give, give at their border: the newcomer has one range", () => {
    expect(plan("AAAAAABBBBBB", "A", "B", "C")).toBe("AAAACCCCBBBB");
  });

  test("fragments are given before a range is cut", () => {
    expect(plan("AAAAAABABBBB", "A", "B", "C")).toMatch(/^A{4}.*B{4}$/);
    expect(plan("AAAABBBBBABA", "A", "B", "C")).toBe("AAAABBBBCCCC");
  });

  test("fixed partitions stay and are no neighbours", () => {
    expect(plan("##..A##.", "A", "B")).toBe("##BAA##B");
  });

  test("of what cannot be placed, the lowest numbers are", () => {
    const executors = [{ executor: "A", capacity: 2 }];
    expect(picture(planWorld({ executors, tables: [letters("......")] }))).toBe("AA....");
  });

  test("joins and leaves do not break ranges up ever more", () => {
    let world = planWorld({ executors: named("A", "B", "C", "D", "E"), tables: [table("t", 500), table("u", 300)] });
    for (let round = 0; round < 40; round++) {
      const gone = round % 5;
      const [first, ...others] = [...world.executors.slice(gone), ...world.executors.slice(0, gone)];
      world = planWorld({ ...world, executors: others });
      world = step({ ...world, executors: [...others, { executor: `${first?.executor}${round}` }] });
      expect(Object.values(loads(world))).toEqual(new Array(5).fill(160));
    }
    // Two tables of five executors; three ranges for each of them are still few.
    expect(ranges(world)).toBeLessThanOrEqual(2 * 5 * 3);
  });
});

test("a table of which nothing changes comes back with the very array of the input", () => {
  const input = toInput({ executors: named("A", "B"), tables: [letters("AABB"), { ...letters("AAA."), table: "u" }] });
  const result = computePlan(input);
  expect(result.tables[0]?.owner).toBe(input.tables[0]?.owner);
  expect(result.tables[1]?.owner).not.toBe(input.tables[1]?.owner);
});

test("what may go nowhere is left in the balance", () => {
  const balance = Int32Array.of(1, 0);
  const owner = placeTable(
    {
      table: "t",
      owner: Int32Array.of(1, -1),
      excluded: new Map([
        [0, [0]],
        [1, [0]],
      ]),
    },
    balance,
  );
  expect([...owner]).toEqual([1, -1]);
  expect([...balance]).toEqual([1, 0]);
});

test("a million free partitions are dealt to 10,000 executors in one pass", () => {
  const balance = new Int32Array(10_000).fill(100);
  const owner = placeTable({ table: "t", owner: new Int32Array(1_000_000).fill(-1) }, balance);
  expect(owner.every((at, partition) => at === Math.floor(partition / 100))).toBe(true);
});
