import { describe, expect, test } from "vitest";
import { readDocument } from "../../src/config/document.ts";
import { formatProblem } from "../../src/config/source.ts";
import { readTables } from "../../src/config/tables.ts";
import { MAX_PARTITIONS } from "../../src/model/partition-set.ts";

function read(yaml: string): { readonly specs: readonly unknown[]; readonly problems: readonly string[] } {
  const content = readDocument(yaml, "evenkeel.yaml");
  expect(content.problems).toEqual([]);
  if (content.tables === undefined) throw new Error("there are no tables in the file");
  const { specs, problems } = readTables(content.tables);
  return { specs, problems: problems.map(formatProblem) };
}

describe("tables of the file", () => {
  test("numbered and keyed, with defaults", () => {
    const { specs, problems } = read(
      "tables:\n  - { name: trips, partitions: 128, stop: 1m }\n  - { name: events, keys: [eu, us] }\n",
    );
    expect(problems).toEqual([]);
    const rest = { handoff: "exclusive", balance: "count", selector: {} };
    expect(specs).toEqual([
      { table: "trips", count: 128, stopMs: 60_000, ...rest },
      { table: "events", count: 2, keys: ["eu", "us"], stopMs: 30_000, ...rest },
    ]);
  });

  test("F7: no tables is a decision, and differs from no key", () => {
    expect(read("tables: []")).toEqual({ specs: [], problems: [] });
    expect(readDocument("cluster: a", "evenkeel.yaml").tables).toBeUndefined();
  });

  test("the largest is taken, one more is refused", () => {
    expect(read(`tables: [{ name: a, partitions: ${MAX_PARTITIONS} }]`).problems).toEqual([]);
    expect(read(`tables: [{ name: a, partitions: ${MAX_PARTITIONS + 1} }]`).problems).toEqual([
      "evenkeel.yaml:1:33: tables[0].partitions is 1048577; write a whole number, 1 to 1048576",
    ]);
    const key = "𝒌".repeat(256);
    expect(read(`tables: [{ name: a, keys: [${key}] }]`).problems).toEqual([]);
    expect(read(`tables: [{ name: a, keys: [${key}k] }]`).problems).toEqual([
      expect.stringContaining("tables[0].keys[0] is"),
    ]);
  });

  const refused: readonly (readonly [string, string])[] = [
    ["5", "1:9: tables is 5; write a list such as [{ name: trips, partitions: 128 }], or [] for no tables"],
    ["", "1:9: tables is null; write a list such as [{ name: trips, partitions: 128 }]"],
    ["[trips]", '1:10: tables[0] is "trips"; write { name: trips, partitions: 128 }'],
    ["{ trips: 128 }", '1:9: tables is {"trips":128}; write a list such as [{ name: trips'],
    ["[{ partitions: 1 }]", "1:10: tables[0].name is missing"],
    ["[{ name: a }]", "1:10: tables[0] has neither partitions nor keys; write { name: trips"],
    ["[{ name: a, partitions: 1, keys: [b] }]", "1:42: tables[0].keys stands beside partitions 1"],
    [
      "[{ name: a, partitions: 1, handof: exclusive }]",
      "1:44: tables[0].handof is not a key of a table; did you mean handoff?",
    ],
    ["[{ name: a b, partitions: 1 }]", '1:18: tables[0].name is "a b"; write 1 to 128'],
    ["[{ name: a, partitions: '1' }]", '1:33: tables[0].partitions is "1"; write a whole number'],
    ["[{ name: a, keys: [] }]", "1:27: tables[0].keys is empty"],
    ["[{ name: a, keys: [b, b] }]", '1:31: tables[0].keys[1] is "b", the same as keys[0]'],
    ['[{ name: a, keys: [""] }]', '1:28: tables[0].keys[0] is ""; write a text'],
    ['[{ name: a, keys: ["\\ud800"] }]', "1:28: tables[0].keys[0] is"],
    ["[{ name: a, keys: [1] }]", "1:28: tables[0].keys[0] is 1; write a text"],
    ["[{ name: a, partitions: 1, stop: soon }]", '1:42: tables[0].stop is "soon"; write a duration'],
    [
      "[{ name: a, partitions: 1 }, { name: a, partitions: 2 }]",
      '1:46: tables[1].name is "a", the same as that of tables[0]',
    ],
    ["[{ name: a, partitions: 1, handoff: overlap }]", "1:45: tables[0].handoff overlap is not supported yet"],
    ["[{ name: a, partitions: 1, handoff: both }]", '1:45: tables[0].handoff is "both"; write exclusive or overlap'],
    ["[{ name: a, partitions: 1, balance: load }]", "1:45: tables[0].balance load is not supported yet"],
    ["[{ name: a, partitions: 1, selector: { pool: fast } }]", "1:46: tables[0].selector is not supported yet"],
    ["[{ name: a, partitions: 1, selector: { __proto__: x } }]", "1:46: tables[0].selector has the name __proto__"],
    ["[{ name: a, partitions: 1, __proto__: { b: 1 } }]", "1:47: tables[0].__proto__ is not a key of a table"],
    [
      "[{ name: a, partitions: 1, selector: { pool: 1 } }]",
      "1:54: tables[0].selector.pool is 1; write a label's value",
    ],
  ];
  test.each(refused)("refused: %s", (yaml, message) => {
    const { problems } = read(`tables: ${yaml}`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`evenkeel.yaml:${message}`);
  });
});
