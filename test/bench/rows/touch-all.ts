import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { NetCommands } from "../peers/net-server.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { byCpu, type Cost, median, medianCost, metered } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/**
 * A change that touches every session, here a new table with a partition for each: plan, commit, pushes, reports and acks.
 * The floor is a bare server that writes such bytes and parses the two answers as JSON. Server CPU to the last ack.
 */
export const touchAll: Row = { name: "touch-all", measure };

async function measure({ rounds, large }: RowOptions): Promise<readonly Figure[]> {
  const sessions = large ? 10_000 : 1_000;
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  const net = new Peer<NetCommands>("peers/net-server");
  const [toScheduler, toNet] = [new Peer<ClientCommands>("peers/client"), new Peer<ClientCommands>("peers/client")];
  return withPeers([toScheduler, toNet, scheduler, net], async () => {
    const port = await scheduler.ask("start", { settings: PATIENT });
    await toScheduler.ask("automatic", true);
    await toNet.ask("automatic", true);
    const common = { count: sessions, ids: "E" };
    await toScheduler.ask("open", { ...common, port, framing: "websocket", upgrade: true, hello: {} });
    await toNet.ask("open", { ...common, port: await net.ask("start", "json"), framing: "lines", upgrade: false });
    await net.ask("accepted", sessions);
    const floors: Cost[] = [];
    const subjects: Cost[] = [];
    const stalls: number[] = [];
    for (let round = 0; round < rounds + WARM_UP; round++) {
      const floor = await spent(
        () => net.ask("cpu"),
        toNet,
        sessions,
        () => net.ask("writeLines"),
      );
      await scheduler.ask("watchLoop");
      const put = () => scheduler.ask("putTable", { name: `t${round}`, count: sessions });
      const subject = await spent(() => scheduler.ask("cpu"), toScheduler, sessions, put);
      const { p999 } = await scheduler.ask("loopStalls");
      if (round < WARM_UP) continue;
      floors.push(floor);
      subjects.push(subject);
      stalls.push(p999);
    }
    const what = `a change that touches ${sessions.toLocaleString("en")} sessions`;
    return [
      {
        what: `${what}, CPU to the last ack`,
        unit: "ms",

        ...byCpu({ floor: medianCost(floors), subject: medianCost(subjects) }),
        goal: { maxRatio: 1.6 },
      },
      { what: `${what}, loop stall p99.9, planning included`, unit: "ms", subject: median(stalls), goal: { max: 50 } },
    ];
  });
}

const WARM_UP = 3;

/** What a server takes until each client has answered its push, and has had the answer to a renew after that. */
async function spent(
  cpu: () => Promise<number>,
  client: Peer<ClientCommands>,
  sessions: number,
  work: () => Promise<unknown>,
): Promise<Cost> {
  await client.ask("mark");
  return metered(cpu, async () => {
    await Promise.all([work(), client.ask("received", sessions)]);
    await client.ask("barrier");
  });
}
