import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HELLO_TIMEOUT_MS, MAX_FRAME_BYTES, PING_INTERVAL_MS, SILENCE_TIMEOUT_MS } from "../../src/protocol/limits.ts";
import { dialSession, GatewayRig, HELLO, type Joined, type Peer, until } from "./harness.ts";

let rig: GatewayRig;
let bystander: Joined;
beforeEach(async () => {
  rig = await new GatewayRig().start();
  bystander = await rig.join("bystander");
});
afterEach(() => rig.stop());

/** What a peer may do wrong once it is connected, and what closes it. */
interface Breach {
  readonly name: string;
  readonly commit: (peer: Peer) => void;
  readonly code: number;
  readonly reason?: RegExp;
}

const BEFORE_HELLO: readonly Breach[] = [
  {
    name: "a frame before hello",
    commit: (peer) => peer.send({ type: "renew", n: 1 }),
    code: 4400,
    reason: /before hello/,
  },
  {
    name: "an ack before hello",
    commit: (peer) => peer.send({ type: "ack", revision: 0 }),
    code: 4400,
    reason: /before/,
  },
  { name: "no JSON", commit: (peer) => peer.send("{type:"), code: 4400 },
  { name: "JSON that is no object", commit: (peer) => peer.send("[]"), code: 4400 },
  { name: "an unknown type", commit: (peer) => peer.send({ type: "welcome" }), code: 4400 },
  { name: "a hello without an executor", commit: (peer) => peer.send({ ...HELLO, executor: undefined }), code: 4400 },
  { name: "a hello with a bad id", commit: (peer) => peer.send({ ...HELLO, executor: "no spaces" }), code: 4400 },
  { name: "a hello with an unknown role", commit: (peer) => peer.send({ ...HELLO, role: "boss" }), code: 4400 },
  { name: "a binary frame", commit: (peer) => peer.socket.send(Buffer.from(JSON.stringify(HELLO))), code: 1003 },
  {
    name: "a hello as observer",
    commit: (peer) => peer.send({ type: "hello", role: "observer" }),
    code: 4403,
    reason: /observers are not supported yet/,
  },
];

const AFTER_HELLO: readonly Breach[] = [
  { name: "a second hello", commit: (peer) => peer.send({ ...HELLO, attempt: 2 }), code: 4400, reason: /second/ },
  { name: "a hello as observer", commit: (peer) => peer.send({ type: "hello", role: "observer" }), code: 4400 },
  {
    name: "an n that does not rise",
    commit: (peer) => {
      for (const n of [1, 5, 5]) peer.send({ type: "renew", n });
    },
    code: 4400,
    reason: /rise/,
  },
  { name: "an n of 0", commit: (peer) => peer.send({ type: "renew", n: 0 }), code: 4400 },
  { name: "an unknown type", commit: (peer) => peer.send({ type: "pull" }), code: 4400 },
  { name: "an observer's frame", commit: (peer) => peer.send({ type: "progress", revision: 1 }), code: 4400 },
  {
    name: "a set that is not canonical",
    commit: (peer) => peer.send({ type: "report", ready: [{ table: "t", partitions: "3,1", epoch: 1 }] }),
    code: 4400,
  },
  { name: "nesting without end", commit: (peer) => peer.send(`{"type":"ack","x":${"[".repeat(9_000)}`), code: 4400 },
  { name: "a binary frame", commit: (peer) => peer.socket.send(Buffer.from('{"type":"renew","n":1}')), code: 1003 },
  {
    name: "bad UTF-8",
    commit: (peer) => peer.socket.send(Buffer.from([0x7b, 0xff, 0x7d]), { binary: false }),
    code: 1007,
  },
  { name: "a frame one byte too large", commit: (peer) => peer.send("x".repeat(MAX_FRAME_BYTES + 1)), code: 1009 },
];

describe("PROTOCOL §5: a breach before the hello ends that session with its code, and the core hears nothing", () => {
  test.each(BEFORE_HELLO)("$name: $code", async ({ commit, code, reason = /./ }) => {
    const peer = await rig.connect();
    commit(peer);
    const end = await peer.end();
    expect(end.code).toBe(code);
    expect(end.reason).toMatch(reason);
    await rig.proveAlive(bystander, 1);
    expect(rig.host.events.filter((event) => "session" in event && event.session !== bystander.session)).toEqual([]);
    expect(bystander.peer.closed).toBeUndefined();
  });
});

