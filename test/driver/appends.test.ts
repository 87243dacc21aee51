import { describe, expect, test } from "vitest";
import { CHECKPOINT_ENTRIES, CHECKPOINT_EVERY } from "../../src/driver/driver.ts";
import { StoreError } from "../../src/driver/ports.ts";
import { emptyChange } from "../../src/model/change.ts";
import { executorId, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { append, FLOOR, lease, Rig, renew, TRIPS } from "./scripted-core.ts";

/** A rig whose core appends one change at its first renew, and answers every renew. */
async function appending(): Promise<Rig> {
  const rig = new Rig();
  await rig.start();
  let revision = FLOOR;
  rig.script = ({ events }) => ({
    effects: events.flatMap((event) => {
      if (event.type !== "renew.received") return [];
      return event.n === 1 ? [append(++revision), lease(1)] : [lease(event.n)];
    }),
  });
  return rig;
}

const unknown = async () => {
  throw new Error("the disk did not answer");
};

describe("an append", () => {
  test("that lands comes back as exactly that change, with the wall time of its append", async () => {
    const rig = await appending();
    rig.driver.post(renew(1));
    await settle();
    await settle();
    const change = { ...emptyChange(FLOOR + 1, 1), at: rig.clock.wall() };
    expect(rig.store.appended).toEqual([change]);
    expect(rig.turns[1]?.events).toEqual([{ type: "change.committed", change }]);
    expect(rig.driver.revision()).toBe(FLOOR + 1);
  });

  test("that is slow keeps nobody from being answered", async () => {
    const rig = await appending();
    let land: () => void = () => {};
    rig.store.onAppend = () =>
      new Promise<void>((resolve) => {
        land = resolve;
      });
    rig.driver.post(renew(1));
    await rig.clock.advanceAsync(20_000);
    rig.driver.post(renew(2));
    await settle();
    expect(rig.sent).toEqual([lease(1), lease(2)]);
    expect(rig.driver.ready()).toBe(true);
    land();
    await settle();
    await settle();
    expect(rig.seen).toEqual([["renew.received"], ["renew.received"], ["change.committed"]]);
  });

  test.each(["stale-reign", "gap"] as const)("refused as %s ends the reign", async (code) => {
    const rig = await appending();
    rig.store.onAppend = async () => {
      throw new StoreError(code, "another scheduler writes");
    };
    rig.driver.post(renew(1));
    expect((await rig.driver.failed).message).toContain("another scheduler writes");
    expect(rig.events).toContain("leader.lost");
    rig.driver.post(renew(2));
    await settle();
    expect(rig.sent).toEqual([lease(1)]);
    expect(rig.driver.ready()).toBe(false);
  });
});

describe("P8, P27: an append of unknown outcome", () => {
  test("that landed stands; nothing is sent until the store was read, then the expiries are held", async () => {
    const rig = await appending();
    let isDown = true;
    rig.store.onAppend = unknown;
    rig.store.onRead = () => {
      if (isDown) throw new Error("still down");
      return rig.store.appended;
    };
    rig.driver.post(renew(1));
    await settle();
    rig.driver.post(renew(2));
    await rig.clock.advanceAsync(30_000);
    expect(rig.sent).toEqual([lease(1)]);
    expect(rig.turns).toHaveLength(1);
    expect(rig.driver.ready()).toBe(false);
    expect(rig.driver.status()).toMatchObject({ state: "store-failed", converged: false });
    await expect(rig.driver.putTable(TRIPS, "api")).rejects.toMatchObject({ code: "store-unavailable" });
    isDown = false;
    await rig.clock.advanceAsync(5_000);
    expect(rig.turns).toHaveLength(2);
    const [stalled, committed, waited] = rig.turns[1]?.events ?? [];
    expect(stalled).toMatchObject({ type: "loop.stalled" });
    expect(stalled?.type === "loop.stalled" ? stalled.stalledMs : 0).toBeGreaterThanOrEqual(30_000);
    expect(committed).toEqual({ type: "change.committed", change: rig.store.appended[0] });
    expect(waited).toEqual(renew(2));
    expect(rig.sent).toEqual([lease(1), lease(2)]);
    expect(rig.driver.ready()).toBe(true);
    expect(rig.driver.status().state).toBe("working");
  });

  test("that did not land is decided afresh", async () => {
    const rig = await appending();
    rig.store.onAppend = unknown;
    rig.driver.post(renew(1));
    await settle();
    await settle();
    const last = rig.turns.at(-1)?.events.at(-1);
    expect(last).toEqual({ type: "append.failed", revision: FLOOR + 1, error: "the disk did not answer" });
    expect(rig.driver.revision()).toBe(FLOOR);
    expect(rig.logged.find(({ event }) => event === "store.failed")?.level).toBe("error");
  });

  test("reads are repeated with growing waits", async () => {
    const rig = await appending();
    rig.store.onAppend = unknown;
    rig.store.onRead = () => {
      throw new Error("still down");
    };
    rig.driver.post(renew(1));
    await rig.clock.advanceAsync(6_000);
    // At 0, 100, 300, 700, 1,500, 3,100 ms, and the next at 6,300.
    expect(rig.store.reads).toBe(6);
    await rig.clock.advanceAsync(60_000);
    expect(rig.store.reads).toBeLessThanOrEqual(6 + 13);
    expect(rig.store.reads).toBeGreaterThanOrEqual(6 + 11);
  });

  test("where another reign wrote that revision, this one is over", async () => {
    const rig = await appending();
    rig.store.onAppend = unknown;
    rig.store.onRead = (revision) => [emptyChange(revision, 2)];
    rig.driver.post(renew(1));
    expect((await rig.driver.failed).message).toContain("written by term 2");
    expect(rig.seen.flat()).not.toContain("change.committed");
  });

  test("a stop does not wait for the store to answer", async () => {
    const rig = await appending();
    rig.store.onAppend = unknown;
    rig.store.onRead = () => {
      throw new Error("still down");
    };
    rig.driver.post(renew(1));
    await settle();
    const stopped = rig.driver.stop();
    await rig.clock.advanceAsync(21_000);
    await stopped;
    expect(rig.clock.pendingTimers).toBe(0);
    expect(rig.sent).toEqual([lease(1)]);
  });
});

test("a reign that the store takes away ends the turning", async () => {
  const rig = new Rig();
  await rig.start();
  rig.store.lose("the lock is gone");
  expect((await rig.driver.failed).message).toContain("the lock is gone");
  expect(rig.logged.at(-1)).toMatchObject({ level: "error", event: "leader.lost" });
  expect(rig.driver.ready()).toBe(false);
});

test("a checkpoint is kept every so many changes", async () => {
  const rig = new Rig();
  await rig.start();
  rig.script = ({ events }) => {
    const committed = events.find((event) => event.type === "change.committed");
    const next = committed === undefined ? FLOOR + 1 : committed.change.revision + 1;
    return next > FLOOR + 2 * CHECKPOINT_EVERY ? {} : { effects: [append(next)] };
  };
  rig.driver.post(renew(1));
  while (rig.driver.revision() < FLOOR + 2 * CHECKPOINT_EVERY) await settle();
  const at = [FLOOR + CHECKPOINT_EVERY, FLOOR + 2 * CHECKPOINT_EVERY];
  expect(rig.store.checkpoints).toEqual(at.map((revision) => ({ revision, state: { at: revision } })));
});

test("a change of very many entries is followed by a checkpoint at once, so that no start has to fold it", async () => {
  const rig = new Rig();
  await rig.start();
  const entry = { table: tableName("t"), partitions: PartitionSet.empty, executor: executorId("A") };
  const change = { ...emptyChange(FLOOR + 1, 1), release: Array(CHECKPOINT_ENTRIES).fill(entry) };
  rig.script = ({ now, events }) =>
    events.some((event) => event.type === "renew.received")
      ? { effects: [{ type: "store.append", change }] }
      : { wakeAt: now + 60_000 };
  rig.driver.post(renew(1));
  await settle();
  await settle();
  expect(rig.store.checkpoints.map(({ revision }) => revision)).toEqual([FLOOR + 1]);
});
