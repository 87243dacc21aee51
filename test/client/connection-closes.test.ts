import { describe, expect, it } from "vitest";
import type { SocketEnd } from "../../src/client/ports.ts";
import { Fixture } from "./connection-fixture.ts";

const ONE = "ws://one:7420/v1/session";
const TWO = "ws://two:7420/v1/session";

/** How a serving executor goes on after its socket was closed with a code. */
function afterClose(code: number, options: { readonly canRenewToken?: boolean } = {}) {
  const fixture = Fixture.serving({ urls: [ONE, TWO], ...options });
  fixture.session.end(code, "why");
  const serving = fixture.owns(0) === 5;
  fixture.clock.advance(0);
  if (fixture.dialled === 1) return { serving, goesOn: false, closing: fixture.owner.closing };
  fixture.session.open();
  return { serving, goesOn: true, url: fixture.session.url, resumes: fixture.session.hello.resume !== undefined };
}

describe("a close code", () => {
  const keepsServing: readonly (readonly [code: number, url: string])[] = [
    [1000, ONE],
    [1001, TWO],
    [1006, ONE],
    [1011, ONE],
    [4408, ONE],
    [4411, ONE],
    [4421, TWO],
    [4429, ONE],
    [4500, ONE],
    [4503, ONE],
    [4999, ONE],
  ];
  it.each(keepsServing)("%i keeps what is held within its lease and resumes, at %s", (code, url) => {
    expect(afterClose(code)).toEqual({ serving: true, goesOn: true, url, resumes: true });
  });

  it.each([1003, 1007, 1009, 4400, 4403])("%i stops everything and is not retried", (code) => {
    expect(afterClose(code)).toEqual({
      serving: false,
      goesOn: false,
      closing: { kind: "refused", code, detail: "why" },
    });
  });

  it("P14, H10: 4409 stops it for good, and tells the owner", () => {
    expect(afterClose(4409)).toEqual({ serving: false, goesOn: false, closing: { kind: "replaced", detail: "why" } });
    const fixture = Fixture.serving();
    fixture.session.end(4409, "a-2 took over");
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 replaced", "stop trips/1@5 replaced", "finished replaced"]);
    fixture.clock.advance(3_600_000);
    expect(fixture.dialled).toBe(1);
    expect(fixture.connection.status().state).toBe("closed");
  });

  it("4410 stops everything and says hello without a claim", () => {
    expect(afterClose(4410)).toEqual({ serving: false, goesOn: true, url: ONE, resumes: false });
  });

  it("4401 stops everything; it is retried if there can be another token", () => {
    expect(afterClose(4401, { canRenewToken: true })).toEqual({
      serving: false,
      goesOn: true,
      url: ONE,
      resumes: false,
    });
    const closing = { kind: "unauthenticated", detail: "why" };
    expect(afterClose(4401)).toEqual({ serving: false, goesOn: false, closing });
  });

  it("is anticipated by the refused frame that announces it", () => {
    const fixture = Fixture.serving();
    const { session } = fixture;
    session.refuse(4409, "replaced");
    expect(fixture.owner.closing).toEqual({ kind: "replaced", detail: "replaced" });
    session.end(1006);
    expect(fixture.owner.take().filter((line) => line.startsWith("finished"))).toEqual(["finished replaced"]);
  });

  it("1000 after its own close ends it", () => {
    const fixture = Fixture.serving();
    fixture.connection.close();
    expect(fixture.owner.take()).toEqual(["stop trips/0@5 closed", "stop trips/1@5 closed", "finished closed"]);
    fixture.session.end(1000);
    fixture.clock.advance(60_000);
    expect(fixture.dialled).toBe(1);
  });
});

describe("an upgrade that is refused", () => {
  const refuse = (fixture: Fixture, end: Partial<SocketEnd> & { readonly status: number }) =>
    fixture.session.endWith({ kind: "refused", detail: "said so", ...end } as SocketEnd);

  it.each([400, 403, 404, 405, 426, 431])("with %i at the first connection is a mistake to be told", (status) => {
    const fixture = new Fixture();
    refuse(fixture, { status });
    expect(fixture.owner.closing).toEqual({ kind: "refused", code: status, detail: "said so" });
  });

  it("with 404 after a session is something passing in between", () => {
    const fixture = Fixture.serving();
    fixture.session.end(1006);
    fixture.clock.advance(0);
    refuse(fixture, { status: 404 });
    expect(fixture.owner.closing).toBeUndefined();
    expect(fixture.owns(0)).toBe(5);
    fixture.clock.advance(0);
    expect(fixture.dialled).toBe(3);
  });

  it("with 401 ends it, or is retried if there can be another token", () => {
    const fixed = new Fixture();
    refuse(fixed, { status: 401 });
    expect(fixed.owner.closing).toEqual({ kind: "unauthenticated", detail: "said so" });
    const renewable = new Fixture({ canRenewToken: true });
    refuse(renewable, { status: 401 });
    renewable.clock.advance(0);
    expect(renewable.dialled).toBe(2);
  });

  it("with 503 is retried at the next address, after the time it said", () => {
    const fixture = new Fixture({ urls: [ONE, TWO] });
    refuse(fixture, { status: 503, retryAfterMs: 2_000 } as SocketEnd & { readonly status: number });
    fixture.clock.advance(1_999);
    expect(fixture.dialled).toBe(1);
    fixture.clock.advance(1);
    expect(fixture.session.url).toBe(TWO);
  });
});

