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

async function measure({ rounds, quick }: RowOptions): Promise<readonly Figure[]> {
  // A smaller fleet that renews as often costs more for each: its frames come one by one, and each wakes the process.
  const sessions = quick ? FLEET / 5 : FLEET;
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
    const windowMs = quick ? 1_000 : 2_000;
    // All renew all the time: whoever does not is soon a suspect, which is other work. So the windows are the same for all.
    const renewing = [client, toNet].map((each) =>
      each.ask("renewals", { everyMs: RENEW_MS, durationMs: WARM_UP_MS + rounds * windowMs }),
    );
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    const shares: { readonly idle: number; readonly bare: number; readonly subject: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      const window = new Promise((resolve) => setTimeout(resolve, windowMs));
      const [ofIdle, bare, subject] = await Promise.all(
        [() => idle.ask("cpu"), () => net.ask("cpu"), () => scheduler.ask("cpu")].map((cpu) => shareOf(cpu, window)),
      );
      shares.push({ idle: ofIdle ?? Number.NaN, bare: bare ?? Number.NaN, subject: subject ?? Number.NaN });
    }
    await Promise.all(renewing);
    const { waitingFor, converged } = await scheduler.ask("status");
    if (!converged) throw new Error(`the fleet did not rest: ${waitingFor.join(", ")}`);
    const subject = median(shares.map((share) => share.subject));
    const scale = FLEET / sessions;
    return [
      {
        what: "renewals of 10,000 executors every 5 s, share of a core",
        unit: "%",
        floor: median(shares.map(({ idle }) => idle)),
        subject: subject * scale,
        goal: { max: 12 },
        ...(scale === 1 ? {} : { note: `measured with ${sessions} and multiplied by ${scale}` }),
      },
      {
        what: "the same, against a bare server that answers JSON lines",
        unit: "%",
        floor: median(shares.map(({ bare }) => bare)) * scale,
        subject: subject * scale,
        goal: {},
      },
    ];
  });
}

/** Until the code is compiled. */
const WARM_UP_MS = 3_000;

/** How many hundredths of a core a process is busy with, as long as `window` lasts. */
async function shareOf(cpuMicros: () => Promise<number>, window: Promise<unknown>): Promise<number> {
  const { cpu, wall } = await metered(cpuMicros, () => window);
  return (100 * cpu) / wall;
}
