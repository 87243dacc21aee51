import fc from "fast-check";
import { climate } from "./climates.ts";
import { type Deed, deeds } from "./deeds.ts";
import { perform } from "./performance.ts";
import { awaitRest, checkMemory, checkOwnership, checkRest, heal } from "./verdict.ts";
import { type Climate, World } from "./world.ts";

/** Between two deeds, if nothing else is said. */
const GAP_MS = 15;

/** Lives one history to its end. Throws where something is as it must never be. Gives how long the world took to come to rest. */
export async function live(climate: Climate, deeds: readonly Deed[], trace?: (line: string) => void): Promise<number> {
  const world = new World(climate, trace);
  world.put("t0", 8);
  for (const one of deeds) {
    perform(world, one);
    await world.advance(one.do === "wait" ? one.forMs : world.chance.between(0, GAP_MS));
  }
  heal(world);
  const tookMs = await awaitRest(world);
  checkOwnership(world);
  await checkRest(world);
  await checkMemory(world);
  return tookMs;
}

export const history = fc.tuple(climate, deeds);

/** Lives random histories, each from a seed of its own; fast-check shrinks one that fails. */
export async function checkHistories(runs: number): Promise<void> {
  const trace = process.env["EVENKEEL_TRACE"] === undefined ? undefined : (line: string) => console.log(line);
  await fc.assert(
    fc.asyncProperty(history, async ([climate, deeds]) => {
      await live(climate, deeds, trace);
    }),
    {
      numRuns: runs,
      ...(process.env["EVENKEEL_SEED"] === undefined ? {} : { seed: Number(process.env["EVENKEEL_SEED"]) }),
    },
  );
}
