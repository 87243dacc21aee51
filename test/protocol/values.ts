import * as fc from "fast-check";
import type { Cause } from "../../src/model/change.ts";
import type { Failure, Grant, PartitionKey, Revoke, TableFacts } from "../../src/model/grant.ts";
import { type ExecutorId, executorId, type TableName, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import type { Push } from "../../src/protocol/paging.ts";
import type { PartitionLoad } from "../../src/protocol/values.ts";

/** Arbitrary values of the protocol, for property tests. */

const ID_CHARS = "ABCXYZabcxyz0189._:-";

export const anyId: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom("a", "Z", "0"), fc.string({ unit: fc.constantFrom(...ID_CHARS), maxLength: 20 }))
  .map(([first, rest]) => first + rest);
const anyExecutor: fc.Arbitrary<ExecutorId> = anyId.map(executorId);
const anyTable: fc.Arbitrary<TableName> = anyId.map(tableName);

export const anySet: fc.Arbitrary<PartitionSet> = fc
  .array(fc.tuple(fc.nat({ max: 5000 }), fc.nat({ max: 3 })), { maxLength: 60 })
  .map((runs) => PartitionSet.of(runs.flatMap(([low, more]) => Array.from({ length: more + 1 }, (_, i) => low + i))));

export const anyText = fc.string({ unit: "grapheme", maxLength: 20 });
const anyCount = fc.nat();
const anyBit = fc.boolean();

const grantMembers = { table: anyTable, partitions: anySet, epoch: anyCount };
const byTableThenEpoch = (a: Grant, b: Grant) => (a.table < b.table ? -1 : a.table > b.table ? 1 : a.epoch - b.epoch);

/** Lists as the server makes them: ascending, one entry for each table and epoch. */
function ordered<T extends Grant>(entry: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> {
  return fc
    .uniqueArray(entry, { selector: ({ table, epoch }) => `${table} ${epoch}`, maxLength: 8 })
    .map((list) => list.sort(byTableThenEpoch));
}

export const anyGrants: fc.Arbitrary<readonly Grant[]> = ordered(fc.record(grantMembers));
export const anyRevokes: fc.Arbitrary<readonly Revoke[]> = ordered(fc.record({ ...grantMembers, stopMs: anyCount }));
export const anyFailures: fc.Arbitrary<readonly Failure[]> = ordered(
  fc.record({ ...grantMembers, reason: anyText, retryable: anyBit }),
);
export const anyLoads: fc.Arbitrary<readonly PartitionLoad[]> = fc.array(
  fc.record({
    table: anyTable,
    partition: fc.nat({ max: 1_048_575 }),
    load: fc.double({ min: 0, noNaN: true, max: 1e9 }),
  }),
);

const anyFacts: fc.Arbitrary<TableFacts> = fc.record({
  table: anyTable,
  count: fc.nat({ max: 1_048_576 }),
  created: anyCount,
  handoff: fc.constantFrom("exclusive", "overlap"),
});
const anyKey: fc.Arbitrary<PartitionKey> = fc.record({
  table: anyTable,
  partition: fc.nat({ max: 1_048_575 }),
  key: anyText,
});
const anyCause: fc.Arbitrary<Cause> = fc.record(
  {
    kind: fc.constantFrom("formation", "join", "operator"),
    executors: fc.array(anyExecutor, { maxLength: 3 }),
    tables: fc.array(anyTable, { maxLength: 3 }),
    by: anyText,
    note: anyText,
  },
  { requiredKeys: ["kind"], noNullPrototype: true },
);

export const anyPush: fc.Arbitrary<Push> = fc.record({
  revision: anyCount,
  base: fc.option(anyCount),
  cause: fc.array(anyCause, { maxLength: 2 }),
  grant: anyGrants,
  prepare: anyGrants,
  revoke: anyRevokes,
  tables: fc.array(anyFacts, { maxLength: 8 }),
  keys: fc.array(anyKey, { maxLength: 30 }),
});
