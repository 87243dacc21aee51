import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SessionEffect } from "../../src/driver/ports.ts";
import { CLOSE_DEADLINE_MS, MAX_LOGGED_ENTRIES } from "../../src/gateway/limits.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { MAX_FRAME_BYTES } from "../../src/protocol/limits.ts";
import { GatewayRig, HELLO, type Joined, push, until } from "./harness.ts";

let rig: GatewayRig;
let a: Joined;
beforeEach(async () => {
  rig = await new GatewayRig().start();
  a = await rig.join("A");
});
afterEach(() => rig.stop());

const welcome = (revision: number): SessionEffect => ({
  type: "session.welcome",
  session: a.session,
  cluster: "demo",
  incarnation: "inc",
  term: 1,
  revision,
  resumed: false,
  status: "pending",
  waitingFor: "formation: 2.0 s left",
  lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000 },
});
const lease = (n: number, revision: number): SessionEffect => ({
  type: "session.lease",
  session: a.session,
  n,
  revision,
  durationMs: 15_000,
  renewMs: 4_000,
});

describe("frames become events", () => {
  test("hello, with all that it may say and nothing else", async () => {
    const peer = await rig.connect();
    const traits = { address: "b:1", zone: "z", slot: "s", labels: { pool: "fast" }, weight: 2, capacity: 9 };
    const resume = { incarnation: "inc", revision: 6 };
    peer.send({ ...HELLO, executor: "B", ...traits, resume, stamp: "x", future: 1 });
    const hello = await until("the hello", () => rig.host.of("hello.received").find((event) => event.executor === "B"));
    const { session, ...said } = hello;
    expect(session).not.toBe(a.session);
    const expected = { type: "hello.received", executor: "B", instance: "A-1", attempt: 1, resume, ...traits };
    expect(JSON.parse(JSON.stringify(said))).toEqual(expected);
  });

  test("the others, in their order", async () => {
    const { peer, session } = a;
    const grant = { table: "t", partitions: "0-3,7", epoch: 5 };
    peer.send({ type: "renew", n: 3 });
    peer.send({ type: "ack", revision: 7 });
    peer.send({ type: "report", ready: [grant], failed: [{ ...grant, reason: "disk", retryable: false }] });
    peer.send({ type: "report", released: [grant], load: [{ table: "t", partition: 0, load: 1 }] });
    peer.send({ type: "update", capacity: 4, zone: "not to be changed" });
    peer.send({ type: "leave", mode: "restart" });
    await until("the last", () => rig.host.of("leave.received").length > 0);
    const events = rig.host.events.filter((event) => event.type !== "hello.received");
    expect(JSON.parse(JSON.stringify(events))).toEqual([
      { type: "renew.received", session, n: 3 },
      { type: "ack.received", session, revision: 7 },
      {
        type: "report.received",
        session,
        ready: [grant],
        released: [],
        failed: [{ ...grant, reason: "disk", retryable: false }],
      },
      { type: "report.received", session, ready: [], released: [grant], failed: [] },
      { type: "update.received", session, capacity: 4 },
      { type: "leave.received", session, mode: "restart" },
    ]);
  });
});

