import { expect, test } from "vitest";
import { type ClientKind, INDEPENDENT, type Place, SDK } from "./rig/clients.ts";
import { until } from "./rig/until.ts";
import { inWorld, type Member, type World } from "./rig/world.ts";

/**
 * Trouble of all kinds for a while, then none: at no moment two owners, and at the end everything is owned and shared out
 * evenly. What comes when is drawn from a seed, but sockets and timers have their say, so that no run is like another.
 * `STORM_SEED` and `STORM_MS` make it another storm, and a longer one.
 */

const TROUBLE_MS = Number(process.env["STORM_MS"] ?? 6_000);
const SEED = Number(process.env["STORM_SEED"] ?? 1);

/** Longest time between two troubles. */
const PAUSE_MS = 300;
/** What a partition may take to unload, and a block to end: some of them longer than a lease. */
const SLOW_UNLOAD_MS = 900;
const [SHORT_BLOCK_MS, LONG_BLOCK_MS] = [1_000, 5_000];
/** What is swallowed is missed at the latest when the connection breaks. */
const SWALLOW_MS = 500;

const NAMES = ["A", "B", "C", "D", "E"] as const;
const TABLES = { events: 4, trips: 9 };

class Storm {
  readonly #world: World;
  readonly #random: () => number;
  readonly #present = new Map<string, Member>();
  readonly #ended = new Set<Member>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** What was done, for the message of a failure. */
  readonly log: string[] = [];

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#random = xorshift(seed);
  }

  async rage(forMs: number): Promise<void> {
    for (const name of NAMES.slice(0, 3)) await this.#start(name);
    const endsAt = performance.now() + forMs;
    while (performance.now() < endsAt) {
      const pause = this.#random() * PAUSE_MS;
      await new Promise<void>((resolve) => setTimeout(resolve, pause));
      const name = NAMES[Math.floor(this.#random() * NAMES.length)] ?? "A";
      const member = this.#present.get(name);
      if (member === undefined || this.#ended.has(member)) await this.#start(name);
      else await this.#trouble(member);
    }
    this.#calm();
  }

  async #trouble(member: Member): Promise<void> {
    const { client, cable, name } = member;
    const troubles: readonly (readonly [string, number, () => unknown])[] = [
      ["cut", 25, () => cable.cut()],
      ["block", 15, () => this.#block(member)],
      ["half-open", 10, () => this.#later(3_000, cable.leaveHalfOpen())],
      ["move", 10, () => client.leave("move")],
      ["restart", 10, () => client.leave("restart")],
      ["second process", 6, () => this.#start(name)],
      ["swallow", 8, () => this.#swallow(member)],
      ["close", 4, () => client.close()],
      ["put a table", 6, () => this.#world.putTable("extra", 5, { stop: "700ms" }, [200, 409])],
      ["delete it", 6, () => this.#world.http("DELETE", "/v1/tables/extra")],
    ];
    let dice = this.#random() * troubles.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [what, weight, happen] of troubles) {
      dice -= weight;
      if (dice >= 0) continue;
      this.log.push(`${Math.round(performance.now())} ${client.instance} ${what}`);
      await happen();
      return;
    }
  }

  async #start(name: string): Promise<void> {
    const isSlow = this.#random() < 0.4;
    const member = await this.#world.join(name, {
      load: (place) => this.#load(place),
      unload: () => (isSlow ? this.#wait(SLOW_UNLOAD_MS) : Promise.resolve()),
    });
    this.#present.set(name, member);
    this.log.push(`${Math.round(performance.now())} ${member.client.instance} starts`);
    void member.client.ended.then((why) => {
      this.#ended.add(member);
      this.log.push(`${Math.round(performance.now())} ${member.client.instance} ended: ${why}`);
    });
  }

  #load({ table, partition }: Place): Promise<void> {
    if (this.#random() < 0.03) return Promise.reject(new Error(`${table}/${partition} does not load`));
    return this.#random() < 0.3 ? this.#wait(PAUSE_MS) : Promise.resolve();
  }

  #block({ cable }: Member): void {
    cable.block();
    const longest = this.#random() < 0.3 ? LONG_BLOCK_MS : SHORT_BLOCK_MS;
    this.#later(longest, () => cable.unblock());
  }

  #swallow({ cable }: Member): void {
    const type = this.#random() < 0.5 ? "ack" : "report";
    cable.swallowFrom = (frame) => frame.type === type;
    this.#later(SWALLOW_MS, () => {
      cable.swallowFrom = undefined;
      cable.cut();
    });
  }

  /** Nothing happens any more; who is cut off comes back. */
  #calm(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const { cable } of this.#world.members) {
      const wasSwallowing = cable.swallowFrom !== undefined;
      cable.swallowFrom = undefined;
      if (wasSwallowing) cable.cut();
      cable.unblock();
    }
  }

  #later(longestMs: number, call: () => void): void {
    const timer = setTimeout(call, this.#random() * longestMs);
    this.#timers.add(timer);
  }

  #wait(longestMs: number): Promise<void> {
    const ms = this.#random() * longestMs;
    return new Promise((resolve) => setTimeout(resolve, ms));
  }
}

function xorshift(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Everything is owned, by living executors evenly, and each says of itself what the scheduler says of it. */
async function expectCalm(world: World): Promise<void> {
  const status = () => world.server.api.status();
  const told = { withinMs: 30_000, instead: () => JSON.stringify(status()) };
  await until("calm", () => world.isConverged(), told);
  for (const { owned, count } of status().tables) expect(owned).toBe(count);
  const live = status().executors.filter(({ state }) => state === "live");
  const counts = live.map(({ owned }) => owned);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  const agrees = ({ instance, owned }: (typeof live)[number]) => {
    const member = world.members.find(({ client }) => client.instance === instance);
    const served = ["events", "trips", "extra"].map((table) => member?.served(table).size ?? 0);
    return served.reduce((sum, size) => sum + size, 0) === owned;
  };
  await until("the clients to agree", () => live.every(agrees), told);
}

const fleets: readonly (readonly [string, readonly ClientKind[]])[] = [
  ["the SDK", [SDK]],
  ["the independent client", [INDEPENDENT]],
  ["both in turn", [SDK, INDEPENDENT]],
];

test.concurrent.each(fleets)(
  "whatever happens to a fleet of %s, no partition has two owners, and all is owned in the end",
  async (_name, kinds) => {
    await inWorld({ kinds, expect: 3, tables: TABLES }, async (world) => {
      const storm = new Storm(world, SEED);
      await storm.rage(TROUBLE_MS);
      await expectCalm(world).catch((error: Error) => {
        throw new Error(`${error.message}\nwhat was done:\n${storm.log.join("\n")}`);
      });
      const complaints = [...world.record.complaints(), ...world.wireComplaints()];
      if (complaints.length > 0) throw new Error([...complaints, "what was done:", ...storm.log].join("\n"));
    });
  },
  TROUBLE_MS + 60_000,
);
