import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { NetCommands } from "../peers/net-server.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { byCpu, interleave, metered } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/** Acks: read, parsed, validated and handled by the core, against a bare server that parses JSON lines. Server CPU of each. */
export const inboundAck: Row = { name: "inbound-ack", measure };

/** A session may send a burst of 1,000 frames and 200 a second: rounds stay below that, whatever the machine's pace. */
const SESSIONS = 500;
const ACKS = 90;

async function measure({ rounds, quick }: RowOptions): Promise<readonly Figure[]> {
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  const net = new Peer<NetCommands>("peers/net-server");
  const [toScheduler, toNet] = [new Peer<ClientCommands>("peers/client"), new Peer<ClientCommands>("peers/client")];
  return withPeers([toScheduler, toNet, scheduler, net], async () => {
    const port = await scheduler.ask("start", { settings: PATIENT });
    await scheduler.ask("putTable", { name: "trips", count: 2 * SESSIONS });
    await toScheduler.ask("automatic", true);
    await toScheduler.ask("open", {
      port,
      count: SESSIONS,
      framing: "websocket",
      upgrade: true,
      ids: "E",
      hello: { capacity: 2 },
    });
    await toScheduler.ask("barrier");
    await toNet.ask("open", {
      port: await net.ask("start", "json"),
      count: SESSIONS,
      framing: "lines",
      upgrade: false,
      ids: "E",
    });
    const each = quick ? ACKS / 3 : ACKS;
    // A revision that was acknowledged long ago: valid, and nothing follows from it.
    const send = (client: Peer<ClientCommands>, atOnce: boolean) => client.ask("acks", { each, revision: 1, atOnce });
    const floor = (atOnce: boolean) =>
      metered(
        () => net.ask("cpu"),
        () => send(toNet, atOnce),
      );
    const subject = (atOnce: boolean) =>
      metered(
        () => scheduler.ask("cpu"),
        () => send(toScheduler, atOnce),
      );
    const figures: Figure[] = [];
    for (const atOnce of [false, true]) {
      await floor(atOnce);
      await subject(atOnce);
      const pair = await interleave(
        rounds,
        1_000 / (SESSIONS * (each + 1)),
        () => floor(atOnce),
        () => subject(atOnce),
      );
      const what = atOnce ? `inbound acks, ${each} in one burst, CPU each` : "inbound acks, one at a time, CPU each";
      figures.push({ what, unit: "µs", ...byCpu(pair), goal: { maxRatio: 1.6 } });
    }
    return figures;
  });
}
