import { expect } from "vitest";
import type { TableSpec } from "../../../src/model/change.ts";
import { tableName } from "../../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../src/model/settings.ts";
import { type RunningServer, startServer } from "../../../src/server.ts";
import { Cable, type Frame } from "./cable.ts";
import type { ClientKind, FleetClient, Place } from "./clients.ts";
import { ServingRecord } from "./serving-record.ts";
import { until } from "./until.ts";
import { complaintsAbout } from "./witness.ts";

/** Short times in the proportions of the defaults, so that a test sees them pass and a busy machine does not break them. */
export const QUICK: Settings = {
  ...DEFAULT_SETTINGS,
  lease: { durationMs: 3_000, renewMs: 800, clientMarginMs: 200, serverMarginMs: 200, driftRate: 0.01 },
  formation: { quietMs: 250, maxMs: 5_000 },
  join: { quietMs: 100, maxMs: 500 },
  loss: { waitMs: 1_600, returnMs: 5_000 },
  delivery: { ackTimeoutMs: 3_000 },
  shutdown: { timeoutMs: 1_500 },
};

/** How often all clients are asked what they may serve. */
const LOOK_EVERY_MS = 4;

export interface WorldOptions {
  readonly kinds: readonly ClientKind[];
  readonly settings?: Partial<Settings>;
  /** So many executors are waited for at the start, however long that takes; absent: the window alone decides. */
  readonly expect?: number;
  /** Declared tables and their partitions; absent: none are declared yet. */
  readonly tables?: Readonly<Record<string, number>>;
}

export interface JoinOptions {
  readonly traits?: Readonly<Record<string, unknown>>;
  readonly instance?: string;
  readonly load?: (place: Place) => Promise<void>;
  readonly unload?: (place: Place) => Promise<void>;
}

/** One client in the fleet, with the cable that it hangs on. */
export interface Member {
  readonly name: string;
  readonly client: FleetClient;
  readonly cable: Cable;
  /** Partitions of a table that it says it may serve now, with their epochs. */
  served(table?: string): ReadonlyMap<number, number>;
}

/** Runs a test in a world of its own; at its end the record and the wire must be without complaints. */
export async function inWorld(options: WorldOptions, test: (world: World) => Promise<void>): Promise<void> {
  const world = await new World(options).start();
  try {
    await test(world);
    expect([...world.record.complaints(), ...world.wireComplaints()]).toEqual([]);
  } finally {
    await world.stop();
  }
}

/** A real scheduler, and clients of one kind or of several in turn, each on a cable of its own. */
export class World {
  readonly record = new ServingRecord();
  readonly members: Member[] = [];
  readonly lines: Frame[] = [];
  readonly settings: Settings;
  readonly #options: WorldOptions;
  readonly #looking: NodeJS.Timeout;
  #server: RunningServer | undefined;
  #port = 0;
  #starts = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    const { expect: count } = options;
    const formation = count === undefined ? {} : { formation: { quietMs: 5_000, maxMs: 5_000, expect: count } };
    this.settings = { ...QUICK, ...formation, ...options.settings };
    this.#looking = setInterval(() => this.record.look(), LOOK_EVERY_MS);
  }

  async start(): Promise<this> {
    const { tables } = this.#options;
    this.#server = await startServer({
      settings: this.settings,
      listen: { host: "127.0.0.1", port: this.#port },
      store: { kind: "memory" },
      log: { level: "debug", pretty: "never", sink: { write: (line) => this.#note(line) } },
      ...(tables && { tables: Object.entries(tables).map(([name, count]) => specOf(name, count)) }),
    });
    this.#port = Number(new URL(this.#server.url).port);
    for (const [table, count] of Object.entries(tables ?? {})) this.record.addTable(table, count);
    return this;
  }

  get server(): RunningServer {
    if (this.#server === undefined) throw new Error("the scheduler was not started");
    return this.#server;
  }

  /** Ends the scheduler without a goodbye that anyone hears, and starts another on the same port with an empty store. */
  async restartOnAnEmptyStore(): Promise<void> {
    for (const { cable } of this.members) cable.block();
    await this.server.stop();
    this.record.changeStore();
    await this.start();
    for (const { cable } of this.members) cable.unblock();
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking);
    for (const { client } of this.members) client.close();
    for (const { cable } of this.members) await cable.close();
    await this.#server?.stop();
  }

  /** Starts a process that takes part as `name`. It is not connected yet when this returns. */
  async join(name: string, options: JoinOptions = {}): Promise<Member> {
    const { kinds } = this.#options;
    const kind = kinds[this.#starts++ % kinds.length];
    if (kind === undefined) throw new Error("a world has clients of some kind");
    const { instance = `${name}-${this.#starts}`, traits = {} } = options;
    const { load = () => Promise.resolve(), unload = () => Promise.resolve() } = options;
    const cable = await Cable.lay(this.#port);
    const changed = () => this.record.look();
    const client = kind.start({ url: cable.url, executor: name, instance, traits, load, unload, changed });
    const member = { name, client, cable, served: (table = "trips") => this.record.served(instance, table) };
    this.record.watch({ who: instance, mayServe: client.mayServe });
    this.members.push(member);
    return member;
  }

  /** Waits until each of the members may serve so many partitions of the table, and the scheduler has nothing to do. */
  async shares(counts: readonly (readonly [Member, number])[], table = "trips"): Promise<void> {
    const now = () => counts.map(([member]) => `${member.name}: ${member.served(table).size}`).join(", ");
    await until(
      `shares of ${counts.map(([{ name }, count]) => `${name}: ${count}`).join(", ")}`,
      () => counts.every(([member, count]) => member.served(table).size === count) && this.isConverged(),
      { instead: () => `(now ${now()}; ${this.server.api.status().waitingFor.join("; ")})` },
    );
  }

  isConverged(): boolean {
    return this.server.api.status().converged;
  }

  /** A request to the HTTP API. */
  async http(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: Frame }> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${this.server.url}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Frame };
  }

  async putTable(name: string, partitions: number, more: object = {}, statuses = [200]): Promise<void> {
    this.record.addTable(name, partitions);
    const { status } = await this.http("PUT", `/v1/tables/${name}`, { partitions, ...more });
    expect(statuses).toContain(status);
  }

  /** Log lines of one event, oldest first, as far as they have these members. */
  logged(event: string, members: Readonly<Record<string, unknown>> = {}): readonly Frame[] {
    return this.lines.filter(
      (line) => line["event"] === event && Object.entries(members).every(([name, value]) => line[name] === value),
    );
  }

  wireComplaints(): readonly string[] {
    return this.members.flatMap(({ client, cable }) => complaintsAbout(client.instance, cable.seen));
  }

  #note(line: string): void {
    this.lines.push(JSON.parse(line) as Frame);
  }
}

function specOf(name: string, count: number): TableSpec {
  return { table: tableName(name), count, handoff: "exclusive", stopMs: 30_000, balance: "count", selector: {} };
}
