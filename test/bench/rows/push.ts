import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { GatewayCommands } from "../peers/gateway.ts";
import type { NetCommands } from "../peers/net-server.ts";
import { byCpu, interleave, metered } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";

/** Pushes through the gateway against a bare server that writes the same bytes, made before. Server CPU of each message. */
export const push: Row = { name: "push", measure };

const WAVES = 12;

async function measure({ rounds, quick, large }: RowOptions): Promise<readonly Figure[]> {
  const sessions = large ? 10_000 : 1_000;
  const waves = quick || large ? WAVES / 3 : WAVES;
  const figures = await measureLevel("silent", [false, true], { sessions, waves, rounds });
  const logged = await measureLevel("info", [true], { sessions, waves, rounds });
  return [
    ...figures.map((figure) => ({ ...figure, note: "logs off" })),
    ...logged.map((figure) => ({ ...figure, what: `${figure.what}, each logged`, goal: {} })),
  ];
}

async function measureLevel(
  level: "info" | "silent",
  kinds: readonly boolean[],
  { sessions, waves, rounds }: { readonly sessions: number; readonly waves: number; readonly rounds: number },
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
      await net.ask("prepare", distinct);
      return metered(
        () => net.ask("cpu"),
        () => toAll(toNet, messages, () => net.ask("write", waves)),
      );
    };
    const subject = (distinct: boolean) =>
      metered(
        () => gateway.ask("cpu"),
        () => toAll(toGateway, messages, () => gateway.ask("push", { waves, distinct })),
      );
    const figures: Figure[] = [];
    for (const distinct of kinds) {
      await floor(distinct);
      await subject(distinct);
      const pair = await interleave(
        rounds,
        1_000 / messages,
        () => floor(distinct),
        () => subject(distinct),
      );
      const what = `${distinct ? "distinct small pushes" : "the same push"} to ${sessions.toLocaleString("en")} sessions, CPU each`;
      figures.push({ what, unit: "µs", ...byCpu(pair), goal: { maxRatio: distinct ? 1.6 : 1.35 } });
    }
    return figures;
  });
}

/** From the first write until the clients have read everything. */
async function toAll(client: Peer<ClientCommands>, messages: number, write: () => Promise<void>): Promise<void> {
  await client.ask("mark");
  await write();
  await client.ask("received", messages);
}
