import assert from "node:assert/strict";
import { type Reign, type Store, StoreError } from "../driver/ports.ts";
import { type Change, emptyChange } from "../model/change.ts";
import { present } from "../model/errors.ts";
import { executorId, instanceId, type Revision, tableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";

/** The functions of a test runner that the suite needs; those of vitest, jest and node:test all fit. */
export interface TestFunctions {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => Promise<void>): unknown;
}

/** A store that nobody has used yet, and how to be rid of it. */
export interface StoreFixture {
  readonly store: Store;
  /**
   * The same store as another process finds it that starts later; called while no reign lasts. Absent for a store that
   * lives as long as its process: there the same object goes on.
   */
  reopen?(): Promise<Store>;
  close?(): Promise<void>;
}

export interface StoreFixtureOptions {
  /** Changes that checkpoints leave at least; the store may let older ones go. Absent: as many as it likes. */
  readonly maxChanges?: number;
}

/** Tests that every adapter of the store port passes. `create` is called once for each of them. */
export function testStore(
  { describe, test }: TestFunctions,
  name: string,
  create: (options: StoreFixtureOptions) => Promise<StoreFixture>,
): void {
  describe(`${name} keeps the store port's promises`, () => {
    for (const [title, body] of Object.entries({ ...REIGNS, ...APPENDS, ...READS, ...CHECKPOINTS })) {
      test(title, async () => {
        const fixture = await create(body === CHECKPOINTS[RETENTION] ? { maxChanges: KEPT } : {});
        try {
          await body(fixture.store, async () => (await fixture.reopen?.()) ?? fixture.store);
        } finally {
          await fixture.close?.();
        }
      });
    }
  });
}

type Cases = Readonly<Record<string, (store: Store, reopen: () => Promise<Store>) => Promise<void>>>;

const RETENTION = "old changes go behind a checkpoint, never one that a load needs, and whoever asks for them is told";
const KEPT = 3;

const REIGNS: Cases = {
  "terms rise; incarnation and stamp key stay": async (store) => {
    const first = await store.acquire();
    await store.release(first);
    const second = await store.acquire();
    assert.ok(first.term >= 1);
    assert.ok(second.term > first.term);
    assert.equal(second.incarnation, first.incarnation);
    assert.deepEqual(second.stampKey, first.stampKey);
    assert.ok(first.stampKey.length >= 16);
  },

  "who wants to reign waits until the present reign is over": async (store) => {
    const first = await store.acquire();
    let isAcquired = false;
    const acquired = store.acquire().finally(() => {
      isAcquired = true;
    });
    await append(store, first, 1);
    assert.equal(isAcquired, false);
    await store.release(first);
    assert.ok((await acquired).term > first.term);
  },

  "a reign that is over may not append, load or keep a checkpoint": async (store) => {
    const first = await store.acquire();
    const [{ revision }] = await append(store, first, 1);
    await store.release(first);
    const second = await store.acquire();
    await refuses("stale-reign", store.append(first, changeAt(revision + 1)));
    await refuses("stale-reign", store.load(first));
    await refuses("stale-reign", store.checkpoint(first, { revision, state: {} }));
    await refuses("stale-reign", store.setMaxLease(first, 1));
    await refuses("stale-reign", store.endQuarantine(first));
    assert.deepEqual(await revisions(store, second), [revision]);
  },

  "a release is idempotent, and never ends a later reign": async (store) => {
    const first = await store.acquire();
    await store.release(first);
    await store.release(first);
    const second = await store.acquire();
    await store.release(first);
    await append(store, second, 1);
  },

  "the next process has a higher term on the same incarnation, and finds every change": async (store, reopen) => {
    const first = await store.acquire();
    const { floor } = await store.load(first);
    const changes = await append(store, first, 3);
    await store.release(first);
    const later = await reopen();
    const second = await later.acquire();
    assert.ok(second.term > first.term);
    assert.equal(second.incarnation, first.incarnation);
    assert.deepEqual(second.stampKey, first.stampKey);
    const loaded = await later.load(second);
    assert.equal(loaded.floor, floor);
    sameChanges(loaded.changes, changes);
    await append(later, second, 1);
  },

  "the largest lease is kept for whoever comes next, and can be lowered": async (store, reopen) => {
    const first = await store.acquire();
    assert.equal((await store.load(first)).maxLeaseMs, 0);
    await store.setMaxLease(first, 30_000);
    assert.equal((await store.load(first)).maxLeaseMs, 30_000);
    await store.release(first);
    const later = await reopen();
    const second = await later.acquire();
    assert.equal((await later.load(second)).maxLeaseMs, 30_000);
    await later.setMaxLease(second, 15_000);
    await later.release(second);
    const last = await reopen();
    assert.equal((await last.load(await last.acquire())).maxLeaseMs, 15_000);
  },

  "a store that was never restored has no quarantine, and may be told that it is over": async (store) => {
    const reign = await store.acquire();
    await store.endQuarantine(reign);
    assert.equal((await store.load(reign)).quarantineMs, undefined);
  },
};

