import { once } from "node:events";
import { type IncomingMessage, request, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";
import { createOpenAccess } from "../../src/auth/open-access.ts";
import type { Event, LogLevel, SessionEffect, SessionHost } from "../../src/driver/ports.ts";
import { Gateway } from "../../src/gateway/gateway.ts";
import type { GatewayLimits } from "../../src/gateway/limits.ts";
import { createHttpServer, listen } from "../../src/http/server.ts";
import { executorId, type SessionId } from "../../src/model/ids.ts";
import { SESSION_PATH, SUBPROTOCOL } from "../../src/protocol/limits.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

/** Longest that a test waits for what has to come. */
const DEADLINE_MS = 10_000;

/** Waits until `get` gives something; fails after a deadline, saying what was waited for. */
export async function until<T>(
  what: string,
  get: () => T | undefined | false,
  deadlineMs: number = DEADLINE_MS,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const value = get();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain for ${what}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
  }
}

/** Stands in for the core: keeps what came, and says only what a test lets it say. */
export class ScriptedHost implements SessionHost {
  readonly events: Event[] = [];
  isReady = true;

  post(event: Event): void {
    this.events.push(event);
  }

  attachSessions(): void {}

  ready(): boolean {
    return this.isReady;
  }

  of<Type extends Event["type"]>(type: Type): Extract<Event, { type: Type }>[] {
    return this.events.filter((event): event is Extract<Event, { type: Type }> => event.type === type);
  }
}

interface Line {
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A gateway on a real port, in front of a scripted host, on a clock that stands still. */
export class GatewayRig {
  readonly host = new ScriptedHost();
  readonly clock = new FakeClock();
  readonly lines: Line[] = [];
  readonly gateway: Gateway;
  readonly server: Server;
  readonly peers: Peer[] = [];
  port = 0;
  #ids = 0;

  constructor(options: { limits?: Partial<GatewayLimits>; headersTimeoutMs?: number } = {}) {
    const { limits = {}, ...http } = options;
    this.gateway = new Gateway({
      host: this.host,
      stamps: {
        mint: (revision) => `stamp-${revision}`,
        verify: (stamp) => (stamp === "stamp-7" ? { term: 1, revision: 7 } : undefined),
      },
      access: createOpenAccess({ boundToLoopback: true }),
      clock: this.clock,
      random: { next: () => 0.5, id: () => `s${++this.#ids}` },
      log: { log: (level, event, fields) => void this.lines.push({ level, event, fields }) },
      limits,
    });
    this.server = createHttpServer({ fetch: () => new Response("plain"), ...http });
    this.server.on("upgrade", this.gateway.handleUpgrade);
    this.server.on("connect", this.gateway.handleConnect);
    this.server.on("clientError", this.gateway.handleClientError);
  }

  async start(): Promise<this> {
    this.port = (await listen(this.server, { host: "127.0.0.1", port: 0 })).port;
    return this;
  }

  async stop(): Promise<void> {
    for (const peer of this.peers) peer.socket.terminate();
    await this.gateway.close();
    this.server.closeAllConnections();
    this.server.close();
  }

  deliver(effect: SessionEffect): void {
    this.gateway.deliver(effect);
  }

  /** A peer that has not said anything. */
  async connect(): Promise<Peer> {
    const peer = new Peer(new WebSocket(`ws://127.0.0.1:${this.port}${SESSION_PATH}`, SUBPROTOCOL));
    this.peers.push(peer);
    await once(peer.socket, "open");
    return peer;
  }

  /** A peer whose hello was handed to the core. */
  async join(executor: string): Promise<Joined> {
    const peer = await this.connect();
    peer.send({ type: "hello", role: "executor", executor, instance: `${executor}-1`, attempt: 1 });
    const hello = await until(`the hello of ${executor}`, () =>
      this.host.of("hello.received").find((event) => event.executor === executor),
    );
    return { peer, session: hello.session };
  }