describe("waits", () => {
  /** The waits of a connection whose dials fail, with the given random number. */
  function waits(random: number, count: number): number[] {
    const fixture = new Fixture({ random: () => random });
    return Array.from({ length: count }, () => {
      const from = fixture.clock.now();
      fixture.session.endWith({ kind: "failed", detail: "refused" });
      const dialled = fixture.dialled;
      while (fixture.dialled === dialled) fixture.clock.advance(1);
      return fixture.clock.now() - from;
    });
  }

  it("double from 100 ms to 10 s, with full jitter", () => {
    expect(waits(0.999999, 9)).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    expect(waits(0.5, 9)).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  it("are capped at renewMs while the lease lives, and no longer", () => {
    const fixture = Fixture.serving({ random: () => 0.999999 });
    fixture.session.end(1006);
    const dials: number[] = [];
    while (fixture.clock.now() < 60_000) {
      const before = fixture.dialled;
      fixture.clock.advance(10);
      if (fixture.dialled === before) continue;
      dials.push(fixture.clock.now());
      fixture.session.endWith({ kind: "failed", detail: "refused" });
    }
    const gaps = dials.map((at, index) => at - (dials[index - 1] ?? 20));
    const living = gaps.filter((_, index) => (dials[index] ?? 0) < 8_980);
    expect(Math.max(...living)).toBe(1_000);
    expect(Math.max(...gaps)).toBe(10_000);
  });

  it("start anew after a session that outlasted a lease", () => {
    const fixture = new Fixture({ random: () => 0.999999 });
    for (let i = 0; i < 6; i++) {
      fixture.session.endWith({ kind: "failed", detail: "refused" });
      fixture.clock.advance(10_000);
    }
    fixture.session.begin();
    fixture.advanceAnswering(10_001);
    const from = fixture.clock.now();
    fixture.session.end(1006);
    fixture.clock.advance(100);
    expect(fixture.session.closed).toBeUndefined();
    expect(fixture.clock.now() - from).toBe(100);
  });

  it("go on growing after a session that did not", () => {
    const fixture = new Fixture({ random: () => 0.999999 });
    for (let i = 0; i < 3; i++) {
      fixture.session.begin();
      fixture.session.end(1006);
      fixture.clock.advance(100 * 2 ** i - 1);
      expect(fixture.dialled).toBe(i + 1);
      fixture.clock.advance(1);
      expect(fixture.dialled).toBe(i + 2);
    }
  });

  it("4429: retryAfterMs is waited, whatever the lease", () => {
    const fixture = Fixture.serving();
    fixture.session.refuse(4429, "too many", { retryAfterMs: 3_000 });
    fixture.clock.advance(2_999);
    expect(fixture.dialled).toBe(1);
    fixture.clock.advance(1);
    expect(fixture.dialled).toBe(2);
    expect(fixture.owns(0)).toBe(5);
  });
});

describe("goaway", () => {
  it("is followed after its time, at the next address, and leases stay", () => {
    const fixture = Fixture.serving({ urls: [ONE, TWO] });
    const old = fixture.session;
    old.send({ type: "goaway", afterMs: 400, reason: "restart" });
    fixture.clock.advance(399);
    expect(old.closed).toBeUndefined();
    fixture.clock.advance(1);
    expect(old.closed?.code).toBe(1000);
    expect(fixture.session.url).toBe(TWO);
    fixture.session.open();
    expect(fixture.session.hello.resume?.revision).toBe(5);
    expect(fixture.owns(0)).toBe(5);
  });
});

describe("4421", () => {
  const hopTo = (fixture: Fixture, leader: string) => fixture.session.refuse(4421, "not the leader", { leader });

  it("is followed at once to the leader on the same host or at a configured address", () => {
    const fixture = Fixture.serving({ urls: [ONE, TWO] });
    hopTo(fixture, "ws://one:9999");
    expect(fixture.session.url).toBe("ws://one:9999/v1/session");
    fixture.session.open();
    hopTo(fixture, "ws://two:7420");
    expect(fixture.session.url).toBe(TWO);
  });

  it.each(["ws://evil:7420", "http//", "ws://two:7421"])("is not followed to %s", (leader) => {
    const fixture = Fixture.serving({ urls: [ONE, TWO] });
    hopTo(fixture, leader);
    fixture.clock.advance(0);
    expect(fixture.session.url).toBe(TWO);
  });

  it("is not followed from an encrypted address to a plain one", () => {
    const fixture = new Fixture({ urls: ["wss://one/v1/session"] });
    fixture.session.open();
    hopTo(fixture, "ws://one");
    fixture.clock.advance(0);
    expect(fixture.session.url).toBe("wss://one/v1/session");
    fixture.session.open();
    hopTo(fixture, "wss://one:8443");
    expect(fixture.session.url).toBe("wss://one:8443/v1/session");
  });

  it("is followed three times in a row, then the configured addresses are tried again", () => {
    const fixture = new Fixture({ urls: [ONE] });
    for (const port of [1, 2, 3]) {
      fixture.session.open();
      hopTo(fixture, `ws://one:${port}`);
      expect(fixture.session.url).toBe(`ws://one:${port}/v1/session`);
    }
    fixture.session.open();
    hopTo(fixture, "ws://one:4");
    fixture.clock.advance(0);
    expect(fixture.session.url).toBe(ONE);
    fixture.session.begin();
    hopTo(fixture, "ws://one:5");
    expect(fixture.session.url).toBe("ws://one:5/v1/session");
  });
});
