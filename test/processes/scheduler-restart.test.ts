import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { Fleet, type Recorder } from "./fleet.ts";
import { findEpochsNotRising, findOverlaps, type Run } from "./record.ts";
import { during, endedOf, placesOf, type Stretch } from "./stretch.ts";

/**
 * A scheduler with its ledger in a file is killed again and again while a fleet of real processes works, and leases outlive
 * that. The story is told once; what the processes wrote down is compared afterwards. Safety is asserted strictly.
 */

const TABLES = { trips: 24, events: 15 };
const ROOM = { events: 23, extra: 12 };

const SETTINGS = [
  "--formation-quiet=500ms",
  "--formation-max=3s",
  "--join-quiet=100ms",
  "--join-max=500ms",
  "--lease-renew=500ms",
  "--lease-client-margin=300ms",
  "--lease-server-margin=300ms",
  "--lease-duration=30s",
  "--loss-wait=1500ms",
];

/** Room for every wait of the story to take its whole patience. */
const STORY_LIMIT_MS = 400_000;

let fleet: Fleet;
let runs: readonly Run[];
let stable: readonly Recorder[];
let joiner: Recorder;
let quiet: Stretch;
let made: Stretch;
let joining: Stretch;
let leaving: Stretch;
const rolled: {
  readonly before: Recorder;
  readonly after: Recorder;
  readonly bystanders: readonly Recorder[];
  readonly stretch: Stretch;
}[] = [];

beforeAll(async () => {
  await build();
  fleet = await Fleet.start({ tables: TABLES, room: ROOM, stop: "2s", settings: SETTINGS, durable: true });
  stable = ["a", "b", "c", "d"].map((id) => fleet.add(id));
  await fleet.converged(...stable);
  quiet = await during(fleet, stable, async () => {
    await restart();
    await fleet.converged(...stable);
  });
  made = await during(fleet, stable, async () => {
    await fleet.putTable("extra", ROOM.extra);
    await restart();
    await fleet.converged(...stable);
  });
  joining = await during(fleet, stable, async () => {
    joiner = fleet.add("e");
    await fleet.serves(joiner, 1);
    const grown = fleet.putTable("events", ROOM.events);
    await restart();
    await grown;
    await fleet.converged(...stable, joiner);
  });
  leaving = await during(fleet, stable, async () => {
    const { size } = joiner.answers();
    joiner.process.say("leave");
    await fleet.serves(joiner, 0, size - 1);
    await restart();
    expect(await joiner.process.exit).toEqual({ code: 0, signal: null });
    await fleet.converged(...stable);
  });
  await roll();
  runs = fleet.runs();
}, STORY_LIMIT_MS);

afterAll(async () => {
  await fleet?.end();
  await endAll();
});

async function restart(): Promise<void> {
  await fleet.kill();
  await fleet.begin();
}

/** Every executor once restarts, and the scheduler each time at another moment of that. */
async function roll(): Promise<void> {
  const living = [...stable];
  for (const [at, before] of stable.entries()) {
    const bystanders = living.filter((other) => other !== before);
    let after = before;
    const stretch = await during(fleet, bystanders, async () => {
      await fleet.moment(before);
      if (at === 0) await restart();
      if (at === 1) await fleet.kill();
      before.process.signal("SIGTERM");
      if (at === 1) await fleet.begin();
      if (at === 2) await restart();
      expect(await before.process.exit).toEqual({ code: 0, signal: null });
      if (at === 3) await restart();
      after = fleet.add(before.executor);
      await fleet.converged(after, ...bystanders);
    });
    living[living.indexOf(before)] = after;
    rolled.push({ before, after, bystanders, stretch });
  }
}

describe("a scheduler is killed and started again:", () => {
  test("no partition may be served by two processes at any moment, and epochs rise", () => {
    expect(findOverlaps(runs)).toEqual([]);
    expect(findEpochsNotRising(runs)).toEqual([]);
  });

  test("R1 with nothing else going on, every process serves what it has all the time, under the same epochs", () => {
    const served = stable.flatMap((recorder) => placesOf(recorder, quiet.from));
    expect(served).toHaveLength(TABLES.trips + TABLES.events);
    expect(endedOf(stable, quiet)).toEqual([]);
  });

  test("S1 as soon as the making of a table was answered: it is there and served afterwards, and nothing moves", () => {
    expect(endedOf(stable, made)).toEqual([]);
    const served = stable.flatMap((recorder) => placesOf(recorder, made.to));
    expect(served.filter((place) => place.startsWith("extra/"))).toHaveLength(ROOM.extra);
  });

  test("while one joins and a table grows: what others gave up is with the one that joined, nothing else moved", () => {
    const given = endedOf(stable, joining).map(({ place }) => place);
    const got = placesOf(joiner, joining.to);
    expect(given.length).toBeGreaterThan(0);
    expect(given.filter((place) => !got.includes(place))).toEqual([]);
  });

  test("while one leaves: nothing of anybody else moves", () => {
    expect(endedOf(stable, leaving)).toEqual([]);
  });

  test("R4 and so are its executors, one after the other: each has its own again, nothing moves", () => {
    expect(rolled).toHaveLength(stable.length);
    for (const { before, after, bystanders, stretch } of rolled) {
      expect(endedOf(bystanders, stretch)).toEqual([]);
      expect(placesOf(after, stretch.to)).toEqual(placesOf(before, stretch.from));
    }
  });
});