const APPENDS: Cases = {
  "an empty store gives a floor, and the first change follows it": async (store) => {
    const reign = await store.acquire();
    const { floor, changes, checkpoint } = await store.load(reign);
    assert.deepEqual(changes, []);
    assert.equal(checkpoint, undefined);
    await refuses("gap", store.append(reign, changeAt(floor)));
    await refuses("gap", store.append(reign, changeAt(floor + 2)));
    await store.append(reign, changeAt(floor + 1));
    assert.deepEqual(await revisions(store, reign), [floor + 1]);
  },

  "revisions have no gap and none comes twice; what is refused is not written": async (store) => {
    const reign = await store.acquire();
    const [first, second] = await append(store, reign, 2);
    for (const revision of [first.revision, second.revision, second.revision + 2]) {
      await refuses("gap", store.append(reign, changeAt(revision)));
    }
    await store.append(reign, changeAt(second.revision + 1));
    const expected = [first.revision, second.revision, second.revision + 1];
    assert.deepEqual(await revisions(store, reign), expected);
  },

  "a change comes back whole, also in a later reign": async (store) => {
    const first = await store.acquire();
    const { floor } = await store.load(first);
    const change = fullChange(floor + 1, first.term);
    await store.append(first, change);
    await store.release(first);
    const { changes } = await store.load(await store.acquire());
    sameChanges(changes, [change]);
    assert.equal(changes[0]?.own[0]?.partitions.size, 4_096);
    const [table] = changes[0]?.tables ?? [];
    assert.ok(table !== undefined && !("removed" in table) && table.retired?.has(3));
  },
};

const READS: Cases = {
  "reads are inclusive at both ends, ascending, and clipped to what there is": async (store) => {
    const changes = await append(store, await store.acquire(), 5);
    const first = changes[0].revision;
    sameChanges(await all(store.read(first + 1, first + 3)), changes.slice(1, 4));
    sameChanges(await all(store.read(first - 10, first + 100)), changes);
    sameChanges(await all(store.read(first + 4, first + 4)), changes.slice(4));
    sameChanges(await all(store.read(first + 5, first + 5)), []);
    sameChanges(await all(store.read(first + 2, first + 1)), []);
    sameChanges(await all(store.read(first - 2, first - 1)), []);
  },

  "followers get what is there, then what comes, each in order, until they abort": async (store) => {
    const reign = await store.acquire();
    const before = await append(store, reign, 3);
    const [one, two] = [new Follower(store, before[0].revision), new Follower(store, before[2].revision)];
    sameChanges(await one.take(3), before);
    sameChanges(await two.take(1), before.slice(2));
    const next = [one.take(2), two.take(2)] as const;
    const after = await append(store, reign, 2);
    for (const taken of next) sameChanges(await taken, after);
    const ended = one.take(1);
    one.abort();
    assert.deepEqual(await ended, []);
    const last = two.take(1);
    const [only] = await append(store, reign, 1);
    sameChanges(await last, [only]);
    two.abort();
  },
};

const CHECKPOINTS: Cases = {
  "a load starts at the newest checkpoint": async (store, reopen) => {
    const reign = await store.acquire();
    const changes = await append(store, reign, 4);
    const at = (index: number): Revision => changes[0].revision + index;
    await store.checkpoint(reign, { revision: at(0), state: { of: "the first" } });
    await store.checkpoint(reign, { revision: at(2), state: { of: "the third" } });
    // One that was made earlier and comes late.
    await store.checkpoint(reign, { revision: at(1), state: { of: "the second" } });
    await store.release(reign);
    const later = await reopen();
    const loaded = await later.load(await later.acquire());
    assert.deepEqual(loaded.checkpoint, { revision: at(2), state: { of: "the third" } });
    sameChanges(loaded.changes, changes.slice(3));
  },

  "appends go on behind a checkpoint of everything": async (store) => {
    const reign = await store.acquire();
    const [{ revision }] = await append(store, reign, 1);
    await store.checkpoint(reign, { revision, state: {} });
    const [next] = await append(store, reign, 1);
    assert.equal(next.revision, revision + 1);
    sameChanges((await store.load(reign)).changes, [next]);
  },

  "appends go on behind a checkpoint of everything, also in the next process": async (store, reopen) => {
    const reign = await store.acquire();
    const [{ revision }] = await append(store, reign, 1);
    await store.checkpoint(reign, { revision, state: {} });
    await store.release(reign);
    const later = await reopen();
    const [next] = await append(later, await later.acquire(), 1);
    assert.equal(next.revision, revision + 1);
  },

  "a checkpoint of what is not there is refused": async (store) => {
    const reign = await store.acquire();
    const [{ revision }] = await append(store, reign, 1);
    await refuses("gap", store.checkpoint(reign, { revision: revision + 1, state: {} }));
    assert.equal((await store.load(reign)).checkpoint, undefined);
  },

  [RETENTION]: async (store, reopen) => {
    const reign = await store.acquire();
    const changes: Change[] = [];
    for (const count of [5, 5, 2]) {
      changes.push(...(await append(store, reign, count)));
      const { revision } = present(changes.at(-1), "last change");
      await store.checkpoint(reign, { revision, state: { at: revision } });
    }
    const [newest] = await append(store, reign, 1);
    changes.push(newest);
    const { revision: first } = present(changes[0], "first change");
    const kept = await all(store.read(first, newest.revision));
    assert.ok(kept.length > KEPT && kept.length < changes.length, `${kept.length} changes are kept`);
    sameChanges(kept, changes.slice(-kept.length));
    const follower = new Follower(store, first);
    await refuses("gap", follower.take(1));
    await store.release(reign);
    const later = await reopen();
    const loaded = await later.load(await later.acquire());
    assert.deepEqual(loaded.checkpoint, { revision: newest.revision - 1, state: { at: newest.revision - 1 } });
    sameChanges(loaded.changes, [newest]);
  },
};

