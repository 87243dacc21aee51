import fc from "fast-check";
import { tableName } from "../../src/model/ids.ts";
import type { DiskMode } from "./disk.ts";
import type { Process } from "./process.ts";
import type { Start, World } from "./world.ts";

/** One thing that happens to a world. Numbers named `pick` choose among what is there. */
export type Deed =
  | ({ readonly do: "start"; readonly id: number } & Omit<Start, "executor">)
  | ({ readonly do: "twin"; readonly pick: number } & Omit<Start, "executor">)
  | { readonly do: "kill"; readonly pick: number; readonly noticeMs: number; readonly isBack: boolean }
  | { readonly do: "leave"; readonly pick: number; readonly mode: "move" | "restart"; readonly timeoutMs?: number }
  | { readonly do: "close"; readonly pick: number }
  | { readonly do: "break"; readonly pick: number; readonly clientMs: number; readonly serverMs: number }
  | { readonly do: "block" | "refuse" | "stop" | "sleep"; readonly pick: number; readonly forMs: number }
  | { readonly do: "set-clock"; readonly pick: number; readonly byMs: number }
  | { readonly do: "update"; readonly pick: number; readonly weight: number; readonly capacity?: number }
  | { readonly do: "give-up"; readonly pick: number; readonly partition: number; readonly retryable: boolean }
  | { readonly do: "stall"; readonly forMs: number }
  | { readonly do: "disk"; readonly mode: DiskMode; readonly forMs: number }
  | { readonly do: "table"; readonly pick: number; readonly count: number; readonly stopMs: number }
  | { readonly do: "keys"; readonly keys: readonly string[] }
  | { readonly do: "delete"; readonly pick: number }
  | { readonly do: "restart-scheduler"; readonly forMs: number; readonly noticeMs: number }
  | { readonly do: "wait"; readonly forMs: number };

const pick = fc.nat(7);
const stop = fc.constantFrom(0, 200, 1_000, 3_000, 3_000, 8_000);

const habits = fc.record({
  loadMs: fc.constantFrom(0, 0, 100, 2_000),
  unloadMs: fc.constantFrom(0, 50, 800, 5_000),
  failing: fc.constantFrom(0, 0, 0, 0.1, 0.5),
  failingForGood: fc.constantFrom(0, 0, 0.2),
  hanging: fc.constantFrom(0, 0, 0, 0.2, 1),
});

const start = {
  weight: fc.constantFrom(1, 1, 1, 2, 0.5),
  capacity: fc.constantFrom(undefined, undefined, undefined, 3, 1, 0),
  drift: fc.constantFrom(0, 1, -1, 0.5),
  wallIsSet: fc.boolean(),
  habits,
  stopTimeoutMs: fc.constantFrom(500, 4_000, 30_000),
};

const disturbances: fc.Arbitrary<Deed>[] = [
  fc.record({
    do: fc.constant("kill" as const),
    pick,
    noticeMs: fc.constantFrom(0, 5, 600, 25_000),
    isBack: fc.boolean(),
  }),
  fc.record(
    {
      do: fc.constant("leave" as const),
      pick,
      mode: fc.constantFrom("move" as const, "restart" as const),
      timeoutMs: fc.constantFrom(300, 3_000),
    },
    { requiredKeys: ["do", "pick", "mode"] },
  ),
  fc.record({ do: fc.constant("close" as const), pick }),
  fc.record({
    do: fc.constant("break" as const),
    pick,
    clientMs: fc.constantFrom(0, 10, 700, 5_000, 60_000),
    serverMs: fc.constantFrom(0, 10, 700, 5_000, 25_000),
  }),
  fc.record({
    do: fc.constantFrom("block" as const, "block" as const, "refuse" as const, "stop" as const, "stop" as const),
    pick,
    forMs: fc.constantFrom(100, 850, 1_500, 2_900, 4_500, 9_000, 30_000),
  }),
  fc.record({ do: fc.constant("sleep" as const), pick, forMs: fc.constantFrom(100, 190, 280, 310, 900, 5_000) }),
  fc.record({ do: fc.constant("set-clock" as const), pick, byMs: fc.constantFrom(50, 200, 5_000, -200, -10_000) }),
  fc.record(
    {
      do: fc.constant("update" as const),
      pick,
      weight: fc.constantFrom(1, 2, 0.25),
      capacity: fc.constantFrom(0, 1, 2, 50),
    },
    { requiredKeys: ["do", "pick", "weight"] },
  ),
  fc.record({ do: fc.constant("give-up" as const), pick, partition: fc.nat(11), retryable: fc.boolean() }),
];

const outages: fc.Arbitrary<Deed>[] = [
  fc.record({ do: fc.constant("stall" as const), forMs: fc.constantFrom(60, 500, 1_000, 2_000, 4_000, 12_000) }),
  fc.record({
    do: fc.constant("disk" as const),
    mode: fc.constantFrom("slow" as const, "hanging" as const, "failing" as const, "gone" as const),
    forMs: fc.constantFrom(20, 500, 2_500, 7_000),
  }),
  fc.record({
    do: fc.constant("restart-scheduler" as const),
    forMs: fc.constantFrom(1, 400, 3_000),
    noticeMs: fc.constantFrom(0, 500, 5_000),
  }),
];

const tables: fc.Arbitrary<Deed>[] = [
  fc.record({
    do: fc.constant("table" as const),
    pick: fc.nat(2),
    count: fc.integer({ min: 1, max: 10 }),
    stopMs: stop,
  }),
  fc.record({ do: fc.constant("delete" as const), pick: fc.nat(3) }),
  fc.record({ do: fc.constant("keys" as const), keys: fc.subarray(["a", "b", "c", "d", "e"], { minLength: 1 }) }),
];

const wait = fc.record({
  do: fc.constant("wait" as const),
  forMs: fc.constantFrom(5, 60, 300, 900, 900, 2_000, 4_000, 9_000),
});

const starts = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("start" as const), id: fc.nat(5), ...start }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("twin" as const), pick, ...start }) },
);

/** Anything that may happen, in the proportions that make histories go far. */
export const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 5, arbitrary: starts },
  { weight: 9, arbitrary: fc.oneof(...disturbances) },
  { weight: 2, arbitrary: fc.oneof(...outages) },
  { weight: 3, arbitrary: fc.oneof(...tables) },
  { weight: 10, arbitrary: wait },
);

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
    case "restart-scheduler": {
      const { forMs, noticeMs } = deed;
      const chance = world.chance.fork(`restart ${world.timeline.now}`);
      return world.restartScheduler(forMs, () => chance.between(0, noticeMs));
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
      path.blockedUntil = Math.max(path.blockedUntil, now + deed.forMs);
      return;
    case "refuse":
      path.refusesUntil = Math.max(path.refusesUntil, now + deed.forMs);
      return process.wire?.break(deed.forMs, deed.forMs);
    case "stop":
      return world.stopFor(process, deed.forMs, "stop");
    case "sleep":
      if (process.clockTrouble === "set-back") return;
      process.clockTrouble = "slept";
      return world.stopFor(process, deed.forMs, "sleep");
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
