import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPCODE, writeFrame } from "./independent/frames.ts";
import { SDK } from "./rig/clients.ts";
import { Peer } from "./rig/peer.ts";
import { until } from "./rig/until.ts";
import { type Member, QUICK, World } from "./rig/world.ts";

/**
 * Every row of PROTOCOL §11 that a peer can provoke, over a real socket against a real scheduler. 4500 is a fault of the
 * scheduler, which no peer can cause; 4401 and 4421 go with authentication and with several schedulers.
 */

const SETTINGS = { delivery: { ackTimeoutMs: 2_000 } };

let world: World;
let healthy: Member;
let session: string | undefined;
let epochs: ReadonlyMap<number, number>;

beforeAll(async () => {
  world = await new World({ kinds: [SDK], expect: 1, settings: SETTINGS, tables: { trips: 4 } }).start();
  healthy = await world.join("healthy");
  await world.shares([[healthy, 4]]);
  session = healthy.client.status().session;
  epochs = new Map(healthy.served());
});
afterAll(async () => {
  await world.stop();
});

/** The one that did nothing wrong is answered on, on its one socket, and owns what it owned without a word about it. */
async function expectUndisturbed(): Promise<void> {
  const answers = healthy.cable.of("lease").length;
  await until("an answer to the healthy one", () => healthy.cable.of("lease").length > answers);
  expect(healthy.client.status()).toMatchObject({ state: "assigned", session });
  expect(healthy.cable.connectionCount).toBe(1);
  expect(healthy.cable.of("push")).toHaveLength(1);
  expect(healthy.served()).toEqual(epochs);
  expect([...world.record.complaints(), ...world.wireComplaints()]).toEqual([]);
}

let count = 0;
const connect = (instance?: string, executor = `peer-${++count}`) =>
  Peer.connect(world.server.wsUrl, executor, instance);
const join = (hello?: object, executor = `peer-${++count}`) => Peer.join(world.server.wsUrl, executor, hello);

const grant = (partitions: string) => ({ table: "trips", partitions, epoch: 1 });
const HELLO = { type: "hello", role: "executor", executor: "x", instance: "x-1", attempt: 1 };

interface Breach {
  readonly name: string;
  readonly says: object | string;
  readonly reason: RegExp;
}

const BEFORE_HELLO: readonly Breach[] = [
  { name: "no JSON", says: "{", reason: /not JSON/ },
  { name: "an array", says: "[]", reason: /not a JSON object/ },
  { name: "no type", says: { n: 1 }, reason: /type: is missing/ },
  { name: "a type that is no text", says: { type: 1 }, reason: /type: must be text/ },
  { name: "a renew first", says: { type: "renew", n: 1 }, reason: /renew: a frame before hello/ },
  { name: "an ack first", says: { type: "ack", revision: 1 }, reason: /ack: a frame before hello/ },
  { name: "a report first", says: { type: "report" }, reason: /report: a frame before hello/ },
  { name: "a leave first", says: { type: "leave", mode: "move" }, reason: /leave: a frame before hello/ },
  { name: "no role", says: { ...HELLO, role: undefined }, reason: /hello\.role/ },
  { name: "an unknown role", says: { ...HELLO, role: "boss" }, reason: /hello\.role/ },
  { name: "an id with a space", says: { ...HELLO, executor: "s3cret id" }, reason: /hello\.executor/ },
  { name: "an id of 129", says: { ...HELLO, executor: "x".repeat(129) }, reason: /hello\.executor/ },
  { name: "no instance", says: { ...HELLO, instance: undefined }, reason: /hello\.instance/ },
  { name: "no attempt", says: { ...HELLO, attempt: undefined }, reason: /hello\.attempt/ },
  { name: "half an attempt", says: { ...HELLO, attempt: 0.5 }, reason: /hello\.attempt/ },
  { name: "a resume of nothing", says: { ...HELLO, resume: { incarnation: "i" } }, reason: /hello\.resume\.revision/ },
  { name: "a resume of null", says: { ...HELLO, resume: null }, reason: /hello\.resume/ },
  { name: "a stamp of 513", says: { ...HELLO, stamp: "x".repeat(513) }, reason: /hello\.stamp/ },
  { name: "no weight at all", says: { ...HELLO, weight: 0 }, reason: /hello\.weight/ },
  { name: "a weight past the limit", says: { ...HELLO, weight: 1_000_001 }, reason: /hello\.weight/ },
  { name: "a negative capacity", says: { ...HELLO, capacity: -1 }, reason: /hello\.capacity/ },
  { name: "a label of 257", says: { ...HELLO, labels: { a: "x".repeat(257) } }, reason: /hello\.labels/ },
  { name: "33 labels", says: { ...HELLO, labels: manyLabels(33) }, reason: /hello\.labels/ },
  { name: "a lone surrogate", says: `{"type":"hello","role":"executor","address":"\\ud800"}`, reason: /hello\./ },
];