describe("PROTOCOL §5: a breach after the hello ends that session with its code, once, and no other", () => {
  test.each(AFTER_HELLO)("$name: $code", async ({ commit, code, reason = /.*/ }) => {
    const { peer, session } = await rig.join("A");
    commit(peer);
    const end = await peer.end();
    expect(end.code).toBe(code);
    expect(end.reason).toMatch(reason);
    await until("the end to be told", () => rig.closedEvents(session).length > 0);
    await until("the socket to be gone", () => rig.gateway.sessionCount === 1);
    expect(rig.closedEvents(session)).toEqual([code]);
    await rig.proveAlive(bystander, 1);
    expect(bystander.peer.closed).toBeUndefined();
  });

  test("the largest frame there may be is taken", async () => {
    const peer = await rig.connect();
    const bare = JSON.stringify({ ...HELLO, ignored: "" });
    peer.send(JSON.stringify({ ...HELLO, ignored: "x".repeat(MAX_FRAME_BYTES - bare.length) }));
    await until("the hello", () => rig.host.of("hello.received").find((event) => event.executor === "A"));
    expect(peer.closed).toBeUndefined();
  });

  test("what follows the breach in the same packet is not heard", async () => {
    const { peer, session } = await rig.join("A");
    peer.send({ type: "nonsense" });
    for (let n = 1; n <= 20; n++) peer.send({ type: "renew", n });
    await peer.end();
    expect(rig.host.of("renew.received").filter((event) => event.session === session)).toEqual([]);
  });

  test("the refused frame of an observer says why", async () => {
    const peer = await rig.connect();
    peer.send({ type: "hello", role: "observer" });
    await peer.end();
    expect(peer.frames).toEqual([{ type: "refused", code: 4403, reason: "observers are not supported yet" }]);
  });

  test("what is not WebSocket ends the connection and leaves the process and the others alone", async () => {
    const socket = await dialSession(rig.port);
    // A text frame without the mask that clients owe.
    socket.write(Buffer.from([0x81, 0x02, 0x7b, 0x7d]));
    await until("the end", () => socket.readableEnded || socket.closed);
    await until("the socket to be gone", () => rig.gateway.sessionCount === 1);
    await rig.proveAlive(bystander, 1);
    socket.destroy();
  });

  test("no close reason repeats what the peer sent", async () => {
    for (const frame of [
      { type: "s3cret" },
      { ...HELLO, executor: "s3cret!" },
      { ...HELLO, labels: { "s3cret ": "" } },
    ]) {
      const peer = await rig.connect();
      peer.send(frame);
      expect((await peer.end()).reason).not.toContain("s3cret");
    }
    expect(JSON.stringify(rig.lines)).not.toContain("s3cret");
  });
});

describe("PROTOCOL §5: silence, 4408", () => {
  test("no hello within 5 s; one just before is in time", async () => {
    const [late, early] = [await rig.connect(), await rig.connect()];
    rig.clock.advance(HELLO_TIMEOUT_MS - 1);
    early.send(HELLO);
    await until("the hello", () => rig.host.of("hello.received").find((event) => event.executor === "A"));
    rig.clock.advance(1);
    expect(await late.end()).toEqual({ code: 4408, reason: "no hello in time" });
    rig.clock.advance(HELLO_TIMEOUT_MS);
    expect(early.closed).toBeUndefined();
  });

  test("no ping answered for 25 s; who answers stays", async () => {
    const { socket, session } = await rig.joinMute("mute");
    let pings = 0;
    bystander.peer.socket.on("ping", () => pings++);
    for (let second = 1; second <= SILENCE_TIMEOUT_MS / 1_000; second++) {
      expect(rig.closedEvents(session)).toEqual([]);
      const before = pings;
      rig.clock.advance(1_000);
      // Pings fall into the middle of each interval here; the answer has to come through the real socket.
      if (second % 10 === 5) {
        await until("a ping", () => pings > before);
        await rig.proveAlive(bystander, second);
      }
    }
    expect(rig.closedEvents(session)).toEqual([4408]);
    expect(pings).toBe(3);
    rig.clock.advance(PING_INTERVAL_MS);
    expect(rig.closedEvents(bystander.session)).toEqual([]);
    socket.destroy();
  });

  test("time in which our own loop stood still proves nothing", async () => {
    let pings = 0;
    bystander.peer.socket.on("ping", () => pings++);
    for (let n = 1; n <= 4; n++) {
      rig.clock.advance(PING_INTERVAL_MS);
      await until("a ping", () => pings === n);
      await rig.proveAlive(bystander, n);
    }
    rig.clock.stall(60_000);
    rig.clock.advance(0);
    await rig.proveAlive(bystander, 5);
    expect(rig.closedEvents(bystander.session)).toEqual([]);
  });
});
