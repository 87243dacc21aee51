import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AdminClient } from "../../src/client/admin.ts";
import type { Change } from "../../src/model/change.ts";
import { build, type Ended, endAll, evenkeel } from "../cli/processes.ts";
import { Fleet, type Recorder } from "../processes/fleet.ts";
import { findEpochsNotRising, findOverlaps, type Run } from "../processes/record.ts";
import { during, endedOf, placesOf } from "../processes/stretch.ts";

/**
 * The scheduler of twenty processes is killed at random moments, under load: tables are made and grow, and a process more
 * joins and leaves. Every count is a multiple of twenty, and a table has at most so many for each as there are processes. So
 * each of the twenty always has the same of each table, or one less where the one more has it, and nothing ever needs to move
 * from one of the twenty to another.
 */

const ROUNDS = Number(process.env["EVENKEEL_KILL_ROUNDS"] ?? 20);
const SEED = Number(process.env["EVENKEEL_KILL_SEED"] ?? 1);
const EXECUTORS = 20;
const LIMIT_MS = 60_000 + 60_000 * ROUNDS;

const TABLES = { trips: 5 * EXECUTORS, events: 2 * EXECUTORS };
const MADE = 8;
const MOST = 4 * EXECUTORS;
const ROOM = Object.fromEntries(Array.from({ length: MADE }, (_, at) => [`made${at}`, MOST]));

/** The load runs for some of this time before the scheduler is killed. */
const LOAD_MS = 1_500;

/** Some are killed again so soon that not everybody is back. */
const AGAIN_MS = 600;

const SETTINGS = [
  "--formation-quiet=500ms",
  "--formation-max=10s",
  `--formation-expect=${EXECUTORS}`,
  "--join-quiet=100ms",
  "--join-max=500ms",
  // Nothing here waits for a lease, and a busy machine may take long for a start.
  "--lease-duration=60s",
  "--lease-renew=1s",
];

/** What somebody was told about a table. */
interface Told {
  readonly name: string;
  readonly count: number;
  readonly revision: number;
}

interface Round {
  readonly round: number;
  /** What the twenty did not serve all the time under one epoch, and did not give to the one more. */
  readonly moved: readonly Run[];
  /** What they gave to the one more. */
  readonly given: number;
  readonly kills: number;
}

let fleet: Fleet;
let stable: readonly Recorder[];
let runs: readonly Run[];
let changes: readonly Change[];
let checked: Ended;
/** Moments, and apart from them tables, as both are drawn at the same time. */
const [moments, choices] = [newChance(SEED), newChance(SEED + 1_000)];
const told: Told[] = [];
const lost: Told[] = [];
const rounds: Round[] = [];

beforeAll(async () => {
  await build();
  fleet = await Fleet.start({
    tables: TABLES,
    room: ROOM,
    stop: "5s",
    settings: SETTINGS,
    durable: true,
    roundMs: 50,
  });
  stable = Array.from({ length: EXECUTORS }, (_, at) => fleet.add(`e${at}`));
  await fleet.converged(...stable);
  let extra: Recorder | undefined;
  for (let round = 0; round < ROUNDS; round++) extra = await play(round, extra);
  await fleet.kill();
  runs = fleet.runs();
  changes = await fleet.changes();
  checked = await evenkeel(["store", "check", fleet.store]);
}, LIMIT_MS);

afterAll(async () => {
  await fleet?.end();
  await endAll();
}, 60_000);

/** One round: something happens, the scheduler is killed in the midst of it, and in the end all is well. */
async function play(round: number, extra: Recorder | undefined): Promise<Recorder | undefined> {
  let joined = extra;
  let kills = 1;
  const stretch = await during(fleet, stable, async () => {
    const load = [putTables()];
    // Every second time the one more joins, or leaves, as the case may be.
    if (round % 2 === 0 && extra === undefined) joined = fleet.add("extra");
    if (round % 2 === 0 && extra !== undefined) {
      joined = undefined;
      extra.process.say("leave");
      load.push(extra.process.exit.then((exit) => expect(exit).toEqual({ code: 0, signal: null })));
    }
    const done = Promise.all(load);
    await Promise.race([done, delay(between(moments, 0, LOAD_MS))]);
    await restart();
    for (; moments() < 0.4; kills++) {
      await delay(between(moments, 0, AGAIN_MS));
      await restart();
    }
    await done;
    await fleet.converged(...stable, ...(joined === undefined ? [] : [joined]));
  });
  const ended = endedOf(stable, stretch);
  const got = new Set(joined === undefined || joined === extra ? [] : placesOf(joined, stretch.to));
  const moved = ended.filter(({ place }) => !got.has(place));
  rounds.push({ round, moved, given: ended.length - moved.length, kills });
  return joined;
}

/** Kills the scheduler, starts it again, and asks it for everything that anybody was told of before. */
async function restart(): Promise<void> {
  const before = [...told];
  await fleet.kill();
  await fleet.begin();
  const tables = await new AdminClient({ url: fleet.url }).tables();
  const counts = new Map(tables.map(({ name, count }) => [name, count]));
  lost.push(...before.filter(({ name, count }) => (counts.get(name) ?? 0) < count));
}

/** Makes some tables, or makes them larger, one after the other. */
async function putTables(): Promise<void> {
  const sizes = new Map(told.map(({ name, count }) => [name, count]));
  for (let n = 0; n < 3; n++) {
    const name = `made${Math.floor(between(choices, 0, MADE))}`;
    const count = Math.min((sizes.get(name) ?? 0) + EXECUTORS, MOST);
    const { revision } = await fleet.putTable(name, count);
    sizes.set(name, count);
    told.push({ name, count, revision });
  }
}

/** How many partitions the table had at the revision. */
function countAt(table: string, revision: number): number {
  const entries = changes.filter((change) => change.revision <= revision).flatMap((change) => change.tables);
  const entry = entries.findLast((candidate) => candidate.table === table);
  return entry === undefined || "removed" in entry ? 0 : entry.count;
}

describe(`${ROUNDS} rounds in which the scheduler of ${EXECUTORS} processes is killed (seed ${SEED}):`, () => {
  test("no partition may be served by two processes at any moment, and epochs rise", () => {
    expect(findOverlaps(runs)).toEqual([]);
    expect(findEpochsNotRising(runs)).toEqual([]);
  });

  test("R1 nothing moves and nothing stops but what the one that joins is given", () => {
    expect(rounds).toHaveLength(ROUNDS);
    expect(rounds.filter(({ moved }) => moved.length > 0)).toEqual([]);
    expect(rounds.filter(({ given }) => given > 0).length).toBeGreaterThan(0);
  });

  test("what anybody was told of a table is there after each start, and in the ledger at the revision that was told", () => {
    expect(told).toHaveLength(3 * ROUNDS);
    expect(lost).toEqual([]);
    expect(told.filter(({ name, count, revision }) => countAt(name, revision) < count)).toEqual([]);
  });

  test("the ledger has every revision once, in terms that rise, and is whole", () => {
    const [first] = changes;
    expect(changes.map(({ revision }) => revision)).toEqual(changes.map((_, at) => (first?.revision ?? 0) + at));
    const terms = changes.map(({ term }) => term);
    expect(terms).toEqual([...terms].sort((a, b) => a - b));
    expect(checked).toMatchObject({ code: 0, complaints: [] });
  });
});

type Chance = () => number;

/** Numbers in [0, 1) that are the same in each run (mulberry32). */
function newChance(seed: number): Chance {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function between(chance: Chance, low: number, high: number): number {
  return low + chance() * (high - low);
}