const AFTER_HELLO: readonly Breach[] = [
  { name: "an unknown type", says: { type: "s3cret" }, reason: /type: unknown/ },
  { name: "a frame of the scheduler", says: { type: "push", revision: 1, base: null }, reason: /type: unknown/ },
  { name: "a second hello", says: HELLO, reason: /hello: a second one/ },
  { name: "no n", says: { type: "renew" }, reason: /renew\.n/ },
  { name: "an n of 0", says: { type: "renew", n: 0 }, reason: /renew\.n/ },
  { name: "an n of text", says: { type: "renew", n: "1" }, reason: /renew\.n/ },
  {
    name: "an ack ahead",
    says: { type: "ack", revision: Number.MAX_SAFE_INTEGER },
    reason: /ack: the revision is ahead/,
  },
  { name: "an ack past 2^53", says: '{"type":"ack","revision":9007199254740992}', reason: /ack\.revision/ },
  { name: "a negative ack", says: { type: "ack", revision: -1 }, reason: /ack\.revision/ },
  { name: "an ack of nothing", says: { type: "ack" }, reason: /ack\.revision/ },
  ...["1,0", "0,1", "3-3", "07", "1-0", " 1", "1,", "-1", "x", "0-1048576"].map((set) => ({
    name: `the set \`${set}\``,
    says: { type: "report", ready: [grant(set)] },
    reason: /report\.ready\.0\.partitions/,
  })),
  { name: "a list of null", says: { type: "report", ready: null }, reason: /report\.ready/ },
  {
    name: "no epoch",
    says: { type: "report", released: [{ table: "t", partitions: "1" }] },
    reason: /released\.0\.epoch/,
  },
  {
    name: "a table that is no id",
    says: { type: "report", ready: [{ ...grant("1"), table: "" }] },
    reason: /ready\.0\.table/,
  },
  { name: "a failure without a reason", says: { type: "report", failed: [grant("1")] }, reason: /failed\.0\.reason/ },
  {
    name: "a reason of 513",
    says: { type: "report", failed: [{ ...grant("1"), reason: "x".repeat(513) }] },
    reason: /failed\.0\.reason/,
  },
  {
    name: "a load below 0",
    says: { type: "report", load: [{ table: "trips", partition: 1, load: -1 }] },
    reason: /report\.load/,
  },
  { name: "a weight of 0", says: { type: "update", weight: 0 }, reason: /update\.weight/ },
  { name: "an unknown mode", says: { type: "leave", mode: "now" }, reason: /leave\.mode/ },
  {
    name: "nesting of 33",
    says: `{"type":"report","x":${"[".repeat(32)}${"]".repeat(32)}}`,
    reason: /nested deeper than 32/,
  },
];