describe("effects become frames", () => {
  test("welcome, goaway, left", async () => {
    rig.deliver(welcome(41));
    rig.deliver({ type: "session.goaway", session: a.session, afterMs: 1_200, reason: "restart" });
    rig.deliver({ type: "session.left", session: a.session });
    await until("three frames", () => a.peer.frames.length === 3);
    expect(a.peer.frames).toEqual([
      {
        type: "welcome",
        cluster: "demo",
        incarnation: "inc",
        term: 1,
        session: a.session,
        resumed: false,
        status: "pending",
        waitingFor: "formation: 2.0 s left",
        lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000 },
        stamp: "stamp-41",
      },
      { type: "goaway", afterMs: 1_200, reason: "restart" },
      { type: "left" },
    ]);
  });

  test("a stamp in each welcome, and in a lease when the revision has moved since", async () => {
    for (const effect of [welcome(41), lease(1, 41), lease(2, 43), lease(3, 43), lease(4, 44)]) rig.deliver(effect);
    await until("five frames", () => a.peer.frames.length === 5);
    const stamps = a.peer.frames.map((frame) => frame["stamp"]);
    expect(stamps).toEqual(["stamp-41", undefined, "stamp-43", undefined, "stamp-44"]);
  });

  test("a push, and the log says who was told what, and why", async () => {
    const table = tableName("trips");
    const grant = [{ table, partitions: PartitionSet.parse("0-15,20"), epoch: 7 }];
    const revoke = [{ table, partitions: PartitionSet.parse("16"), epoch: 3, stopMs: 30_000 }];
    const tables = [{ table, count: 21, created: 1, handoff: "exclusive" } as const];
    rig.deliver({ ...push(a.session), base: 6, grant, revoke, tables });
    const frame = await until("the push", () => a.peer.frames[0]);
    expect(frame).toEqual({
      type: "push",
      revision: 7,
      base: 6,
      cause: [{ kind: "formation" }],
      grant: [{ table: "trips", partitions: "0-15,20", epoch: 7 }],
      revoke: [{ table: "trips", partitions: "16", epoch: 3, stopMs: 30_000 }],
      tables,
    });
    const [line] = rig.logged("push.sent");
    expect(line?.level).toBe("info");
    expect(JSON.parse(JSON.stringify(line?.fields))).toEqual({
      executor: "A",
      session: a.session,
      revision: 7,
      base: 6,
      grant: [{ table: "trips", partitions: "0-15,20", epoch: 7, count: 17 }],
      revoke: [{ table: "trips", partitions: "16", epoch: 3, count: 1 }],
      prepare: [],
      bytes: JSON.stringify(frame).length,
      pages: 1,
      cause: [{ kind: "formation" }],
    });
  });

  test("a push that is too large comes in pages, each small enough, and nothing is lost", async () => {
    const partitions = PartitionSet.of(Array.from({ length: 200_000 }, (_, index) => 2 * index));
    rig.deliver({ ...push(a.session), grant: [{ table: tableName("trips"), partitions, epoch: 7 }] });
    await until("the last page", () => a.peer.frames.at(-1) !== undefined && a.peer.frames.at(-1)?.["more"] !== true);
    const sizes = a.peer.frames.map((frame) => JSON.stringify(frame).length);
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_FRAME_BYTES);
    const sets = a.peer.frames.flatMap((frame) => frame["grant"] as { partitions: string }[]);
    const together = sets.reduce((sum, set) => sum.union(PartitionSet.parse(set.partitions)), PartitionSet.empty);
    expect(together.equals(partitions)).toBe(true);
    const [line] = rig.logged("push.sent");
    expect(line?.fields).toMatchObject({ pages: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) });
  });

  test("of very many entries the log shows the first, and counts the rest", async () => {
    const grant = Array.from({ length: MAX_LOGGED_ENTRIES + 10 }, (_, index) => ({
      table: tableName(`t${String(index).padStart(3, "0")}`),
      partitions: PartitionSet.upTo(3),
      epoch: 7,
    }));
    rig.deliver({ ...push(a.session), grant });
    const logged = rig.logged("push.sent")[0]?.fields["grant"] as object[];
    expect(logged).toHaveLength(MAX_LOGGED_ENTRIES + 1);
    expect(logged.at(-1)).toEqual({ more: 10, count: 30 });
  });

  test("one for a session that is gone, or never was, is dropped", async () => {
    a.peer.socket.terminate();
    await until("the end", () => rig.gateway.sessionCount === 0);
    rig.deliver(lease(1, 1));
    rig.deliver({ type: "session.close", session: a.session, code: 4411, reason: "late" });
    rig.deliver({ ...push(a.session), session: "never" as never });
    expect(rig.logged("push.sent")).toEqual([]);
    expect(rig.closedEvents(a.session)).toEqual([1006]);
  });
});