  /** Says one renew and answers it: the session is alive in both directions. */
  async proveAlive({ peer, session }: Joined, n: number): Promise<void> {
    peer.send({ type: "renew", n });
    await until(`renew ${n}`, () =>
      this.host.of("renew.received").find((event) => event.session === session && event.n === n),
    );
    this.deliver({ type: "session.lease", session, n, revision: 1, durationMs: 15_000, renewMs: 4_000 });
    await until(`the answer to renew ${n}`, () => peer.frames.find((frame) => frame["n"] === n));
  }

  closedEvents(session: SessionId): number[] {
    return this.host
      .of("session.closed")
      .filter((event) => event.session === session)
      .map((event) => event.code);
  }

  /** A peer on a bare socket, which says hello and then answers nothing: no ping, no close. */
  async joinMute(executor: string): Promise<{ readonly socket: Socket; readonly session: SessionId }> {
    const socket = await dialSession(this.port);
    const text = Buffer.from(JSON.stringify({ ...HELLO, executor }));
    // A text frame as a client sends it, under a mask of zeros.
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
    const hello = await until(`the hello of ${executor}`, () =>
      this.host.of("hello.received").find((event) => event.executor === executor),
    );
    return { socket, session: hello.session };
  }

  logged(event: string): Line[] {
    return this.lines.filter((line) => line.event === event);
  }
}

export interface Joined {
  readonly peer: Peer;
  readonly session: SessionId;
}

export type Frame = Readonly<Record<string, unknown>>;

/** The other end of a session. */
export class Peer {
  readonly frames: Frame[] = [];
  closed: { readonly code: number; readonly reason: string } | undefined;

  constructor(readonly socket: WebSocket) {
    socket.on("message", (data) => this.frames.push(JSON.parse(data.toString()) as Frame));
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
    socket.on("error", () => {});
  }

  send(frame: object | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  async end(): Promise<{ readonly code: number; readonly reason: string }> {
    return until("the end of a session", () => this.closed);
  }
}

export const HELLO = { type: "hello", role: "executor", executor: "A", instance: "A-1", attempt: 1 } as const;

export const push = (session: SessionId, revision = 7): Extract<SessionEffect, { type: "session.push" }> => ({
  type: "session.push",
  session,
  executor: executorId("A"),
  revision,
  base: null,
  grant: [],
  prepare: [],
  revoke: [],
  tables: [],
  keys: [],
  cause: [{ kind: "formation" }],
});

/** Headers of a proper upgrade. */
export const UPGRADE: Readonly<Record<string, string>> = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  "sec-websocket-protocol": SUBPROTOCOL,
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Frame;
}

/** Sends a request and reads the answer; an upgrade that is taken counts as 101. */
export async function ask(
  port: number,
  options: { method?: string; path?: string; headers?: Record<string, string | undefined> },
): Promise<Answer> {
  const { method = "GET", path = SESSION_PATH } = options;
  const headers = Object.fromEntries(Object.entries(options.headers ?? {}).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers: headers as Record<string, string> });
    sent.on("error", reject);
    sent.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: 101, headers: response.headers, body: {} });
    });
    sent.on("response", async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text) as Frame });
    });
    sent.end();
  });
}

/** A bare TCP connection, for what no library would send. */
export async function dial(
  port: number,
  options: { readonly allowHalfOpen?: boolean } = {},
): Promise<Socket & { received: string }> {
  const socket = Object.assign(connect({ port, host: "127.0.0.1", ...options }), { received: "" });
  socket.on("data", (chunk) => {
    socket.received += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** A bare connection on which the upgrade has been done. */
export async function dialSession(port: number): Promise<Socket & { received: string }> {
  const socket = await dial(port);
  const headers = Object.entries({ host: `127.0.0.1:${port}`, ...UPGRADE }).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET ${SESSION_PATH} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  await until("the upgrade", () => socket.received.includes("\r\n\r\n"));
  return socket;
}
