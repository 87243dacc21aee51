import { computePlan } from "../../../src/plan/plan.ts";
import type { PlanInput, PlannedTable } from "../../../src/plan/types.ts";
import { serve } from "../peer.ts";
import { type Cost, medianCost, timed } from "../rounds.ts";
import { coldWorld, countMoves, histogram, joined, left, ownedWorld, type WorldSize } from "../worlds.ts";

/** A process that plans: a new one for each first call, since what the compiler has seen stays with a process. */

export interface Planned {
  readonly floor: Cost;
  readonly plan: Cost;
  readonly moves: number;
  /** Most memory that the process has had so far, in bytes, its start included. */
  readonly peak: number;
}

let world: PlanInput | undefined;
let events = 0;

const FLOOR_PASSES = 6;

const commands = {
  /** Plans for a world in which nobody owns anything, which then stands as it was planned. */
  cold: (size: WorldSize) => plan(coldWorld(size)),
  /** Takes a world as it stands, without planning. */
  load: ({ executors, owners }: { readonly executors: number; readonly owners: readonly Int32Array[] }) => {
    world = ownedWorld(executors, owners);
  },
  owners: () => present().tables.map(({ owner }) => owner),
  join: () => plan(joined(present(), somewhere(present()))),
  leave: () => {
    const who = somewhere(present());
    return plan(left(present(), (at) => at === who));
  },
  /** Every tenth executor leaves. The world stays as it was, so that this can be asked again. */
  tenth: () => {
    const before = present();
    const planned = plan(left(before, (at) => at % 10 === 3));
    world = before;
    return planned;
  },
};

export type PlannerCommands = typeof commands;

function plan(input: PlanInput): Planned {
  // The floor is that of compiled code also where the plan is a first call.
  const passes = Array.from({ length: FLOOR_PASSES }, () => timed(() => histogram(input)));
  const floor = medianCost(passes.slice(1));
  let tables: readonly PlannedTable[] = [];
  const took = timed(() => {
    tables = computePlan(input).tables;
  });
  const owners = tables.map(({ owner }) => owner);
  world = ownedBy(input, owners);
  return { floor, plan: took, moves: countMoves(input, tables), peak: process.resourceUsage().maxRSS * 1024 };
}

function ownedBy(input: PlanInput, owners: readonly Int32Array[]): PlanInput {
  return { ...input, tables: input.tables.map((table, at) => ({ ...table, owner: owners[at] ?? table.owner })) };
}

function present(): PlanInput {
  if (world === undefined) throw new Error("there is no world yet");
  return world;
}

/** A place that differs from event to event and does not depend on chance. */
function somewhere({ executors }: PlanInput): number {
  return (++events * 7_919) % executors.length;
}

serve(commands);
