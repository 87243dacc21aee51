import { describe, expect, it } from "vitest";
import { CLOSE } from "../../src/protocol/close-codes.ts";
import { Fixture } from "./connection-fixture.ts";

describe("hello", () => {
  it("says who it is and claims nothing at first", () => {
    const { session } = new Fixture();
    session.open();
    expect(session.take()).toEqual([
      { type: "hello", role: "executor", executor: "a", instance: "a-1", attempt: 1, weight: 1 },
    ]);
  });

  it("P13: claims the revision applied last, with the last stamp and a higher attempt", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello).toMatchObject({
      attempt: 2,
      stamp: "stamp-1",
      resume: { incarnation: "first", revision: 5 },
    });
  });

  it("claims a push that was applied although its ack was lost with the socket", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 10, base: 5, grant: [["trips", "2", 10]] });
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello.resume).toEqual({ incarnation: "first", revision: 10 });
  });

  it("does not claim a push of which a page was missing", () => {
    const fixture = Fixture.serving();
    fixture.session.sendText('{"type":"push","revision":9,"base":5,"cause":[],"more":true}');
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello.resume?.revision).toBe(5);
  });

  it("claims nothing when it was welcomed but never pushed anything", () => {
    const fixture = new Fixture();
    fixture.session.begin();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello.resume).toBeUndefined();
  });
});

describe("a push", () => {
  it("is applied, reported and acked, in this order", () => {
    const fixture = new Fixture();
    fixture.session.begin();
    fixture.session.take();
    fixture.session.push({ revision: 7, base: null, grant: [["trips", "0"]] });
    expect(fixture.owner.take()).toEqual(["start trips/0@7"]);
    expect(fixture.session.take()).toEqual([{ type: "ack", revision: 7 }]);
    fixture.session.push({ revision: 8, base: 7, revoke: [["trips", "9", 3, 5_000]] });
    expect(fixture.session.takeTypes()).toEqual(["report", "ack"]);
  });

  it("in pages is applied and acked once, when it is complete", () => {
    const fixture = new Fixture();
    fixture.session.begin();
    fixture.session.take();
    fixture.session.push({
      revision: 7,
      base: null,
      grant: [
        ["trips", "0"],
        ["users", "1"],
        ["zoo", "2"],
      ],
      pageBytes: 220,
    });
    expect(fixture.session.take()).toEqual([{ type: "ack", revision: 7 }]);
    expect(fixture.owner.take()).toEqual(["start trips/0@7", "start users/1@7", "start zoo/2@7"]);
  });

  it("from another revision makes it leave the socket and say hello with what it has", () => {
    const fixture = Fixture.serving();
    const [first] = fixture.scheduler.sessions;
    fixture.session.push({ revision: 9, base: 6, grant: [["trips", "7"]] });
    expect(first?.closed?.code).toBe(1000);
    expect(fixture.owner.take()).toEqual([]);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello.resume?.revision).toBe(5);
  });

  it("reports what the owner's code says soon, many partitions in one frame", () => {
    const fixture = new Fixture();
    fixture.session.begin();
    fixture.session.push({ revision: 7, base: null, grant: [["trips", "0-2"]] });
    fixture.session.take();
    fixture.loaded("trips/0@7", "trips/1@7");
    fixture.connection.failed(fixture.handle("trips/2@7"), { reason: "no", retryable: false });
    expect(fixture.session.take()).toEqual([]);
    fixture.clock.advance(20);
    const frames = fixture.session.take();
    expect(JSON.parse(JSON.stringify(frames))).toEqual([
      {
        type: "report",
        ready: [{ table: "trips", partitions: "0-1", epoch: 7 }],
        released: [],
        failed: [{ table: "trips", partitions: "2", epoch: 7, reason: "no", retryable: false }],
        load: [],
      },
    ]);
  });
});

