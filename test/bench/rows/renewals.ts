import { DEFAULT_SETTINGS } from "../../../src/model/settings.ts";
import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { interleave } from "../rounds.ts";
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
  const client = new Peer<ClientCommands>("peers/client");
  return withPeers([client, scheduler, idle], async () => {
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
    const durationMs = quick ? 1_000 : 3_000;
    const share = async (server: Peer<SchedulerCommands>, work: () => Promise<unknown>): Promise<number> => {
      const before = await server.ask("cpu");
      const startedAt = performance.now();
      await work();
      return ((await server.ask("cpu")) - before) / 10 / (performance.now() - startedAt);
    };
    const renew = () => client.ask("renewals", { everyMs: RENEW_MS, durationMs });
    await renew();
    const { floor, subject } = await interleave(
      rounds,
      () => share(idle, () => new Promise((resolve) => setTimeout(resolve, 500))),
      () => share(scheduler, renew),
    );
    const scale = FLEET / sessions;
    return [
      {
        what: "renewals of 10,000 executors every 5 s, share of a core",
        unit: "%",
        floor,
        subject: subject * scale,
        goal: { max: 12 },
        ...(scale === 1 ? {} : { note: `measured with ${sessions} and multiplied by ${scale}` }),
      },
    ];
  });
}
