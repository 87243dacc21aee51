import { tableName } from "../../src/model/ids.ts";
import type { Deed } from "./deeds.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** From the end of a block to the cut, where a connection fades. */
const FADING_MS = 60;

/** Does it. What finds nobody to be done to does nothing. */
export function perform(world: World, deed: Deed): void {
  world.note(`deed ${JSON.stringify(deed)}`);
  switch (deed.do) {
    case "start": {
      const { id, do: _do, ...more } = deed;
      const executor = `E${id}`;
      if (!world.alive.some((process) => process.options.executor === executor)) world.start({ executor, ...more });
      return;
    }
    case "stall":
      return world.stallFor(deed.forMs);
    case "disk":
      world.disk.setMode(deed.mode);
      world.timeline.after(deed.forMs, () => world.disk.setMode("quick"));
      return;
    case "succeed": {
      const { isAsked, forMs, noticeMs } = deed;
      const chance = world.chance.fork(`succeed ${world.timeline.now}`);
      if (isAsked) return world.retireScheduler(forMs);
      return world.killScheduler(forMs, () => chance.between(0, noticeMs));
    }
    case "table":
      return world.put(`t${deed.pick}`, deed.count, { stopMs: deed.stopMs });
    case "keys":
      return world.put("k", deed.keys.length, { keys: deed.keys });
    case "delete":
      world.scheduler?.delete(tableName(deed.pick === 3 ? "k" : `t${deed.pick}`));
      return;
    case "wait":
      return;
    default: {
      const { alive } = world;
      const process = alive[deed.pick % Math.max(1, alive.length)];
      if (process !== undefined) disturb(world, process, deed);
    }
  }
}

/** Nothing goes to or from it, and nobody is told. */
function cutOff({ path, wire }: Process, { timeline }: World, forMs: number): void {
  path.refusesUntil = Math.max(path.refusesUntil, timeline.now + forMs);
  wire?.break(forMs, forMs);
}

/** A sleep shows in the wall clock only where nobody sets that back. */
function sleep(process: Process, world: World, forMs: number): void {
  if (process.clockTrouble === "set-back") return;
  process.clockTrouble = "slept";
  world.stopFor(process, forMs, "sleep");
}

type Disturbance = Extract<Deed, { readonly pick: number }>;

function disturb(world: World, process: Process, deed: Exclude<Disturbance, { do: "table" | "delete" }>): void {
  const { path, executor, machine, options } = process;
  const { now } = world.timeline;
  switch (deed.do) {
    case "twin": {
      const { do: _do, pick: _pick, ...more } = deed;
      world.start({ executor: options.executor, ...more });
      return;
    }
    case "kill":
      process.kill(deed.noticeMs);
      if (deed.isBack) world.startAgain(process);
      return;
    case "leave": {
      const { mode, timeoutMs } = deed;
      process.isLeaving = true;
      return machine.enter(() => {
        executor.leave({ mode, ...(timeoutMs === undefined ? {} : { timeoutMs }) }).catch(() => {});
      });
    }
    case "close":
      process.isLeaving = true;
      return machine.enter(() => void executor.close());
    case "break":
      return process.wire?.break(deed.clientMs, deed.serverMs);
    case "block":
      return path.block(deed.lanes, now + deed.forMs);
    case "fade":
      if (deed.sleepMs > 0) sleep(process, world, deed.sleepMs);
      path.block(deed.lanes, now + deed.forMs);
      // What waited comes through before the end, an answer that extends a lease among it.
      world.timeline.after(deed.forMs + FADING_MS, () => {
        if (!world.isHealed) cutOff(process, world, deed.thenMs);
      });
      return;
    case "refuse":
      return cutOff(process, world, deed.forMs);
    case "stop":
      return world.stopFor(process, deed.forMs, "stop");
    case "sleep":
      return sleep(process, world, deed.forMs);
    case "set-clock":
      if (deed.byMs < 0 && process.clockTrouble === "slept") return;
      if (deed.byMs < 0) process.clockTrouble = "set-back";
      return machine.jumpWall(deed.byMs);
    case "update": {
      const { weight, capacity } = deed;
      return machine.enter(() => executor.update({ weight, ...(capacity === undefined ? {} : { capacity }) }));
    }
    case "give-up":
      return machine.enter(() => process.giveUp(deed.partition, deed.retryable));
    default:
      return deed satisfies never;
  }
}
