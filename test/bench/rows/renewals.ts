import { DEFAULT_SETTINGS } from "../../../src/model/settings.ts";
import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { NetCommands } from "../peers/net-server.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { median, metered } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/** A fleet at rest, which only renews: share of a core that the scheduler takes, pings included, against one with no session. */
export const renewals: Row = { name: "renewals", measure };

const FLEET = 10_000;
const RENEW_MS = 5_000;
const PARTITIONS_EACH = 8;

async function measure({ rounds, quick, large }: RowOptions): Promise<readonly Figure[]> {
  const sessions = large ? FLEET : 2_000;
  const idle = new Peer<SchedulerCommands>("peers/scheduler");
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  const net = new Peer<NetCommands>("peers/net-server");
  const [client, toNet] = [new Peer<ClientCommands>("peers/client"), new Peer<ClientCommands>("peers/client")];
  return withPeers([client, toNet, scheduler, idle, net], async () => {
    const lease = { ...DEFAULT_SETTINGS.lease, durationMs: 60_000, renewMs: RENEW_MS };
    const settings = { ...PATIENT, lease, join: { quietMs: 250, maxMs: 2_000 } };
    await idle.ask("start", { settings });
    const port = await scheduler.ask("start", { settings });
    await scheduler.ask("putTable", { name: "trips", count: sessions * PARTITIONS_EACH });
    await client.ask("automatic", true);
    const hello = { capacity: PARTITIONS_EACH };
    await client.ask("open", { port, count: sessions, framing: "websocket", upgrade: true, ids: "E", hello });
    await client.ask("pushed");
    await client.ask("barrier");
    const netPort = await net.ask("start", "json");
    await toNet.ask("open", { port: netPort, count: sessions, framing: "lines", upgrade: false, ids: "E" });
    const durationMs = quick ? 1_000 : 2_000;
    const renew = (by: Peer<ClientCommands>) => by.ask("renewals", { everyMs: RENEW_MS, durationMs });
    await renew(client);
    const shares = { idle: [] as number[], bare: [] as number[], subject: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      shares.idle.push(await shareOf(() => idle.ask("cpu"), pause));
      shares.bare.push(
        await shareOf(
          () => net.ask("cpu"),
          () => renew(toNet),
        ),
      );
      shares.subject.push(
        await shareOf(
          () => scheduler.ask("cpu"),
          () => renew(client),
        ),
      );
    }
    const subject = median(shares.subject);
    const scale = FLEET / sessions;
    return [
      {
        what: "renewals of 10,000 executors every 5 s, share of a core",
        unit: "%",
        floor: median(shares.idle),
        subject: subject * scale,
        goal: { max: 12 },
        ...(scale === 1 ? {} : { note: `measured with ${sessions} and multiplied by ${scale}` }),
      },
      {
        what: "the same, against a bare server that answers JSON lines",
        unit: "%",
        floor: median(shares.bare) * scale,
        subject: subject * scale,
        goal: {},
      },
    ];
  });
}

/** How many hundredths of a core a process is busy with, while `work` goes on. */
async function shareOf(cpuMicros: () => Promise<number>, work: () => Promise<unknown>): Promise<number> {
  const { cpu, wall } = await metered(cpuMicros, work);
  return (100 * cpu) / wall;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 500));
}
