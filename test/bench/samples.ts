import type { Push } from "../../src/driver/ports.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";

const TABLE = tableName("trips");
const REVISION = 1_845_493_760_123;

/** A small push, as one change of a table makes it; another partition for another number. */
export function samplePush(number: number): Push {
  return {
    revision: REVISION,
    base: REVISION - 1,
    grant: [{ table: TABLE, partitions: PartitionSet.range(number, number), epoch: REVISION }],
    prepare: [],
    revoke: [],
    tables: [{ table: TABLE, count: 20_000, created: REVISION - 100, handoff: "exclusive" }],
    keys: [],
    cause: [{ kind: "table", tables: [TABLE] }],
  };
}