describe.concurrent("PROTOCOL §11: each end that a peer can provoke, with its code, while another goes on", () => {
  // First, since it takes longest.
  test("4408: no ping answered for 25 s, although renews keep coming", async () => {
    const startedAt = performance.now();
    const peer = await join();
    peer.socket.answersPings = false;
    peer.keepRenewing(QUICK.lease.renewMs);
    await until("the push", () => peer.of("push").length > 0);
    peer.send({ type: "ack", revision: peer.of("push")[0]?.["revision"] });
    expect(await peer.closed(45_000)).toEqual({ kind: "closed", code: 4408, reason: "no ping was answered in time" });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(24_900);
    await expectUndisturbed();
  }, 60_000);

  test("4408: no hello within 5 s", async () => {
    const startedAt = performance.now();
    const peer = await connect();
    expect((await peer.closed()).code).toBe(4408);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(4_900);
    await expectUndisturbed();
  });

  test("4408: an attempt that is not higher, while the session it meets goes on", async () => {
    const first = await join({ attempt: 5 });
    for (const attempt of [4, 5]) {
      const late = await connect(first.instance, first.executor);
      late.hello({ attempt });
      expect((await late.closed()).code).toBe(4408);
      expect(late.of("refused")[0]).toMatchObject({ code: 4408 });
    }
    first.send({ type: "renew", n: 1 });
    await until("an answer to the first", () => first.of("lease").length === 1);
    await expectUndisturbed();
    first.leave();
  });

  test("4408: a session that a higher attempt takes over", async () => {
    const first = await join({ attempt: 1 });
    const second = await connect(first.instance, first.executor);
    second.hello({ attempt: 2 });
    expect((await first.closed()).code).toBe(4408);
    await until("the second to be welcomed", () => second.of("welcome").length === 1);
    await expectUndisturbed();
    second.leave();
  });

  test("1000: a peer's own close", async () => {
    const peer = await join();
    peer.socket.sendFrame(OPCODE.close, Buffer.from([0x03, 0xe8]));
    expect((await peer.closed()).code).toBe(1000);
    await expectUndisturbed();
  });

  test("1006: a peer that vanishes, be it in the middle of a frame", async () => {
    const peer = await join();
    peer.socket.sendBytes(Buffer.from([0x81, 0xfe, 0x01]));
    peer.socket.destroy();
    await until("its end to be noticed", () => world.logged("session.closed", { executor: peer.executor }).length > 0);
    await expectUndisturbed();
  });

  test("1002: what is not WebSocket", async () => {
    const peer = await join();
    peer.socket.sendBytes(writeFrame(OPCODE.text, Buffer.from('{"type":"report"}')));
    expect((await peer.closed()).code).toBe(1002);
    await expectUndisturbed();
  });

  test("1003: a binary frame", async () => {
    const peer = await join();
    peer.socket.sendFrame(OPCODE.binary, Buffer.from('{"type":"renew","n":1}'));
    expect((await peer.closed()).code).toBe(1003);
    await expectUndisturbed();
  });

  test("1007: bad UTF-8", async () => {
    const peer = await join();
    peer.socket.sendFrame(OPCODE.text, Buffer.from([0x7b, 0xff, 0x7d]));
    expect((await peer.closed()).code).toBe(1007);
    await expectUndisturbed();
  });

  test("1009: a frame of one byte too many; the largest one is taken", async () => {
    const padded = (bytes: number) => {
      const bare = JSON.stringify({ type: "report", ignored: "" });
      return JSON.stringify({ type: "report", ignored: "x".repeat(bytes - bare.length) });
    };
    const peer = await join();
    peer.send(padded(262_144));
    peer.send({ type: "renew", n: 1 });
    await until("an answer after the largest frame", () => peer.of("lease").length === 1);
    peer.send(padded(262_145));
    expect((await peer.closed()).code).toBe(1009);
    await expectUndisturbed();
  });

  test("1009: fragments that add up to too much", async () => {
    const peer = await join();
    peer.socket.sendFrame(OPCODE.text, Buffer.alloc(200_000, " "), false);
    peer.socket.sendFrame(OPCODE.continuation, Buffer.alloc(100_000, " "));
    expect((await peer.closed()).code).toBe(1009);
    await expectUndisturbed();
  });

  test("1008: a frame in more than 1,024 fragments", async () => {
    const peer = await join();
    const space = Buffer.from(" ");
    peer.socket.sendFrame(OPCODE.text, Buffer.from('{"type":"renew","n":1}'), false);
    for (let fragment = 2; fragment < 1_024; fragment++) peer.socket.sendFrame(OPCODE.continuation, space, false);
    peer.socket.sendFrame(OPCODE.continuation, space);
    await until("an answer to 1,024 fragments", () => peer.of("lease").length === 1);
    peer.socket.sendFrame(OPCODE.text, space, false);
    for (let fragment = 2; fragment <= 1_025; fragment++) peer.socket.sendFrame(OPCODE.continuation, space, false);
    expect((await peer.closed()).code).toBe(1008);
    const [line] = await until("its line in the log", () => {
      const lines = world.logged("session.closed", { executor: peer.executor });
      return lines.length > 0 && lines;
    });
    expect(line?.["code"]).toBe(1008);
    await expectUndisturbed();
  });

  test.each(BEFORE_HELLO)("4400 before the hello: $name", async ({ says, reason }) => {
    const peer = await connect();
    peer.send(says);
    const end = await peer.closed();
    expect(end).toMatchObject({ code: 4400, reason: expect.stringMatching(reason) });
    expect(end.reason).not.toContain("s3cret");
    await expectUndisturbed();
  });

  test.each(AFTER_HELLO)("4400 after the hello: $name", async ({ says, reason }) => {
    const peer = await join();
    peer.send(says);
    const end = await peer.closed();
    expect(end).toMatchObject({ code: 4400, reason: expect.stringMatching(reason) });
    expect(end.reason).not.toContain("s3cret");
    await expectUndisturbed();
  });

  test("4400: an n that does not rise", async () => {
    const peer = await join();
    peer.send({ type: "renew", n: 2 });
    await until("an answer", () => peer.of("lease").length === 1);
    peer.send({ type: "renew", n: 2 });
    expect(await peer.closed()).toMatchObject({ code: 4400, reason: expect.stringMatching(/renew\.n: must rise/) });
    await expectUndisturbed();
  });

  test("4403: an observer, whom this version does not serve", async () => {
    const peer = await connect();
    peer.send({ type: "hello", role: "observer" });
    expect((await peer.closed()).code).toBe(4403);
    expect(peer.of("refused")[0]).toMatchObject({ code: 4403 });
    await expectUndisturbed();
  });

  test("4409: an instance that was replaced, and each hello of it afterwards", async () => {
    const old = await join();
    await until("it to be registered", () => old.of("push").length > 0);
    const fresh = await connect("another", old.executor);
    fresh.hello();
    expect((await old.closed()).code).toBe(4409);
    await until("the newer to be welcomed", () => fresh.of("welcome").length === 1);
    for (const attempt of [2, 3]) {
      const again = await connect(old.instance, old.executor);
      again.hello({ attempt });
      expect((await again.closed()).code).toBe(4409);
      expect(again.of("refused")[0]).toMatchObject({ code: 4409 });
    }
    expect(fresh.end).toBeUndefined();
    await expectUndisturbed();
    fresh.leave();
  });

  test("4410: a lease that ended although pings were answered", async () => {
    const peer = await join();
    await until("it to be registered", () => peer.of("push").length > 0);
    peer.send({ type: "ack", revision: peer.of("push")[0]?.["revision"] });
    expect((await peer.closed()).code).toBe(4410);
    await expectUndisturbed();
  });

  test("4411: a push that is not acknowledged; its owner is accepted again at once", async () => {
    const peer = await join();
    peer.keepRenewing(QUICK.lease.renewMs);
    await until("the push", () => peer.of("push").length > 0);
    const sentAt = performance.now();
    expect((await peer.closed()).code).toBe(4411);
    expect(performance.now() - sentAt).toBeGreaterThan(SETTINGS.delivery.ackTimeoutMs / 2);
    const again = await connect(peer.instance, peer.executor);
    again.hello({ attempt: 2 });
    await until("it to be welcomed again", () => again.of("welcome").length === 1);
    await expectUndisturbed();
    again.leave();
  });

  test("4429: more frames than the limit", async () => {
    const peer = await join();
    for (let sent = 0; sent < 1_500; sent++) peer.send({ type: "report" });
    expect((await peer.closed()).code).toBe(4429);
    expect(peer.of("refused")[0]).toMatchObject({ code: 4429, retryAfterMs: expect.any(Number) });
    await expectUndisturbed();
  });

  test("4429: more pings than the limit, each of which is answered", async () => {
    const peer = await join();
    for (let sent = 0; sent < 1_500; sent++) {
      peer.socket.sendFrame(OPCODE.ping, Buffer.alloc(0));
      if (sent % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect((await peer.closed()).code).toBe(4429);
    await expectUndisturbed();
  });

  test("1006: pings faster than their answers can be written", async () => {
    const peer = await join();
    for (let sent = 0; sent < 1_500; sent++) peer.socket.sendFrame(OPCODE.ping, Buffer.alloc(0));
    expect([1006, 4429]).toContain((await peer.closed()).code);
    await expectUndisturbed();
  });

  test("1001 and 4503: a shutdown sends sessions away and refuses whoever says hello meanwhile", async () => {
    const other = await new World({ kinds: [SDK], expect: 1, tables: { trips: 4 } }).start();
    try {
      const well = await other.join("well");
      await other.shares([[well, 4]]);
      const url = other.server.wsUrl;
      const peers = await Promise.all(["a", "b", "c"].map((name) => Peer.join(url, name)));
      const late = await Peer.connect(url, "late");
      // Goodbyes are spread over a renew period, so that there is time for a hello between the first and the last.
      const stopped = other.server.stop();
      late.hello();
      expect((await late.closed()).code).toBe(4503);
      expect(late.of("refused")[0]).toMatchObject({ code: 4503 });
      for (const peer of peers) {
        expect((await peer.closed()).code).toBe(1001);
        expect(peer.frames.map(({ type }) => type)).toContain("goaway");
      }
      await stopped;
      expect(well.served().size).toBe(4);
    } finally {
      await other.stop();
    }
  });
});

function manyLabels(pairs: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: pairs }, (_, index) => [`label-${index}`, "x"]));
}
