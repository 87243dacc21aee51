import { describe, expect, test } from "vitest";
import { DEFAULT_SETTINGS, stretched } from "../../src/model/settings.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { FLOOR, Rig } from "./scripted-core.ts";

const { lease } = DEFAULT_SETTINGS;

describe("the largest lease ever issued", () => {
  test("is durable before the core's first turn, and told to it as it was before", async () => {
    const rig = new Rig();
    rig.store.loaded = { changes: [], floor: FLOOR, maxLeaseMs: 4_000 };
    rig.script = () => {
      expect(rig.store.leases).toEqual([lease.durationMs]);
      return {};
    };
    await rig.start();
    expect(rig.started).toMatchObject({ maxLeaseMs: 4_000 });
    expect(rig.store.leases).toEqual([lease.durationMs]);
  });

  test("is lowered only when the longer ones have run out", async () => {
    const rig = new Rig();
    rig.store.loaded = { changes: [], floor: FLOOR, maxLeaseMs: 60_000 };
    await rig.start();
    rig.clock.advance(stretched(60_000, lease) - 1);
    expect(rig.store.leases).toEqual([]);
    rig.clock.advance(1);
    await settle();
    expect(rig.store.leases).toEqual([lease.durationMs]);
  });

  test("after a restore: the wait is over for the next start when it is over for this one", async () => {
    const rig = new Rig();
    rig.store.loaded = { changes: [], floor: FLOOR, maxLeaseMs: lease.durationMs, quarantineMs: 90_000 };
    await rig.start();
    expect(rig.started).toMatchObject({ quarantineMs: 90_000 });
    rig.clock.advance(stretched(90_000, lease));
    await settle();
    expect(rig.store.leases).toEqual(["quarantine ended"]);
  });
});
