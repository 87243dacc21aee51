import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { Fleet, type Recorder } from "./fleet.ts";
import { Network } from "./network.ts";
import { answersAfter, findEpochsNotRising, findOverlaps, monotonicMs, type Run } from "./record.ts";

/**
 * One story of a fleet of real processes, told once, and what must be true of it. Each process wrote down for itself what
 * it may serve; the records are compared afterwards. Safety is asserted strictly; how long things take, hardly at all.
 */

const TABLES = { trips: 40, events: 23 };

const SETTINGS = [
  "--formation-quiet=500ms",
  "--formation-max=3s",
  "--join-quiet=100ms",
  "--join-max=500ms",
  "--lease-duration=3s",
  "--lease-renew=500ms",
  "--lease-client-margin=300ms",
  "--lease-server-margin=300ms",
  "--loss-wait=1500ms",
];

/** When it has found out that renews stay unanswered, and has left its socket. */
const RENEW_MS = 500;

/** Of seven, the one with the least. */
const SMALLEST_SHARE = Math.floor((TABLES.trips + TABLES.events) / 7);

/** Room for every wait of the story to take its whole patience. */
const STORY_LIMIT_MS = 200_000;

let fleet: Fleet;
let network: Network;
let runs: readonly Run[];
let killed: Recorder;
let stopped: Recorder;
let halted: Recorder;
let cutOff: Recorder;
/** Before the stopped processes were let go on. */
let resumedAt: number;
let cutAt: number;
let healedAt: number;

beforeAll(async () => {
  await build();
  fleet = await Fleet.start({ tables: TABLES, stop: "2s", settings: SETTINGS });
  network = await Network.start(fleet.url);
  [killed, stopped, halted] = [fleet.add("a"), fleet.add("b"), fleet.add("c")];
  cutOff = fleet.add("d", network.url);
  const others = [fleet.add("e"), fleet.add("f")];
  const restarting = fleet.add("g");
  await fleet.converged(killed, stopped, halted, cutOff, restarting, ...others);

  killed.process.signal("SIGKILL");
  stopped.process.signal("SIGSTOP");
  halted.process.say("halt");
  await fleet.converged(cutOff, restarting, ...others);
  resumedAt = monotonicMs();
  stopped.process.signal("SIGCONT");
  halted.process.signal("SIGCONT");
  await fleet.converged(stopped, halted, cutOff, restarting, ...others);

  cutAt = monotonicMs();
  network.cut();
  await fleet.converged(stopped, halted, restarting, ...others);
  healedAt = monotonicMs();
  network.heal();
  restarting.process.signal("SIGTERM");
  const joined = fleet.add("h");
  expect(await restarting.process.exit).toEqual({ code: 0, signal: null });
  const restarted = fleet.add(restarting.executor);
  await fleet.converged(stopped, halted, cutOff, restarted, joined, ...others);
  runs = fleet.runs();
}, STORY_LIMIT_MS);

afterAll(async () => {
  await network?.end();
  await fleet?.end();
  await endAll();
});

/** Places that this process served after the one and before the other time, and another process after it, still before that time. */
function movedFrom(recorder: Recorder, since: number, until: number): readonly string[] {
  const within = runs.filter(({ first, last }) => last > since && first < until);
  const moved = within.filter(
    ({ process, place, last }) =>
      process === recorder.name &&
      within.some((other) => other.place === place && other.process !== process && other.first > last),
  );
  return [...new Set(moved.map(({ place }) => place))];
}

describe("of seven processes one is killed, two are stopped, one is cut off, one restarts, and an eighth joins:", () => {
  test("no partition may be served by two processes at any moment", () => {
    expect(findOverlaps(runs)).toEqual([]);
  });

  test("every grant to another process has a higher epoch", () => {
    expect(findEpochsNotRising(runs)).toEqual([]);
  });

  test("what the killed and the stopped ones had was served by others in the meantime", () => {
    for (const recorder of [killed, stopped, halted]) {
      expect(movedFrom(recorder, 0, resumedAt).length).toBeGreaterThanOrEqual(SMALLEST_SHARE);
    }
  });

  test("one that was cut off went on serving until its lease was over, and then others did", () => {
    expect(movedFrom(cutOff, cutAt, healedAt).length).toBeGreaterThanOrEqual(SMALLEST_SHARE);
    const until = Math.max(...cutOff.runs().map(({ first, last }) => (first < healedAt ? last : 0)));
    expect(until).toBeGreaterThan(cutAt + RENEW_MS);
  });

  test("P26 a process that was stopped past its lease says no when it is asked first, before any timer or frame", () => {
    const rounds = halted.rounds();
    const at = rounds.findIndex(({ halt }) => halt === "after");
    const [before, after] = [rounds[at - 1], rounds[at]];
    expect(before?.halt).toBe("before");
    expect(after?.from).toBeGreaterThan(resumedAt);
    const served = halted.runs().filter(({ last }) => last === before?.from);
    expect(served.length).toBeGreaterThanOrEqual(SMALLEST_SHARE);
    expect(after?.says).toEqual(Object.fromEntries(served.map(({ place }) => [place, null])));
  });

  test("one that was stopped from outside, wherever it was, serves nothing when it goes on", () => {
    const rounds = stopped.rounds();
    const first = rounds.findIndex(({ from }) => from >= resumedAt);
    expect(first).toBeGreaterThan(0);
    expect([...answersAfter(rounds.slice(0, first + 1))]).toEqual([]);
  });
});
