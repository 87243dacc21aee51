import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { GatewayCommands } from "../peers/gateway.ts";
import type { NetCommands } from "../peers/net-server.ts";
import { interleave } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";

/** Pushes through the gateway against a bare server that writes the same bytes, made before. Server CPU of each message. */
export const push: Row = { name: "push", measure };

const WAVES = 40;

async function measure({ rounds, quick, large }: RowOptions): Promise<readonly Figure[]> {
  const sessions = large ? 10_000 : 1_000;
  const waves = quick || large ? WAVES / 4 : WAVES;
  const figures = await measureLevel("silent", sessions, waves, rounds);
  const logged = await measureLevel("info", sessions, waves, rounds);
  return [
    ...figures.map((figure) => ({ ...figure, note: "logs off" })),
    ...logged.slice(1).map((figure) => ({ ...figure, what: `${figure.what}, each logged`, goal: {} })),
  ];
}

async function measureLevel(
  level: "info" | "silent",
  sessions: number,
  waves: number,
  rounds: number,
): Promise<readonly Figure[]> {
  const gateway = new Peer<GatewayCommands>("peers/gateway");
  const net = new Peer<NetCommands>("peers/net-server");
  const [toGateway, toNet] = [new Peer<ClientCommands>("peers/client"), new Peer<ClientCommands>("peers/client")];
  return withPeers([toGateway, toNet, gateway, net], async () => {
    const common = { count: sessions, framing: "websocket", ids: "E" } as const;
    await toGateway.ask("open", { ...common, port: await gateway.ask("start", level), upgrade: true, hello: {} });
    await toNet.ask("open", { ...common, port: await net.ask("start", "write"), upgrade: false });
    await net.ask("accepted", sessions);
    const messages = sessions * waves;
    const floor = async (distinct: boolean) => {
      await toNet.ask("mark");
      const before = await net.ask("write", { waves, distinct });
      await toNet.ask("received", messages);
      return ((await net.ask("cpu")) - before) / messages;
    };
    const subject = async (distinct: boolean) => {
      await toGateway.ask("mark");
      const before = await gateway.ask("push", { waves, distinct });
      await toGateway.ask("received", messages);
      return ((await gateway.ask("cpu")) - before) / messages;
    };
    const figures: Figure[] = [];
    for (const distinct of [false, true]) {
      await floor(distinct);
      await subject(distinct);
      const pair = await interleave(
        rounds,
        () => floor(distinct),
        () => subject(distinct),
      );
      const what = `${distinct ? "distinct small pushes" : "the same push"} to ${sessions.toLocaleString("en")} sessions, CPU each`;
      figures.push({ what, unit: "µs", ...pair, goal: { maxRatio: distinct ? 1.6 : 1.35 } });
    }
    return figures;
  });
}
