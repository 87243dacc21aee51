import { describe, expect, test } from "vitest";
import { SimExecutor } from "./sim-executor.ts";
import { World } from "./world.ts";

/**
 * What goes over the wire in the plainest stories, as text that is read in review: `<` is what an executor says, `>` what it
 * is told, `=` what is committed. Renewals are left out. After an intended change, run the tests with `-u` and read the difference.
 */
function transcript(world: World): string {
  return `${world.transcript.filter((line) => !line.includes("> lease ")).join("\n")}\n`;
}

function formed(ids: readonly string[]): { world: World; executors: SimExecutor[] } {
  const world = new World();
  world.table("orders", 6);
  const executors = ids.map((id) => new SimExecutor(world, id).connect());
  world.advance(5_000);
  return { world, executors };
}

const stories: Record<string, () => World> = {
  "cold-start": () => formed(["A", "B", "C"]).world,
  join: () => {
    const { world } = formed(["A", "B"]);
    new SimExecutor(world, "C", { releaseMs: 700 }).connect();
    world.advance(2_000);
    return world;
  },
  loss: () => {
    const { world, executors } = formed(["A", "B"]);
    executors[1]?.kill();
    world.advance(13_000);
    return world;
  },
  leave: () => {
    const { world, executors } = formed(["A", "B"]);
    executors[1]?.leave("move");
    world.advance(1_000);
    return world;
  },
  "planned-restart": () => {
    const { world, executors } = formed(["A", "B"]);
    executors[1]?.leave("restart");
    world.advance(500);
    executors[1]?.kill();
    world.advance(2_000);
    new SimExecutor(world, "B#2", { instance: "B-2" }).connect();
    world.advance(1_000);
    return world;
  },
  replacement: () => {
    const { world, executors } = formed(["A", "B"]);
    executors[1]?.kill();
    world.advance(1_000);
    new SimExecutor(world, "B#2", { instance: "B-2" }).connect();
    world.advance(13_000);
    return world;
  },
  resume: () => {
    const { world, executors } = formed(["A", "B"]);
    executors[1]?.drop();
    world.table("events", 2);
    world.advance(1_000);
    executors[1]?.connect({ resume: true });
    world.advance(1_000);
    return world;
  },
  "table-deleted": () => {
    const { world } = formed(["A", "B"]);
    world.deleteTable("orders");
    world.advance(1_000);
    return world;
  },
};

describe("transcripts", () => {
  test.each(Object.keys(stories))("%s", async (name) => {
    const world = stories[name]?.();
    if (world === undefined) throw new Error(`no story ${name}`);
    await expect(transcript(world)).toMatchFileSnapshot(`transcripts/${name}.txt`);
  });

  test("equal events give equal effects, byte for byte", () => {
    for (const story of Object.values(stories)) expect(transcript(story())).toBe(transcript(story()));
  });
});
