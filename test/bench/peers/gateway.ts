import { createOpenAccess } from "../../../src/auth/open-access.ts";
import type { Event, HelloReceived, SessionHost, Welcome } from "../../../src/driver/ports.ts";
import { realClock } from "../../../src/driver/real-clock.ts";
import { realRandom } from "../../../src/driver/real-random.ts";
import { createStamps } from "../../../src/driver/stamps.ts";
import { Gateway } from "../../../src/gateway/gateway.ts";
import { createHttpServer, listen } from "../../../src/http/server.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { serve } from "../peer.ts";
import { samplePush } from "../samples.ts";
import { cpuMicros } from "../usage.ts";

/** A gateway in front of a host that only welcomes: what a push costs apart from its decision. */

const hellos: HelloReceived[] = [];

const host: SessionHost = {
  post(event: Event): void {
    if (event.type !== "hello.received") return;
    hellos.push(event);
    gateway?.deliver({ type: "session.welcome", session: event.session, ...WELCOME });
  },
  attachSessions(): void {},
  ready: () => true,
};

const WELCOME: Welcome = {
  cluster: "demo",
  incarnation: "life",
  term: 1,
  revision: 1,
  resumed: false,
  status: "assigned",
  lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000 },
};

let gateway: Gateway | undefined;

const commands = {
  start: async (level: "info" | "silent"): Promise<number> => {
    gateway = new Gateway({
      host,
      stamps: createStamps(new Uint8Array(32), "life", 1),
      access: createOpenAccess({ boundToLoopback: true }),
      clock: realClock,
      random: realRandom,
      log: createLog({ level, pretty: "never", sink: { write: () => {} } }),
    });
    const server = createHttpServer({ fetch: () => new Response() });
    server.on("upgrade", gateway.handleUpgrade);
    return (await listen(server, { host: "127.0.0.1", port: 0 })).port;
  },
  cpu: cpuMicros,
  /** A push to each session, once a wave. */
  push: async ({ waves, distinct }: { waves: number; distinct: boolean }): Promise<void> => {
    const pushes = hellos.map((_, at) => samplePush(distinct ? at : 0));
    for (let wave = 0; wave < waves; wave++) {
      hellos.forEach(({ session, executor }, at) => {
        gateway?.deliver({ type: "session.push", session, executor, ...(pushes[at] ?? samplePush(at)) });
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
};

export type GatewayCommands = typeof commands;

serve(commands);