describe("after every welcome", () => {
  it("P11: released is repeated for what the last push asked back", () => {
    const fixture = Fixture.serving();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 5_000]] });
    fixture.unloaded("trips/0@5");
    // The report is lost with its socket.
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: true });
    const [, report] = JSON.parse(JSON.stringify(fixture.session.take()));
    expect(report).toMatchObject({
      ready: [{ table: "trips", partitions: "1", epoch: 5 }],
      released: [{ table: "trips", partitions: "0", epoch: 5 }],
    });
  });

  it("P23: failed is repeated", () => {
    const fixture = new Fixture();
    fixture.session.begin();
    fixture.session.push({ revision: 4, base: null, grant: [["trips", "0"]] });
    fixture.connection.failed(fixture.handle("trips/0@4"), { reason: "disk", retryable: true });
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: true });
    const [, report] = JSON.parse(JSON.stringify(fixture.session.take()));
    expect(report.failed).toEqual([{ table: "trips", partitions: "0", epoch: 4, reason: "disk", retryable: true }]);
  });

  it("R3: a session that was resumed changes nothing that is held", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: true });
    fixture.session.push({ revision: 6, base: 5 });
    expect(fixture.owner.take()).toEqual([]);
    expect(fixture.owns(0)).toBe(5);
  });

  it("P30: what is loaded is told again before the ack of a whole picture", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: false });
    fixture.session.take();
    fixture.session.push({ revision: 9, base: null, grant: [["trips", "0-1", 5]] });
    const [report, ack] = JSON.parse(JSON.stringify(fixture.session.take()));
    expect(report.ready).toEqual([{ table: "trips", partitions: "0-1", epoch: 5 }]);
    expect(ack).toEqual({ type: "ack", revision: 9 });
    expect(fixture.owner.take()).toEqual([]);
  });

  it("leave is repeated until left", () => {
    const fixture = Fixture.serving();
    fixture.connection.leave("move");
    expect(fixture.session.take()).toEqual([{ type: "leave", mode: "move" }]);
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: true });
    expect(fixture.session.takeTypes()).toEqual(["hello", "report", "leave"]);
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0-1", 5, 5_000]] });
    fixture.unloaded("trips/0@5", "trips/1@5");
    const { session } = fixture;
    session.send({ type: "left" });
    expect(fixture.owner.closing).toEqual({ kind: "left" });
    expect(session.closed?.code).toBe(CLOSE.normal);
    fixture.clock.advance(60_000);
    expect(fixture.dialled).toBe(2);
  });

  it("left means nothing to one who did not ask to leave", () => {
    const fixture = Fixture.serving();
    fixture.session.send({ type: "left" });
    expect(fixture.owner.closing).toBeUndefined();
    expect(fixture.owns(0)).toBe(5);
  });

  it("traits that changed since the hello are told; later hellos have them", () => {
    const fixture = new Fixture();
    fixture.session.open();
    fixture.connection.update({ weight: 3 });
    fixture.session.welcome();
    expect(fixture.session.take().at(-1)).toEqual({ type: "update", weight: 3 });
    fixture.connection.update({ capacity: 7 });
    expect(fixture.session.take()).toEqual([{ type: "update", capacity: 7 }]);
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello).toMatchObject({ weight: 3, capacity: 7 });
  });
});

describe("another scheduler", () => {
  it("P9: of another incarnation makes it stop everything, and say hello afresh to be taken then", () => {
    const fixture = Fixture.serving();
    fixture.scheduler.terms.incarnation = "second";
    fixture.session.end(1006);
    fixture.clock.advance(0);
    const { session } = fixture;
    session.begin();
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 incarnation", "stop trips/1@5 incarnation"]);
    expect(fixture.owns(0)).toBeUndefined();
    expect(session.closed).toBeDefined();
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello).toMatchObject({ attempt: 3 });
    expect(fixture.session.hello).not.toHaveProperty("resume");
    expect(fixture.session.hello).not.toHaveProperty("stamp");
    fixture.session.welcome();
    fixture.session.push({ revision: 1, base: null, grant: [["trips", "0"]] });
    expect(fixture.owns(0)).toBe(1);
  });

  it("P9: of another cluster is treated alike", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    fixture.session.begin({ cluster: "other" });
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 incarnation", "stop trips/1@5 incarnation"]);
  });

  it("of a lower term is refused: nothing is extended, and what is held goes on", () => {
    const fixture = new Fixture({ urls: ["ws://one/v1/session", "ws://two/v1/session"] });
    fixture.session.begin({ term: 4 });
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0"]] });
    fixture.clock.advance(500);
    fixture.session.end(1006);
    fixture.clock.advance(0);
    const { session } = fixture;
    session.begin({ term: 3 });
    expect(session.closed).toBeDefined();
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.advance(0);
    expect(fixture.session.url).toBe("ws://two/v1/session");
    fixture.clock.stall(8_500);
    expect(fixture.owns(0)).toBeUndefined();
  });
});

