import { describe, expect, test } from "vitest";
import { emptyChange } from "../../src/model/change.ts";
import { REVISIONS_PER_SECOND } from "../../src/store/first-revision.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { testStore } from "../../src/testing/store-conformance.ts";

let ids = 0;
const random = { id: () => `id-${++ids}` };
const create = (options: { maxKept?: number } = {}) => new MemoryStore({ clock: new FakeClock(), random, ...options });

testStore({ describe, test }, "memory:", async ({ maxChanges }) => {
  return { store: create(maxChanges === undefined ? {} : { maxKept: maxChanges }) };
});

test("the first revision of an incarnation is unix seconds at its creation, times 2^20", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore({ clock, random });
  const { floor } = await store.load(await store.acquire());
  expect(floor + 1).toBe(Math.floor(clock.wall() / 1_000) * REVISIONS_PER_SECOND);
  expect(Number.isSafeInteger(floor + REVISIONS_PER_SECOND)).toBe(true);
});

test("two stores are two incarnations, with different keys", async () => {
  const [one, two] = await Promise.all([create().acquire(), create().acquire()]);
  expect(one.incarnation).not.toBe(two.incarnation);
  expect(one.stampKey).not.toEqual(two.stampKey);
});

test("a checkpoint lets old changes go, but never one that it does not cover", async () => {
  const store = create({ maxKept: 3 });
  const reign = await store.acquire();
  const { floor } = await store.load(reign);
  for (let n = 1; n <= 10; n++) await store.append(reign, emptyChange(floor + n, reign.term));
  const kept = async () => {
    const revisions: number[] = [];
    for await (const { revision } of store.read(0, Number.MAX_SAFE_INTEGER)) revisions.push(revision - floor);
    return revisions;
  };
  await store.checkpoint(reign, { revision: floor + 2, state: {} });
  expect(await kept()).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  await store.checkpoint(reign, { revision: floor + 10, state: {} });
  expect(await kept()).toEqual([8, 9, 10]);
  const follower = store.follow(floor + 7, new AbortController().signal)[Symbol.asyncIterator]();
  await expect(follower.next()).rejects.toThrow("no longer kept");
});
