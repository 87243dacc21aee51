import { Peer, withPeers } from "../peer.ts";
import type { Planned, PlannerCommands } from "../peers/planner.ts";
import { byWall, median, medianCost, quantile } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { MILLION, THOUSAND_EXECUTORS, type WorldSize } from "../worlds.ts";

/** Plans at a million partitions, each against one pass over the owners. First calls are those of a new process. */

const MB = 1_048_576;

export const planCold: Row = { name: "plan-cold", measure: (options) => measureCold(MILLION, options) };
export const planJoin: Row = { name: "plan-join", measure: measureEvents };
export const planTenth: Row = { name: "plan-tenth", measure: measureTenth };

async function measureCold(size: WorldSize, { rounds }: RowOptions): Promise<readonly Figure[]> {
  const first: Planned[] = [];
  const settled: Planned[] = [];
  for (let round = 0; round < rounds; round++) {
    const peer = new Peer<PlannerCommands>("peers/planner");
    await withPeers([peer], async () => {
      first.push(await peer.ask("cold", size));
      // The second call still meets code that is being compiled.
      await peer.ask("cold", size);
      settled.push(await peer.ask("cold", size));
    });
  }
  return [
    figure("plan cold, first call", first, { max: 200 }),
    figure("plan cold, settled", settled, { max: 200 }),
    {
      what: "plan cold, peak memory of the process",
      unit: "MB",
      subject: median(first.map(({ peak }) => peak / MB)),
      goal: { max: 200 },
    },
  ];
}

async function measureEvents({ rounds, quick }: RowOptions): Promise<readonly Figure[]> {
  const { settled, first } = await onSettledWorld(MILLION, rounds, "join", async (peer) => {
    const joins: Planned[] = [];
    const leaves: Planned[] = [];
    for (let event = 0; event < rounds * (quick ? 2 : 4); event++) {
      joins.push(await peer.ask("join"));
      leaves.push(await peer.ask("leave"));
    }
    return { joins, leaves };
  });
  const { joins, leaves } = settled;
  const goal = { max: 3, maxRatio: 5 };
  const note = "recomputed in full in this version; the incremental planner comes later";
  return [
    figure("plan, one join, settled", joins, goal, note),
    figure("plan, one leave, settled", leaves, goal, note),
    {
      what: "plan, join and leave, p90 of the chain",
      unit: "ms",
      subject: quantile(
        [...joins, ...leaves].map(({ plan }) => plan.wall),
        0.9,
      ),
      goal: { max: 6 },
      note,
    },
    figure("plan, one join, first call of a process", first, { max: 40 }, note),
  ];
}

async function measureTenth({ rounds }: RowOptions): Promise<readonly Figure[]> {
  const { settled, first } = await onSettledWorld(THOUSAND_EXECUTORS, rounds, "tenth", async (peer) => {
    const events: Planned[] = [];
    for (let event = 0; event < rounds + 2; event++) events.push(await peer.ask("tenth"));
    return events.slice(2);
  });
  return [
    figure("plan, 100 of 1,000 executors leave, settled", settled, { max: 30 }),
    figure("plan, 100 of 1,000 executors leave, first call", first, { max: 60 }),
  ];
}

/** Measures in one process that has planned before, and the first call in some that have not but have the same world. */
async function onSettledWorld<Result>(
  size: WorldSize,
  rounds: number,
  event: "join" | "tenth",
  measure: (peer: Peer<PlannerCommands>) => Promise<Result>,
): Promise<{ readonly settled: Result; readonly first: readonly Planned[] }> {
  const peer = new Peer<PlannerCommands>("peers/planner");
  return withPeers([peer], async () => {
    await peer.ask("cold", size);
    const owners = await peer.ask("owners");
    const first: Planned[] = [];
    for (let round = 0; round < rounds; round++) {
      const fresh = new Peer<PlannerCommands>("peers/planner");
      await withPeers([fresh], async () => {
        await fresh.ask("load", { executors: size.executors, owners });
        first.push(await fresh.ask(event));
      });
    }
    return { settled: await measure(peer), first };
  });
}

function figure(what: string, planned: readonly Planned[], goal: Figure["goal"], note?: string): Figure {
  const moves = median(planned.map((each) => each.moves));
  const notes = [...(moves === 0 ? [] : [`${moves} moves`]), ...(note === undefined ? [] : [note])];
  return {
    what,
    unit: "ms",
    ...byWall({
      floor: medianCost(planned.map(({ floor }) => floor)),
      subject: medianCost(planned.map(({ plan }) => plan)),
    }),
    goal,
    ...(notes.length === 0 ? {} : { note: notes.join("; ") }),
  };
}