describe("ends", () => {
  test("a close says code and reason; with `refused` that frame is the last", async () => {
    const leader = "ws://127.0.0.1:7421";
    rig.deliver({
      type: "session.close",
      session: a.session,
      code: 4421,
      reason: "another scheduler leads",
      refused: { leader, retryAfterMs: 50 },
    });
    expect(await a.peer.end()).toEqual({ code: 4421, reason: "another scheduler leads" });
    expect(a.peer.frames).toEqual([
      { type: "refused", code: 4421, reason: "another scheduler leads", leader, retryAfterMs: 50 },
    ]);
    expect(rig.closedEvents(a.session)).toEqual([4421]);
  });

  test("after a close nothing is sent and nothing is heard", async () => {
    rig.deliver({ type: "session.close", session: a.session, code: 4410, reason: "lease ended" });
    rig.deliver(lease(1, 1));
    rig.deliver(push(a.session));
    a.peer.send({ type: "renew", n: 1 });
    await a.peer.end();
    expect(a.peer.frames).toEqual([]);
    expect(rig.host.of("renew.received")).toEqual([]);
    expect(rig.closedEvents(a.session)).toEqual([4410]);
  });

  test("a reason that is too long for a close frame is cut, not fatal", async () => {
    rig.deliver({ type: "session.close", session: a.session, code: 4400, reason: "é".repeat(200) });
    const { code, reason } = await a.peer.end();
    expect([code, reason]).toEqual([4400, "é".repeat(61)]);
  });

  test("by the peer: its code is told, once", async () => {
    a.peer.socket.close(1000, "done");
    await until("the end to be told", () => rig.closedEvents(a.session).length > 0);
    await until("the socket to be gone", () => rig.gateway.sessionCount === 0);
    expect(rig.closedEvents(a.session)).toEqual([1000]);
  });

  test("H8: late ends of an old socket do not touch the session that took its place", async () => {
    const next = await rig.join("A2");
    rig.deliver({ type: "session.close", session: a.session, code: 4408, reason: "taken over" });
    a.peer.socket.terminate();
    await until("the old socket to be gone", () => rig.gateway.sessionCount === 1);
    rig.clock.advance(CLOSE_DEADLINE_MS);
    await rig.proveAlive(next, 1);
    expect(rig.closedEvents(next.session)).toEqual([]);
  });

  test("a peer that does not answer the close is cut off after the deadline", async () => {
    const { socket, session } = await rig.joinMute("mute");
    rig.deliver({ type: "session.close", session, code: 4410, reason: "lease ended" });
    rig.clock.advance(CLOSE_DEADLINE_MS - 1);
    await rig.proveAlive(a, 1);
    expect(rig.gateway.sessionCount).toBe(2);
    rig.clock.advance(1);
    // Sooner than ws would do it by itself.
    await until("the socket to be gone", () => rig.gateway.sessionCount === 1, CLOSE_DEADLINE_MS / 2);
    expect(rig.closedEvents(session)).toEqual([4410]);
    socket.destroy();
  });

  test("a session that is gone leaves no timer behind", async () => {
    const greeting = await rig.connect();
    const closed = await rig.join("B");
    rig.deliver({ type: "session.close", session: closed.session, code: 4410, reason: "lease ended" });
    greeting.socket.terminate();
    a.peer.socket.terminate();
    await until("all to be gone", () => rig.gateway.sessionCount === 0);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  test("closing the gateway ends all sessions with 1001, and takes no more", async () => {
    const waiting = await rig.connect();
    const closed = rig.gateway.close();
    expect((await a.peer.end()).code).toBe(1001);
    expect((await waiting.end()).code).toBe(1001);
    await closed;
    expect(rig.gateway.sessionCount).toBe(0);
    await expect(rig.connect()).rejects.toThrow("503");
  });

  test("a fault in carrying one effect out ends that session, 4500, and no other", async () => {
    const b = await rig.join("B");
    rig.deliver({ ...push(a.session), grant: undefined as never });
    expect(await a.peer.end()).toMatchObject({ code: 4500 });
    expect(rig.logged("session.failed")).toHaveLength(1);
    await rig.proveAlive(b, 1);
  });
});
