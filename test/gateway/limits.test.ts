import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import { GATEWAY_LIMITS, type GatewayLimits, MAX_PENDING_HELLOS, MAX_SESSIONS } from "../../src/gateway/limits.ts";
import { MAX_CONNECTIONS } from "../../src/http/limits.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { MAX_MESSAGE_BURST, MAX_MESSAGES_PER_SECOND } from "../../src/protocol/limits.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { ask, GatewayRig, HELLO, push, UPGRADE, until } from "./harness.ts";

let rig: GatewayRig;
const start = async (limits: Partial<GatewayLimits> = {}) => {
  rig = await new GatewayRig({ limits }).start();
};
afterEach(() => rig.stop());

describe("messages", () => {
  test("a burst may be spent at once; one more is 4429, with a time to wait", async () => {
    await start();
    const bystander = await rig.join("bystander");
    const { peer, session } = await rig.join("A");
    for (let n = 1; n < MAX_MESSAGE_BURST; n++) peer.send({ type: "renew", n });
    const heard = () => rig.host.of("renew.received").filter((event) => event.session === session).length;
    await until("the burst, with the hello in it", () => heard() === MAX_MESSAGE_BURST - 1);
    expect(peer.closed).toBeUndefined();
    peer.send({ type: "renew", n: MAX_MESSAGE_BURST });
    expect(await peer.end()).toMatchObject({ code: 4429 });
    expect(heard()).toBe(MAX_MESSAGE_BURST - 1);
    expect(peer.frames).toEqual([
      { type: "refused", code: 4429, reason: "too many messages", retryAfterMs: expect.any(Number) },
    ]);
    expect(rig.closedEvents(session)).toEqual([4429]);
    await rig.proveAlive(bystander, 1);
  });

  test("200 a second go on for ever", async () => {
    await start();
    const { peer } = await rig.join("A");
    let n = 0;
    for (let tenth = 0; tenth < 100; tenth++) {
      for (let i = 0; i < MAX_MESSAGES_PER_SECOND / 10; i++) peer.send({ type: "renew", n: ++n });
      await until("these", () => rig.host.of("renew.received").length === n);
      rig.clock.advance(100);
    }
    expect(peer.closed).toBeUndefined();
  });

  test("pings count as well", async () => {
    await start();
    const { peer, session } = await rig.join("A");
    let pongs = 0;
    peer.socket.on("pong", () => pongs++);
    // The hello was the first message. Few at a time: ws itself ends a peer that does not take its answers.
    for (let sent = 1; sent < MAX_MESSAGE_BURST; sent++) {
      peer.socket.ping();
      if (sent % 20 === 0 || sent === MAX_MESSAGE_BURST - 1) await until("the answers", () => pongs === sent);
    }
    peer.socket.ping();
    expect((await peer.end()).code).toBe(4429);
    expect(rig.closedEvents(session)).toEqual([4429]);
  });

  test("pongs that nobody asked for count as well", async () => {
    await start();
    const { peer, session } = await rig.join("A");
    for (let sent = 1; sent < MAX_MESSAGE_BURST; sent++) peer.socket.pong();
    // A round trip: all of them have been taken.
    const answered = once(peer.socket, "pong");
    rig.clock.advance(1_000 / MAX_MESSAGES_PER_SECOND);
    peer.socket.ping();
    await answered;
    expect(peer.closed).toBeUndefined();
    peer.socket.pong();
    expect((await peer.end()).code).toBe(4429);
    expect(rig.closedEvents(session)).toEqual([4429]);
  });
});

describe("sessions", () => {
  test("as many as allowed; one more is refused with 503 until one is gone", async () => {
    await start({ maxSessions: 2 });
    const first = await rig.join("A");
    await rig.join("B");
    const answer = await ask(rig.port, { headers: UPGRADE });
    expect(answer.status).toBe(503);
    expect(answer.body["detail"]).toContain("2 sessions");
    expect(answer.headers["retry-after"]).toBeDefined();
    first.peer.socket.terminate();
    await until("room", () => rig.gateway.sessionCount === 1);
    await rig.join("C");
  });

  test("pending hellos: a hello makes room, and so does the end of one who never says it", async () => {
    await start({ maxPendingHellos: 2 });
    const [one, two] = [await rig.connect(), await rig.connect()];
    expect((await ask(rig.port, { headers: UPGRADE })).status).toBe(503);
    one.send(HELLO);
    await until("the hello", () => rig.host.of("hello.received").length === 1);
    await rig.connect();
    expect((await ask(rig.port, { headers: UPGRADE })).status).toBe(503);
    two.socket.terminate();
    await until("room", () => rig.gateway.sessionCount === 2);
    await rig.connect();
  });

  test("the defaults fit each other: who is one too many still gets an answer", async () => {
    await start();
    expect(GATEWAY_LIMITS.maxSessions).toBe(MAX_SESSIONS);
    expect(MAX_PENDING_HELLOS).toBeLessThan(MAX_SESSIONS);
    expect(MAX_SESSIONS).toBeLessThan(MAX_CONNECTIONS);
    // Sockets that one process can hold here.
    expect(MAX_CONNECTIONS).toBeLessThan(19_900);
  });
});

describe("a peer that does not read", () => {
  const megabytes = PartitionSet.of(Array.from({ length: 200_000 }, (_, index) => 2 * index));

  test("is cut off when more waits for it than the limit and its last push; others are not touched", async () => {
    await start({ maxBufferedBytes: 65_536 });
    const bystander = await rig.join("bystander");
    const { socket, session } = await rig.joinMute("mute");
    socket.pause();
    const grant = [{ table: tableName("trips"), partitions: megabytes, epoch: 7 }];
    for (let pushes = 0; rig.closedEvents(session).length === 0; pushes++) {
      expect(pushes).toBeLessThan(100);
      rig.deliver({ ...push(session), grant });
      await settle();
    }
    expect(rig.closedEvents(session)).toEqual([1006]);
    await until("the socket to be gone", () => rig.gateway.sessionCount === 1);
    await rig.proveAlive(bystander, 1);
    socket.destroy();
  });

  test("one push may be larger than the limit: who takes it slowly stays", async () => {
    await start({ maxBufferedBytes: 65_536 });
    const { peer, session } = await rig.join("A");
    peer.socket.pause();
    // More than the kernel takes for a peer that does not read.
    const tables = Array.from({ length: 20 }, (_, index) => tableName(`t${10 + index}`));
    rig.deliver({ ...push(session), grant: tables.map((table) => ({ table, partitions: megabytes, epoch: 7 })) });
    rig.deliver({ type: "session.lease", session, n: 1, revision: 7, durationMs: 15_000, renewMs: 4_000 });
    expect(rig.closedEvents(session)).toEqual([]);
    peer.socket.resume();
    await until("what came after it", () => peer.frames.find((frame) => frame["type"] === "lease"));
    expect(peer.closed).toBeUndefined();
  });
});
