import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { NetCommands } from "../peers/net-server.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";

/** Memory of an idle session with its state, against a bare server's connection. */
export const memory: Row = { name: "memory", measure };

/** Those that come first make the process as large as code and heap want to be, and are not counted. */
const WARM = 500;
const PARTITIONS_EACH = 8;
const KB = 1_024;

async function measure({ large }: RowOptions): Promise<readonly Figure[]> {
  const sessions = large ? 10_000 : 2_000;
  const floor = await measureFloor(sessions);
  const subject = await measureSubject(sessions);
  const of = `${sessions.toLocaleString("en")} idle sessions`;
  return [
    {
      what: `memory of each of ${of}`,
      unit: "KB",
      floor: floor.rss,
      subject: subject.rss,
      goal: { max: 12, maxRatio: 3.5 },
    },
    { what: "of that on the JavaScript heap", unit: "KB", floor: floor.held, subject: subject.held, goal: {} },
  ];
}

async function measureFloor(sessions: number) {
  const net = new Peer<NetCommands>("peers/net-server");
  const client = new Peer<ClientCommands>("peers/client");
  return withPeers([client, net], async () => {
    const port = await net.ask("start", "json");
    const open = (count: number, ids: string) =>
      client.ask("open", { port, count, framing: "lines", upgrade: false, ids, hello: {} });
    await open(WARM, "W");
    const before = await net.ask("memory");
    await open(sessions, "E");
    return perSession(before, await net.ask("memory"), sessions);
  });
}

async function measureSubject(sessions: number) {
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  const client = new Peer<ClientCommands>("peers/client");
  return withPeers([client, scheduler], async () => {
    const port = await scheduler.ask("start", { settings: { ...PATIENT, join: { quietMs: 250, maxMs: 2_000 } } });
    await scheduler.ask("putTable", { name: "trips", count: (WARM + sessions) * PARTITIONS_EACH });
    await client.ask("automatic", true);
    const open = async (count: number, ids: string) => {
      const hello = { capacity: PARTITIONS_EACH };
      await client.ask("open", { port, count, framing: "websocket", upgrade: true, ids, hello });
      await client.ask("pushed");
      await client.ask("barrier");
    };
    await open(WARM, "W");
    const before = await scheduler.ask("memory");
    await open(sessions, "E");
    return perSession(before, await scheduler.ask("memory"), sessions);
  });
}

interface Memory {
  readonly rss: number;
  readonly held: number;
}

function perSession(before: Memory, after: Memory, sessions: number): Memory {
  return { rss: (after.rss - before.rss) / sessions / KB, held: (after.held - before.held) / sessions / KB };
}
