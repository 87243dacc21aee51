import { once } from "node:events";
import { WebSocket } from "ws";
import type { TableSpec } from "../../src/model/change.ts";
import { tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";
import { SESSION_PATH, SUBPROTOCOL } from "../../src/protocol/limits.ts";
import { type RunningServer, type ServerConfig, startServer } from "../../src/server.ts";
import { type Frame, Peer, until } from "../gateway/harness.ts";

/** Short times, so that a test sees them pass; in the proportions of the defaults. */
export const QUICK: Settings = {
  ...DEFAULT_SETTINGS,
  lease: { durationMs: 3_000, renewMs: 500, clientMarginMs: 200, serverMarginMs: 200, driftRate: 0.01 },
  formation: { quietMs: 100, maxMs: 400 },
  join: { quietMs: 50, maxMs: 200 },
  loss: { waitMs: 1_000, returnMs: 5_000 },
  shutdown: { timeoutMs: 2_000 },
};

export const tableOf = (name: string, count: number): TableSpec => ({
  table: tableName(name),
  count,
  handoff: "exclusive",
  stopMs: 30_000,
  balance: "count",
  selector: {},
});

/** A whole scheduler on a port of its own, and the executors that a test lets speak to it. */
export class ServerRig {
  readonly lines: Frame[] = [];
  readonly executors: RawExecutor[] = [];
  #server: RunningServer | undefined;

  async start(settings: Partial<Settings> = {}, config: Partial<ServerConfig> = {}): Promise<this> {
    this.#server = await startServer({
      settings: { ...QUICK, ...settings },
      listen: { host: "127.0.0.1", port: 0 },
      store: { kind: "memory" },
      log: {
        level: "debug",
        pretty: "never",
        sink: { write: (line) => this.lines.push(JSON.parse(line) as Frame) },
      },
      ...config,
    });
    return this;
  }

  get server(): RunningServer {
    if (this.#server === undefined) throw new Error("the rig was not started");
    return this.#server;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.executors) socket.terminate();
    await this.#server?.stop();
  }

  /** A session on which nothing was said. */
  async connect(executor: string, options: RawOptions = {}): Promise<RawExecutor> {
    const socket = new WebSocket(`${this.server.wsUrl}${SESSION_PATH}`, SUBPROTOCOL);
    const raw = new RawExecutor(socket, executor, options);
    this.executors.push(raw);
    await once(socket, "open");
    return raw;
  }

  /** A session that was welcomed. */
  async join(executor: string, options: RawOptions = {}): Promise<RawExecutor> {
    const raw = await this.connect(executor, options);
    raw.hello();
    await until(`the welcome of ${executor}`, () => raw.of("welcome").length > 0);
    return raw;
  }

  async http(method: string, path: string, body?: object): Promise<{ status: number; body: Frame }> {
    const json = { "content-type": "application/json" };
    const init = body === undefined ? { method } : { method, headers: json, body: JSON.stringify(body) };
    const response = await fetch(`${this.server.url}${path}`, init);
    return { status: response.status, body: (await response.json()) as Frame };
  }

  logged(event: string): Frame[] {
    return this.lines.filter((line) => line["event"] === event);
  }

  async converged(): Promise<void> {
    await until("convergence", () => this.server.api.status().converged);
  }
}

export interface RawOptions {
  readonly instance?: string;
  readonly attempt?: number;
  /** Whether pushes are acknowledged and done at once. Default true. */
  readonly obedient?: boolean;
}

interface Entry {
  readonly table: string;
  readonly partitions: string;
  readonly epoch: number;
}

/** An executor that speaks the wire by hand. */
export class RawExecutor extends Peer {
  readonly #id: string;
  readonly #options: RawOptions;

  constructor(socket: WebSocket, id: string, options: RawOptions) {
    super(socket);
    this.#id = id;
    this.#options = options;
    socket.on("message", () => {
      const frame = this.frames.at(-1);
      if (frame?.["type"] === "push" && options.obedient !== false) this.obey(frame);
    });
  }

  hello(more: object = {}): void {
    const { instance = `${this.#id}-1`, attempt = 1 } = this.#options;
    this.send({ type: "hello", role: "executor", executor: this.#id, instance, attempt, ...more });
  }

  /** Reports what a push gives as ready and what it takes as released, and acknowledges it. */
  obey(frame: Frame): void {
    const lists = frame as { readonly grant?: readonly Entry[]; readonly revoke?: readonly Entry[] };
    const bare = (entries: readonly Entry[] = []) =>
      entries.map(({ table, partitions, epoch }) => ({ table, partitions, epoch }));
    this.send({ type: "report", ready: bare(lists.grant), released: bare(lists.revoke) });
    this.send({ type: "ack", revision: frame["revision"] });
  }

  of(type: string): Frame[] {
    return this.frames.filter((frame) => frame["type"] === type);
  }

  async next(type: string, nth = 1): Promise<Frame> {
    return until(`${type} number ${nth} of ${this.#id}`, () => this.of(type)[nth - 1]);
  }
}