/** Takes from a follow, a few changes at a time. */
class Follower {
  readonly #controller = new AbortController();
  readonly #changes: AsyncIterator<Change>;

  constructor(store: Store, from: Revision) {
    this.#changes = store.follow(from, this.#controller.signal)[Symbol.asyncIterator]();
  }

  /** The next changes; fewer if it was aborted. */
  async take(count: number): Promise<Change[]> {
    const taken: Change[] = [];
    while (taken.length < count) {
      const { value, done } = await this.#changes.next();
      if (done === true) break;
      taken.push(value);
    }
    return taken;
  }

  abort(): void {
    this.#controller.abort();
  }
}

/** Appends so many small changes behind the last one. */
async function append(store: Store, reign: Reign, count: number): Promise<[Change, Change, Change, ...Change[]]> {
  const { floor, checkpoint, changes } = await store.load(reign);
  const last = changes.at(-1)?.revision ?? checkpoint?.revision ?? floor;
  const added = Array.from({ length: count }, (_, index) => changeAt(last + 1 + index, reign.term));
  for (const change of added) await store.append(reign, change);
  return added as [Change, Change, Change, ...Change[]];
}

async function revisions(store: Store, reign: Reign): Promise<Revision[]> {
  return (await store.load(reign)).changes.map((change) => change.revision);
}

function changeAt(revision: Revision, term = 1): Change {
  return {
    ...emptyChange(revision, term),
    at: 1_767_225_600_000,
    cause: [{ kind: "table", note: `number ${revision}` }],
  };
}

/** A change with an entry in every member, one of them large. */
function fullChange(revision: Revision, term: number): Change {
  const executor = executorId("executor:1");
  const instance = instanceId("i-1");
  const table = tableName("trips");
  const partitions = PartitionSet.of(Array.from({ length: 4_096 }, (_, index) => 2 * index));
  const some = PartitionSet.parse("0-15,20");
  const holding = { table, partitions: some, executor };
  const record = { table, count: 8_192, handoff: "exclusive", stopMs: 30_000, balance: "count", selector: {} } as const;
  return {
    ...changeAt(revision, term),
    executors: [
      { executor, instance, state: "live", replaced: [instanceId("i-0")], weight: 1.5, labels: { zone: "a b é" } },
      { executor: executorId("gone"), removed: true },
    ],
    tables: [
      { ...record, created: revision, origin: "api", keys: ["k=1", "Ω"], retired: PartitionSet.parse("3") },
      { table: tableName("old"), removed: true },
    ],
    release: [{ ...holding, to: executorId("other") }],
    unown: [{ table, partitions: some, reason: "reserved", to: executor }],
    own: [{ table, partitions, executor, instance }],
    prepare: [holding],
    unprepare: [{ ...holding, reason: "cancelled" }],
    ready: [holding],
    unready: [holding],
    ended: [{ ...holding, epoch: revision - 1 }],
    declared: true,
  };
}

async function all(changes: AsyncIterable<Change>): Promise<Change[]> {
  const out: Change[] = [];
  for await (const change of changes) out.push(change);
  return out;
}

/** Compares as JSON: there partition sets are their text. */
function sameChanges(actual: readonly Change[], expected: readonly Change[]): void {
  assert.deepEqual(JSON.parse(JSON.stringify(actual)), JSON.parse(JSON.stringify(expected)));
}

async function refuses(code: StoreError["code"], call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => error instanceof StoreError && error.code === code);
}
