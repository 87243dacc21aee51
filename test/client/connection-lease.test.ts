import { describe, expect, it } from "vitest";
import { Fixture } from "./connection-fixture.ts";

// Lease 10 s, renew 1 s, margin 1 s: it lapses 9 s after what it rests on was sent.

describe("renewing", () => {
  it("goes on every renewMs, numbered from 1, and keeps what is held for as long as it is answered", () => {
    const fixture = Fixture.serving();
    fixture.advanceAnswering(60_000);
    const renews = fixture.session.received.filter((frame) => frame.type === "renew");
    expect(renews.length).toBe(60);
    expect(renews.at(-1)).toEqual({ type: "renew", n: 60 });
    expect(fixture.owns(0)).toBe(5);
    expect(fixture.dialled).toBe(1);
  });

  it("follows the times of the last answer", () => {
    const fixture = Fixture.serving();
    fixture.clock.advance(1_000);
    fixture.session.send({ type: "lease", n: 1, durationMs: 60_000, renewMs: 15_000 });
    fixture.session.take();
    fixture.clock.advance(14_900);
    expect(fixture.session.take()).toEqual([]);
    fixture.clock.advance(100);
    expect(fixture.session.take()).toEqual([{ type: "renew", n: 2 }]);
    expect(fixture.owns(0)).toBe(5);
  });

  it("P19: unanswered for one renew period, the socket is left before the lease ends, though it still carries frames", () => {
    const fixture = Fixture.serving();
    const { session } = fixture;
    fixture.clock.advance(1_000);
    session.send({ type: "goaway", afterMs: 60_000, reason: "noise" });
    fixture.clock.advance(979);
    expect(session.closed).toBeUndefined();
    fixture.clock.advance(1);
    expect(session.closed).toBeDefined();
    expect(fixture.owns(0)).toBe(5);
    expect(fixture.dialled).toBe(2);
  });

  it("P19: a hello unanswered is given up after one renew period, 4 s while none is known", () => {
    const fixture = new Fixture({ urls: ["ws://one/v1/session", "ws://two/v1/session"] });
    const first = fixture.session;
    first.open();
    fixture.clock.advance(3_999);
    expect(first.closed).toBeUndefined();
    fixture.clock.advance(1);
    expect(first.closed).toBeDefined();
    expect(fixture.session.url).toBe("ws://two/v1/session");
    fixture.session.begin();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    const third = fixture.session;
    third.open();
    fixture.clock.advance(999);
    expect(third.closed).toBeUndefined();
    fixture.clock.advance(1);
    expect(third.closed).toBeDefined();
  });

  it("a socket that does not open is given up as well", () => {
    const fixture = new Fixture();
    fixture.clock.advance(4_000);
    expect(fixture.scheduler.sessions[0]?.closed).toBeDefined();
    expect(fixture.dialled).toBe(2);
  });

  it("counts the lease from when hello and renew were sent, however late the answers came", () => {
    const fixture = new Fixture();
    fixture.session.open();
    fixture.clock.advance(2_000);
    fixture.session.welcome();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0"]] });
    fixture.clock.stall(6_999);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.stall(1);
    expect(fixture.owns(0)).toBeUndefined();
    const renewing = Fixture.serving();
    renewing.clock.advance(980);
    renewing.clock.advance(900);
    renewing.session.lease(1);
    // Renewed at 1,000 ms, answered at 1,900 ms: it lapses at 10,000 ms.
    renewing.clock.stall(8_099);
    expect(renewing.owns(0)).toBe(5);
    renewing.clock.stall(1);
    expect(renewing.owns(0)).toBeUndefined();
  });

  it("a repeated answer extends nothing", () => {
    const fixture = Fixture.serving();
    fixture.clock.advance(1_000);
    fixture.session.lease(1);
    fixture.session.send({ type: "lease", n: 1, durationMs: 600_000, renewMs: 1_000 });
    fixture.clock.stall(9_000);
    expect(fixture.owns(0)).toBeUndefined();
  });
});