describe("a scheduler that breaks the protocol", () => {
  const breaches: readonly (readonly [what: string, frame: string])[] = [
    ["text that is no frame", "hello there"],
    [
      "a set that is not canonical",
      '{"type":"push","revision":9,"base":5,"grant":[{"table":"t","partitions":"2-1","epoch":9}]}',
    ],
    ["a lease for a renew that was never sent", '{"type":"lease","n":9,"durationMs":60000,"renewMs":1000}'],
    [
      "a second welcome",
      '{"type":"welcome","cluster":"demo","incarnation":"first","term":1,"session":"x","resumed":false,"status":"pending","stamp":"","lease":{"durationMs":1,"renewMs":1,"clientMarginMs":1}}',
    ],
  ];

  it.each(breaches)("is left for %s, and what is held goes on within its lease", (_what, frame) => {
    const fixture = Fixture.serving();
    const { session } = fixture;
    session.sendText(frame);
    expect(session.closed?.code).toBe(CLOSE.badMessage);
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.advance(0);
    fixture.session.open();
    expect(fixture.session.hello.resume?.revision).toBe(5);
  });

  it("may send types and members that are not known yet", () => {
    const fixture = Fixture.serving();
    fixture.session.sendText('{"type":"weather","sunny":true}');
    fixture.session.sendText('{"type":"goaway","afterMs":50,"reason":"x","because":"y"}');
    expect(fixture.session.closed).toBeUndefined();
  });

  it("is left when it pushes before it welcomed", () => {
    const fixture = new Fixture();
    fixture.session.open();
    fixture.session.push({ revision: 1, base: null });
    expect(fixture.session.closed?.code).toBe(CLOSE.badMessage);
  });
});

describe("an abandoned socket", () => {
  it("P31: is not heard any more, whatever it still says", () => {
    const fixture = Fixture.serving();
    const old = fixture.session;
    old.push({ revision: 9, base: 6 });
    expect(old.closed).toBeDefined();
    fixture.clock.advance(0);
    fixture.session.begin({ resumed: true });
    old.push({ revision: 10, base: null });
    old.lease(0);
    old.refuse(CLOSE.replaced, "late");
    old.end(CLOSE.leaseEnded);
    expect(fixture.owner.take()).toEqual([]);
    expect(fixture.owns(0)).toBe(5);
    expect(fixture.dialled).toBe(2);
  });

  it("H8: is left before the next is dialled, so there is one at a time", () => {
    const fixture = Fixture.serving();
    const old = fixture.session;
    old.endWith({ kind: "failed", detail: "reset" });
    expect(fixture.dialled).toBe(1);
    fixture.clock.advance(0);
    expect(fixture.dialled).toBe(2);
    expect(old.closed).toBeDefined();
  });
});

describe("an owner that closes the connection while it is told something", () => {
  it("ends it for good when it is told of a lease", () => {
    const fixture = new Fixture();
    fixture.owner.onLeased = () => fixture.connection.close();
    fixture.session.begin();
    expect(fixture.connection.status()).not.toHaveProperty("session");
    expect(fixture.connection.status().state).toBe("closed");
    expect(fixture.owner.closing).toEqual({ kind: "closed" });
    fixture.clock.advance(60_000);
    expect(fixture.dialled).toBe(1);
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it("leaves no timer when it ends by one", () => {
    const fixture = Fixture.serving();
    fixture.connection.leave("restart");
    fixture.session.end(1006);
    fixture.clock.advance(9_000);
    expect(fixture.owner.closing).toEqual({ kind: "lapsed" });
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it("ends it for good when it is told to stop", () => {
    const fixture = Fixture.serving();
    fixture.owner.onStop = () => fixture.connection.close();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 5_000]] });
    expect(fixture.owner.closing).toEqual({ kind: "closed" });
    expect(fixture.owns(1)).toBeUndefined();
    fixture.clock.advance(60_000);
    expect(fixture.dialled).toBe(1);
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});
