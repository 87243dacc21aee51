import { type AddressInfo, createServer, type Socket } from "node:net";
import { pagePush } from "../../../src/protocol/paging.ts";
import { lineSplitter, serverFrame } from "../framing.ts";
import { serve } from "../peer.ts";
import { samplePush } from "../samples.ts";
import { cpuMicros, settledMemory } from "../usage.ts";

/** The floor of everything with sockets: a bare `net` server in a process of its own. */

const sockets = new Set<Socket>();
let writes: readonly { readonly socket: Socket; readonly bytes: Buffer }[] = [];

const WELCOME = {
  type: "welcome",
  cluster: "demo",
  incarnation: "0123456789abcdef01234567",
  term: 1,
  session: "0123456789abcdef01234567",
  resumed: false,
  status: "assigned",
  lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000 },
  stamp: "1.1.1234567890123.0123456789abcdefghijklmnopqrstuvwxyz0123456",
};

const PUSH: unknown = JSON.parse(pagePush(samplePush(0))[0] ?? "");

const commands = {
  /** `json`: reads JSON lines and answers renewals and hellos. `write`: reads nothing, writes when told. */
  start: (mode: "json" | "write"): Promise<number> => {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      if (mode === "json") readLines(socket);
      else socket.on("data", () => {});
    });
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  },
  /** A client is connected before its server has seen that: resolves when so many sockets are there. */
  accepted: async (count: number): Promise<void> => {
    while (sockets.size < count) await new Promise((resolve) => setTimeout(resolve, 1));
  },
  cpu: cpuMicros,
  memory: settledMemory,
  /** Makes the bytes that a scheduler would write, so that writing them is all that is measured. */
  prepare: (distinct: boolean) => {
    writes = [...sockets].map((socket, at) => {
      return { socket, bytes: Buffer.concat(pagePush(samplePush(distinct ? at : 0)).map(serverFrame)) };
    });
  },
  /** Writes what was prepared to each socket, once a wave. */
  write: async (waves: number): Promise<void> => {
    for (let wave = 0; wave < waves; wave++) {
      for (const { socket, bytes } of writes) socket.write(bytes);
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
  /** Writes a push to each socket as a JSON line. */
  writeLines: () => {
    const line = `${JSON.stringify(PUSH)}\n`;
    for (const socket of sockets) socket.write(line);
  },
};

export type NetCommands = typeof commands;

function readLines(socket: Socket): void {
  socket.setEncoding("utf8");
  const split = lineSplitter((line) => answer(socket, JSON.parse(line)));
  socket.on("data", split);
}

function answer(socket: Socket, frame: { readonly type: string; readonly n?: number }): void {
  if (frame.type === "renew") {
    socket.write(`${JSON.stringify({ type: "lease", n: frame.n, durationMs: 15_000, renewMs: 4_000 })}\n`);
  } else if (frame.type === "hello") {
    socket.write(`${JSON.stringify(WELCOME)}\n`);
    socket.write(`${JSON.stringify(PUSH)}\n`);
  }
}

serve(commands);