describe("a lapse", () => {
  it("stops everything by timer when nothing answers, and says hello afresh", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(8_979);
    expect(fixture.owner.take()).toEqual([]);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.advance(1);
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
    fixture.session.open();
    expect(fixture.session.hello).not.toHaveProperty("resume");
  });

  it.each([10_000, 15_000])(
    "H9: a loop blocked for %i ms drops everything before any queued frame is handled",
    (ms) => {
      const fixture = Fixture.serving();
      const { session } = fixture;
      fixture.clock.stall(ms);
      // What the socket had queued is read before any timer runs.
      session.push({ revision: 6, base: 5, grant: [["trips", "2"]] });
      session.lease(1);
      session.refuse(4409, "late");
      expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
      expect(session.closed).toBeDefined();
      fixture.unloaded("trips/0@5", "trips/1@5");
      fixture.clock.advance(0);
      fixture.session.open();
      expect(fixture.session.hello).not.toHaveProperty("resume");
      fixture.session.welcome();
      fixture.session.push({ revision: 7, base: null, grant: [["trips", "0-1", 5]] });
      expect(fixture.owner.take()).toEqual(["start trips/0@5", "start trips/1@5"]);
      expect(fixture.owns(0)).toBe(5);
    },
  );

  it("H9: a question finds it before any timer or frame", () => {
    const fixture = Fixture.serving();
    fixture.clock.stall(8_979);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.stall(1);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
  });

  it("P18: a machine that slept an hour serves nothing when it wakes", () => {
    const fixture = Fixture.serving();
    fixture.clock.jumpWall(3_600_000);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
  });

  it("P25: three sleeps of 0.9 s between two answered renews add up, however lively the executor is between them", () => {
    const fixture = Fixture.serving();
    fixture.advanceAnswering(1_000);
    fixture.clock.jumpWall(900);
    fixture.clock.advance(200);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.jumpWall(900);
    fixture.clock.advance(200);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
    fixture.clock.jumpWall(900);
    fixture.clock.advance(200);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owns(1)).toBeUndefined();
  });

  it("P25: three sleeps of 0.9 s are found at the first look after them", () => {
    const fixture = Fixture.serving();
    fixture.advanceAnswering(1_000);
    for (let sleeps = 0; sleeps < 3; sleeps++) {
      fixture.clock.stall(200);
      fixture.clock.jumpWall(900);
    }
    // The answer to the renew that is out would come in time by the monotonic clock alone.
    expect(fixture.clock.now() + 200).toBeLessThan(9_000);
    expect(fixture.owns(0)).toBeUndefined();
  });

  it("P25: a sleep while a revoked partition stops counts against its limit, though the lease is renewed before and after", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 2_000]] });
    fixture.owner.take();
    fixture.advanceAnswering(1_000);
    fixture.clock.jumpWall(900);
    expect(fixture.owns(0)).toBe(5);
    fixture.advanceAnswering(99);
    expect(fixture.owns(0)).toBe(5);
    fixture.advanceAnswering(1);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owns(1)).toBe(5);
    fixture.unloaded("trips/0@5");
    fixture.advanceAnswering(20);
    expect(fixture.session.received.at(-1)).toMatchObject({ type: "report", released: [{ table: "trips", epoch: 5 }] });
  });

  it("P25: each answered renew starts a new sum for the lease, but not for a stop limit", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 60_000]] });
    fixture.clock.jumpWall(900);
    fixture.advanceAnswering(1_100);
    fixture.clock.jumpWall(900);
    expect(fixture.owns(1)).toBe(5);
    expect(fixture.owns(0)).toBeUndefined();
  });

  it("S3: wall time set one hour ahead fences once, then goes on", () => {
    const fixture = Fixture.serving();
    fixture.clock.jumpWall(3_600_000);
    fixture.advanceAnswering(1_000);
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 lapsed", "stop trips/1@5 lapsed"]);
    fixture.unloaded("trips/0@5", "trips/1@5");
    fixture.session.begin();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-1", 5]] });
    fixture.advanceAnswering(60_000);
    expect(fixture.owner.take()).toEqual(["start trips/0@5", "start trips/1@5"]);
    expect(fixture.owns(0)).toBe(5);
    expect(fixture.dialled).toBe(2);
  });

  it("S3: wall time set one hour back changes nothing", () => {
    const fixture = Fixture.serving();
    fixture.clock.jumpWall(-3_600_000);
    fixture.advanceAnswering(60_000);
    expect(fixture.owner.take()).toEqual([]);
    expect(fixture.owns(0)).toBe(5);
    expect(fixture.dialled).toBe(1);
  });

  it("does not concern a client that holds no lease: it takes the welcome first", () => {
    const fixture = new Fixture();
    fixture.clock.jumpWall(3_600_000);
    fixture.session.open();
    fixture.clock.jumpWall(3_600_000);
    fixture.session.welcome();
    // The lease counts from the hello, and wall time ran ahead since: the next look finds it lapsed.
    expect(fixture.session.closed).toBeUndefined();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0"]] });
    expect(fixture.owner.take()).toEqual([]);
  });

  it("starts a partition that is granted again only after the earlier handle has ended", () => {
    const fixture = Fixture.serving();
    fixture.clock.stall(9_000);
    fixture.clock.advance(0);
    fixture.owner.take();
    fixture.clock.advance(0);
    fixture.session.begin();
    fixture.session.push({ revision: 6, base: null, grant: [["trips", "0-1", 5]] });
    expect(fixture.owner.take()).toEqual([]);
    fixture.unloaded("trips/1@5");
    expect(fixture.owner.take()).toEqual(["start trips/1@5"]);
  });
});

describe("a stop limit", () => {
  it("P26: stopped by SIGSTOP across it, the first question is answered with no, before any timer", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 2_000]] });
    fixture.clock.stall(1_999);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.stall(1);
    expect(fixture.owns(0)).toBeUndefined();
    expect(fixture.owns(1)).toBe(5);
  });

  it("P10: cuts that partition alone by timer; session and rest live on", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 2_000]] });
    fixture.owner.take();
    fixture.advanceAnswering(2_000);
    expect(fixture.owner.take()).toEqual(["cut trips/0@5"]);
    expect(fixture.owns(1)).toBe(5);
    expect(fixture.dialled).toBe(1);
  });

  it("P21: is not extended by a push that repeats the revoke", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 2_000]] });
    fixture.advanceAnswering(1_500);
    fixture.session.push({ revision: 7, base: 6, revoke: [["trips", "0", 5, 2_000]], grant: [["trips", "9"]] });
    fixture.advanceAnswering(500);
    expect(fixture.owns(0)).toBeUndefined();
  });
});
