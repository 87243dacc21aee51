import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, endAll, evenkeel } from "../cli/processes.ts";
import { Fleet, type Recorder } from "./fleet.ts";
import { Network } from "./network.ts";
import { findEpochsNotRising, findOverlaps, type Run } from "./record.ts";
import { epochsOf, placesOf } from "./stretch.ts";

/**
 * A scheduler comes back with another store than the one that its executors know: first an empty one, then one that was
 * restored from an old copy, while an executor hears nothing of it. The story is told once; what the processes wrote down is
 * compared afterwards. Safety is asserted strictly.
 */

const TABLES = { trips: 24, events: 15 };
const LATER = { extra: 12 };

const DRIFT = 0.01;
const SERVER_MARGIN_MS = 300;

/** What the operator says the lost store may have issued: more than it did. */
const MAX_LEASE_MS = 6000;

/** So long nothing is granted by a restored store. */
const QUARANTINE_MS = (MAX_LEASE_MS * (1 + DRIFT)) / (1 - DRIFT) + SERVER_MARGIN_MS;

const SETTINGS = [
  "--formation-quiet=500ms",
  "--formation-max=3s",
  "--join-quiet=100ms",
  "--join-max=500ms",
  "--lease-duration=4s",
  "--lease-renew=500ms",
  "--lease-client-margin=300ms",
  `--lease-server-margin=${SERVER_MARGIN_MS}ms`,
  `--lease-drift-rate=${DRIFT}`,
  "--loss-wait=1500ms",
];

/** Room for every wait of the story to take its whole patience. */
const STORY_LIMIT_MS = 400_000;

let fleet: Fleet;
let network: Network;
let runs: readonly Run[];
let all: readonly Recorder[];
let unaware: Recorder;
const incarnations: string[] = [];

/** When everybody had something, by the first store, the empty one and the restored one. */
let first: number;
let wipedAt: number;
let second: number;
let killedAt: number;
let restoredAt: number;
let third: number;

beforeAll(async () => {
  await build();
  fleet = await Fleet.start({ tables: TABLES, room: LATER, stop: "2s", settings: SETTINGS, durable: true });
  network = await Network.start(fleet.url);
  unaware = fleet.add("d", network.url);
  all = [fleet.add("a"), fleet.add("b"), fleet.add("c"), unaware];
  first = await settled(...all);

  await fleet.kill();
  fleet.wipe();
  wipedAt = await fleet.begin();
  for (const recorder of all) await fleet.serves(recorder, 0, 0);
  for (const [name, partitions] of Object.entries(TABLES)) await fleet.putTable(name, partitions);
  await settled(...all);
  const copy = join(fleet.folder, "backup.db");
  expect(await evenkeel(["store", "backup", fleet.store, copy])).toMatchObject({ code: 0 });

  // What the copy knows nothing of: a table, and somebody more, who was given part of what it knows as others'.
  await fleet.putTable("extra", LATER.extra);
  all = [...all, fleet.add("e")];
  second = await settled(...all);
  network.cut();
  await fleet.kill();
  killedAt = await fleet.moment(unaware);
  fleet.wipe();
  const options = [copy, fleet.store, `--max-lease=${MAX_LEASE_MS}ms`];
  expect(await evenkeel(["store", "restore", ...options])).toMatchObject({ code: 0, complaints: [] });
  restoredAt = await fleet.begin();
  const aware = all.filter((recorder) => recorder !== unaware);
  for (const recorder of aware) await fleet.serves(recorder, 0, 0);
  for (const [name, partitions] of Object.entries({ ...TABLES, ...LATER })) await fleet.putTable(name, partitions);
  for (const recorder of aware) await fleet.serves(recorder, 1);
  network.heal();
  third = await settled(...all);
  runs = fleet.runs();
}, STORY_LIMIT_MS);

afterAll(async () => {
  await network?.end();
  await fleet?.end();
  await endAll();
});

async function settled(...living: readonly Recorder[]): Promise<number> {
  const { incarnation } = await fleet.converged(...living);
  if (!incarnations.includes(incarnation)) incarnations.push(incarnation);
  return fleet.moment(...living);
}

/** Runs from before the one time that were not over at the other. */
function heldOn(until: number, at: number): readonly Run[] {
  return runs.filter((run) => run.first < until && run.last >= at);
}

describe("a scheduler comes back with another store:", () => {
  test("each is another incarnation", () => {
    expect(incarnations).toHaveLength(3);
  });

  test("no partition may be served by two processes at any moment, and epochs rise", () => {
    expect(findOverlaps(runs)).toEqual([]);
    expect(findEpochsNotRising(runs)).toEqual([]);
  });

  test("P9 with an empty one, every process stops all that it had, and has all again under higher epochs", () => {
    const before = new Map(all.flatMap((recorder) => [...epochsOf(recorder, first)]));
    expect(before.size).toBe(TABLES.trips + TABLES.events);
    expect(heldOn(wipedAt, second)).toEqual([]);
    for (const recorder of all) {
      for (const [place, epoch] of epochsOf(recorder, second)) expect(epoch).toBeGreaterThan(before.get(place) ?? 0);
    }
  });

  test("with a restored one nothing is granted before the largest lease of the lost one is out", () => {
    const granted = runs.filter((run) => run.first > restoredAt);
    expect(granted.length).toBeGreaterThanOrEqual(TABLES.trips + TABLES.events + LATER.extra);
    for (const run of granted) expect(run.first).toBeGreaterThan(restoredAt + QUARANTINE_MS);
  });

  test("then all is granted again, also what one had that heard nothing of it and served on within its lease", () => {
    const had = placesOf(unaware, second);
    expect(had.length).toBeGreaterThan(0);
    expect(placesOf(unaware, killedAt)).toEqual(had);
    expect(heldOn(killedAt, third)).toEqual([]);
    const has = all.flatMap((recorder) => [...placesOf(recorder, third)]);
    expect(has.sort()).toEqual([...fleet.places].sort());
  });
});
