import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { NetCommands } from "../peers/net-server.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { byWall, type Cost, median, medianCost, metered } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/** From a hello on an open socket to the push that replaces everything, against a bare server that answers two JSON lines. */
export const hello: Row = { name: "hello", measure };

const PARTITIONS_EACH = 4;
const HELLOS = 50;

async function measure({ rounds }: RowOptions): Promise<readonly Figure[]> {
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  const net = new Peer<NetCommands>("peers/net-server");
  const client = new Peer<ClientCommands>("peers/client");
  return withPeers([client, scheduler, net], async () => {
    const schedulerPort = await scheduler.ask("start", { settings: PATIENT });
    const netPort = await net.ask("start", "json");
    await scheduler.ask("putTable", { name: "trips", count: (rounds + 1) * HELLOS * PARTITIONS_EACH });
    await client.ask("automatic", false);
    const floors: Cost[] = [];
    const subjects = { fresh: [] as Cost[], known: [] as Cost[] };
    const ofNet = () => net.ask("cpu");
    const ofScheduler = () => scheduler.ask("cpu");
    for (let round = 0; round <= rounds; round++) {
      const ids = `R${round}-`;
      const floor = await helloInTurn(ofNet, client, { port: netPort, framing: "lines", upgrade: false, ids });
      const onScheduler = { port: schedulerPort, framing: "websocket", upgrade: true, ids } as const;
      const fresh = await helloInTurn(ofScheduler, client, onScheduler);
      const known = await helloInTurn(ofScheduler, client, { ...onScheduler, attempts: 1 });
      // The first round only warms both.
      if (round === 0) continue;
      floors.push(floor);
      subjects.fresh.push(fresh);
      subjects.known.push(known);
    }
    const floor = medianCost(floors);
    return [
      {
        what: "hello → snapshot, a new executor, with its commit",
        unit: "ms",
        ...byWall({ floor, subject: medianCost(subjects.fresh) }),
        goal: {},
        note: "the goal of 1.5 × counts 2 fdatasync on both sides, and is judged with the durable store",
      },
      {
        what: "hello → snapshot, a known executor",
        unit: "ms",
        ...byWall({ floor, subject: medianCost(subjects.known) }),
        goal: { maxRatio: 1.5 },
      },
    ];
  });
}

/** Per hello: the median of their times, and the server's CPU time over all of them. */
async function helloInTurn(
  cpuMicros: () => Promise<number>,
  client: Peer<ClientCommands>,
  options: OpenedAs,
): Promise<Cost> {
  await client.ask("open", { ...options, count: HELLOS });
  let took: readonly number[] = [];
  const { cpu } = await metered(cpuMicros, async () => {
    took = await client.ask("helloInTurn", { capacity: PARTITIONS_EACH });
  });
  await client.ask("close");
  return { cpu: cpu / HELLOS, wall: median(took) };
}

interface OpenedAs {
  readonly port: number;
  readonly framing: "websocket" | "lines";
  readonly upgrade: boolean;
  readonly ids: string;
  readonly attempts?: number;
}
