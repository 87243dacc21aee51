import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { median } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/** A thousand hellos at once, to the push of each: how many changes were committed for them. */
export const helloWindow: Row = { name: "hello-window", measure };

const SESSIONS = 1_000;

async function measure({ rounds }: RowOptions): Promise<readonly Figure[]> {
  const commits: number[] = [];
  const took: number[] = [];
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
    const client = new Peer<ClientCommands>("peers/client");
    await withPeers([client, scheduler], async () => {
      const port = await scheduler.ask("start", {
        settings: { ...PATIENT, formation: { quietMs: 500, maxMs: 5_000 } },
      });
      const before = await scheduler.ask("putTable", { name: "trips", count: 10 * SESSIONS });
      await client.ask("automatic", true);
      await client.ask("open", { port, count: SESSIONS, framing: "websocket", upgrade: true, ids: "E" });
      const startedAt = performance.now();
      await client.ask("helloAll", {});
      took.push(performance.now() - startedAt);
      await client.ask("barrier");
      commits.push((await scheduler.ask("revision")) - before);
    });
  }
  return [
    { what: "1,000 hellos in one window", unit: "commits", subject: Math.max(...commits), goal: { max: 3 } },
    {
      what: "1,000 hellos at once to the last push, a window of 500 ms included",
      unit: "ms",
      subject: median(took),
      goal: {},
    },
  ];
}
