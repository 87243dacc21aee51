import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { Fleet } from "./fleet.ts";
import { answersAfter, findOverlaps } from "./record.ts";

const PARTITIONS = 8;

let fleet: Fleet | undefined;

beforeAll(build, 120_000);
afterEach(async () => {
  await fleet?.end();
  await endAll();
});

test("P26 a process stopped across a partition's stop limit, within its lease, says no for that partition alone", async () => {
  // A lease that no noise outlasts beside a stop that is soon over.
  fleet = await Fleet.start({
    tables: { trips: PARTITIONS },
    stop: "1s",
    settings: ["--lease-duration=60s", "--lease-server-margin=100ms"],
  });
  const slow = fleet.add("slow");
  await fleet.converged(slow);
  slow.process.say("halt-on-revoke");
  const taker = fleet.add("taker");
  // It asks for half; the other side is asked back, stops in the middle of that, and its limit passes.
  await vi.waitFor(() => expect(taker.answers().size).toBe(PARTITIONS / 2), { timeout: 30_000, interval: 20 });
  slow.process.signal("SIGCONT");
  await vi.waitFor(() => expect(slow.rounds().at(-1)?.halt).toBeUndefined(), { timeout: 30_000, interval: 20 });

  const rounds = slow.rounds();
  const at = rounds.findIndex(({ halt }) => halt === "after");
  expect(rounds[at - 1]?.halt).toBe("before");
  const before = answersAfter(rounds.slice(0, at));
  const after = answersAfter(rounds.slice(0, at + 1));
  const taken = [...taker.answers().keys()].sort();
  expect([...before.keys()].sort()).toEqual([...fleet.places].sort());
  expect([...after.keys()].sort()).toEqual(fleet.places.filter((place) => !taken.includes(place)));
  expect(findOverlaps([...slow.runs(), ...taker.runs()])).toEqual([]);
}, 120_000);
