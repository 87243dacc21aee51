import { Fleet } from "../fleet.ts";
import { byWall, type Cost, medianCost, timed } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { coldWorld, histogram, idOf, MILLION, ownedWorld, type WorldSize } from "../worlds.ts";

/** All that the core does about one executor that joins a formed fleet, against one pass over the owners. */
export const turnJoin: Row = { name: "turn-join", measure };

const MODERATE: WorldSize = { partitions: 100_000, executors: 1_000, tables: 20 };

async function measure({ rounds, large }: RowOptions): Promise<readonly Figure[]> {
  const size = large ? MILLION : MODERATE;
  const fleet = new Fleet();
  fleet.form(size);
  const pass = onePass(size);
  const floors: Cost[] = [];
  const turns: Cost[] = [];
  const cycles: Cost[] = [];
  let pushes = 0;
  for (let round = 0; round < rounds + WARM_UP; round++) {
    const floor = pass();
    const cycle = fleet.run([fleet.hello(idOf("J", round))]);
    if (round < WARM_UP) continue;
    floors.push(floor);
    turns.push(cycle.decided);
    cycles.push(cycle.all);
    pushes = cycle.pushes;
  }
  const floor = medianCost(floors);
  const where = `${size.partitions.toLocaleString("en")} × ${size.executors.toLocaleString("en")} × ${size.tables}`;
  return [
    {
      what: `turn of one join: plan, change, fold, projections; ${where}`,
      unit: "ms",
      ...byWall({ floor, subject: medianCost(turns) }),
      goal: { maxRatio: 40 },
    },
    {
      what: `one join to its last ack, all turns of the core; ${where}`,
      unit: "ms",
      ...byWall({ floor, subject: medianCost(cycles) }),
      goal: {},
      note: `${pushes} pushes`,
    },
  ];
}

/** Rounds whose code is still being compiled. */
const WARM_UP = 3;

/** The floor at this size, in compiled code. */
function onePass(size: WorldSize): () => Cost {
  const owners = coldWorld(size).tables.map(({ owner }) => owner.map((_, at) => (at * 7_919) % size.executors));
  const world = ownedWorld(size.executors, owners);
  return () => medianCost([0, 1, 2, 3, 4].map(() => timed(() => histogram(world))));
}
