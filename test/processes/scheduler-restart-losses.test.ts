import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { Fleet, type Recorder } from "./fleet.ts";
import { findEpochsNotRising, findOverlaps, type Run } from "./record.ts";
import { epochsOf, placesOf } from "./stretch.ts";

/**
 * While a scheduler with its ledger in a file is away, processes are replaced, or never come back. The story is told once;
 * what the processes wrote down is compared afterwards. Safety is asserted strictly.
 */

const TABLES = { trips: 24, events: 15 };

const LEASE_MS = 4000;
const DRIFT = 0.01;
const SERVER_MARGIN_MS = 300;

/** From a start on, the longest lease of before may last so long. */
const FLOOR_MS = (LEASE_MS * (1 + DRIFT)) / (1 - DRIFT) + SERVER_MARGIN_MS;

const SETTINGS = [
  "--formation-quiet=500ms",
  "--formation-max=3s",
  "--join-quiet=100ms",
  "--join-max=500ms",
  `--lease-duration=${LEASE_MS}ms`,
  "--lease-renew=500ms",
  "--lease-client-margin=300ms",
  `--lease-server-margin=${SERVER_MARGIN_MS}ms`,
  `--lease-drift-rate=${DRIFT}`,
  "--loss-wait=1500ms",
];

/** Room for every wait of the story to take its whole patience. */
const STORY_LIMIT_MS = 400_000;
const PATIENCE = { timeout: 40_000, interval: 20 };

let fleet: Fleet;
let runs: readonly Run[];

/** A process, and the next one of its id. */
interface Replaced {
  readonly old: Recorder;
  readonly next: Recorder;
  /** The scheduler cannot have run before. */
  readonly startedAt: number;
  readonly from: number;
  readonly to: number;
}

let overlapped: Replaced;
let paused: Replaced;
let gone: Recorder;
let goneStartedAt: number;
let goneFrom: number;
let goneTo: number;
let left: readonly Recorder[];

beforeAll(async () => {
  await build();
  fleet = await Fleet.start({ tables: TABLES, stop: "2s", settings: SETTINGS, durable: true });
  const [a, b, c, d] = [fleet.add("a"), fleet.add("b"), fleet.add("c"), fleet.add("d")];
  await fleet.converged(a, b, c, d);
  overlapped = await replaceWhileAway(c, [a, b, d]);
  paused = await outlive(b, [a, overlapped.next, d]);

  left = [a, paused.next, overlapped.next];
  goneFrom = await fleet.moment(d, ...left);
  gone = d;
  await fleet.kill();
  gone.process.signal("SIGKILL");
  goneStartedAt = await fleet.begin();
  await fleet.converged(...left);
  goneTo = await fleet.moment(...left);
  runs = fleet.runs();
}, STORY_LIMIT_MS);

afterAll(async () => {
  await fleet?.end();
  await endAll();
});

/** The scheduler is away; a next process is there first when it is back, while the old one lives and may still serve. */
async function replaceWhileAway(old: Recorder, others: readonly Recorder[]): Promise<Replaced> {
  const from = await fleet.moment(old, ...others);
  const before = await instanceOf(old);
  await fleet.kill();
  old.process.signal("SIGSTOP");
  const next = fleet.add(old.executor);
  const startedAt = await fleet.begin();
  await vi.waitFor(async () => expect(await instanceOf(old)).not.toBe(before), PATIENCE);
  old.process.signal("SIGCONT");
  await refused(old);
  await fleet.converged(next, ...others);
  return { old, next, startedAt, from, to: await fleet.moment(next, ...others) };
}

/** A next process takes over from a stopped one; the scheduler restarts, and the old one is the first to say hello to it. */
async function outlive(old: Recorder, others: readonly Recorder[]): Promise<Replaced> {
  old.process.signal("SIGSTOP");
  const next = fleet.add(old.executor);
  await fleet.converged(next, ...others);
  const from = await fleet.moment(next, ...others);
  await fleet.kill();
  next.process.signal("SIGSTOP");
  old.process.signal("SIGCONT");
  const startedAt = await fleet.begin();
  await refused(old);
  next.process.signal("SIGCONT");
  await fleet.converged(next, ...others);
  return { old, next, startedAt, from, to: await fleet.moment(next, ...others) };
}

async function instanceOf({ executor }: Recorder): Promise<string | undefined> {
  const { executors } = await fleet.status();
  return executors.find((other) => other.executor === executor)?.instance;
}

/** The running scheduler has refused this process for good, and it knows. */
async function refused({ executor, process }: Recorder): Promise<void> {
  await process.line("closed: replaced", PATIENCE.timeout);
  const line = JSON.parse(await fleet.scheduler.line('"executor.refused"', PATIENCE.timeout)) as unknown;
  expect(line).toMatchObject({ executor, code: 4409 });
}

/** Epochs that those had, all together. */
function epochsOfAll(recorders: readonly Recorder[], at: number): ReadonlyMap<string, number> {
  return new Map(recorders.flatMap((recorder) => [...epochsOf(recorder, at)]));
}

/** Runs of these places that began after that time, by whichever process. */
function begunAfter(places: readonly string[], at: number): readonly Run[] {
  return runs.filter(({ place, first }) => first > at && places.includes(place));
}

describe("while a scheduler is away processes are replaced or lost:", () => {
  test("no partition may be served by two processes at any moment, and epochs rise", () => {
    expect(findOverlaps(runs)).toEqual([]);
    expect(findEpochsNotRising(runs)).toEqual([]);
  });

  test("P3 R6 a new process that says hello before its old one waits that one's lease out, and then has its places", () => {
    const { old, next, startedAt, from, to } = overlapped;
    const places = placesOf(old, from);
    expect(places.length).toBeGreaterThan(0);
    expect(placesOf(next, to)).toEqual(places);
    for (const { first } of next.runs()) expect(first).toBeGreaterThan(startedAt + FLOOR_MS);
  });

  test("P24 a replaced process that says hello first to a restarted scheduler is refused; its successor goes on", () => {
    const { old, next, startedAt, from, to } = paused;
    expect(placesOf(next, from).length).toBeGreaterThan(0);
    expect(epochsOf(next, to)).toEqual(epochsOf(next, from));
    expect(old.runs().filter(({ last }) => last > startedAt)).toEqual([]);
  });

  test("R2 of one that never returns, only its own partitions are placed, when wait and lease are over", () => {
    const places = placesOf(gone, goneFrom);
    const placed = begunAfter(places, goneFrom);
    expect(placed.map(({ place }) => place).sort()).toEqual(places);
    for (const { first } of placed) expect(first).toBeGreaterThan(goneStartedAt + FLOOR_MS);
    const kept = [...epochsOfAll(left, goneTo)].filter(([place]) => !places.includes(place));
    expect(new Map(kept)).toEqual(epochsOfAll(left, goneFrom));
  });
});
