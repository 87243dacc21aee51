import { describe, expect, it } from "vitest";
import {
  ConfigurationError,
  LeaveTimeoutError,
  PartitionError,
  PartitionStoppedError,
  RefusedError,
  ReplacedError,
  UnauthenticatedError,
} from "../../src/client/errors.ts";
import { leaveOnSignals, leaveOnSigterm } from "../../src/client/leave-signals.ts";
import type { ExecutorOptions } from "../../src/client/options.ts";
import { startExecutor } from "../../src/client/running-executor.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { ExecutorFixture } from "./executor-fixture.ts";

const entry = (partitions: string, epoch: number) => ({ table: "trips", partitions, epoch });

describe("grants", () => {
  it("run onGrant for each partition; resolved is ready, rejected is failed", async () => {
    const fixture = await ExecutorFixture.granted();
    expect(fixture.handlers.names).toEqual(["grant trips/0@5", "grant trips/1@5"]);
    expect(fixture.executor.owns("trips", 0)).toBe(5);
    fixture.handlers.call("grant trips/0@5").resolve();
    fixture.handlers.call("grant trips/1@5").reject(new PartitionError("wrong version", { retryable: false }));
    await fixture.report();
    expect(fixture.takeReports()).toEqual([
      { ready: [entry("0", 5)], failed: [{ ...entry("1", 5), reason: "wrong version", retryable: false }] },
    ]);
    expect(fixture.executor.owns("trips", 1)).toBeUndefined();
  });

  it("count any other error as one to be tried again, with its message cut to what a frame takes", async () => {
    const fixture = await ExecutorFixture.granted();
    fixture.handlers.call("grant trips/0@5").reject(new Error(`${"x".repeat(600)}\uD800`));
    fixture.handlers.call("grant trips/1@5").reject("\uD800 alone");
    await fixture.report();
    expect(fixture.takeReports()).toEqual([
      {
        failed: [
          { ...entry("0", 5), reason: "x".repeat(512), retryable: true },
          { ...entry("1", 5), reason: "\uFFFD alone", retryable: true },
        ].sort((a, b) => (a.reason < b.reason ? -1 : 1)),
      },
    ]);
  });

  it("that hang or throw at once delay no other partition", async () => {
    const fixture = new ExecutorFixture();
    const seen: number[] = [];
    fixture.handlers.onGrant = ({ partition }) => {
      seen.push(partition);
      if (partition === 0) throw new Error("at once");
      return partition === 1 ? new Promise(() => {}) : undefined;
    };
    fixture.session.begin();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-3"]] });
    fixture.session.take();
    await fixture.report();
    expect(seen).toEqual([0, 1, 2, 3]);
    expect(fixture.takeReports()).toEqual([
      { ready: [entry("2-3", 5)], failed: [{ ...entry("0", 5), reason: "at once", retryable: true }] },
    ]);
  });

  it("carry the key where the table has keys", async () => {
    const fixture = new ExecutorFixture();
    fixture.session.begin();
    const keys = [{ table: "events", partition: 1, key: "region=eu" }];
    fixture.session.push({ revision: 5, base: null, grant: [["events", "0-1"]], keys });
    await fixture.settle();
    const [first, second] = fixture.handlers.calls.map((call) => call.grant);
    expect(first).not.toHaveProperty("key");
    expect(second?.key).toBe("region=eu");
  });

  it("P15: in an overlap table load at the prepare, once; the grant only brings its epoch", async () => {
    const fixture = new ExecutorFixture({ prompt: true });
    const tables = [{ table: "trips", handoff: "overlap" as const }];
    fixture.session.begin();
    fixture.session.push({ revision: 8, base: null, prepare: [["trips", "0"]], tables });
    await fixture.report();
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    fixture.session.push({ revision: 9, base: 8, grant: [["trips", "0"]], tables });
    await fixture.report();
    expect(fixture.takeReports()).toEqual([{ ready: [entry("0", 8)] }, { ready: [entry("0", 9)] }]);
    expect(fixture.handlers.names).toEqual(["grant trips/0@8"]);
    expect(fixture.executor.owns("trips", 0)).toBe(9);
  });
});

describe("revokes", () => {
  it("abort the signal, run onRevoke and report released when it has resolved", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.handlers.prompt = false;
    const { signal } = fixture.handlers.call("grant trips/0@5").grant;
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 5_000]] });
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(PartitionStoppedError);
    expect(fixture.executor.owns("trips", 0)).toBe(5);
    await fixture.report();
    const call = fixture.handlers.call("revoke trips/0@5");
    expect(call.notice).toEqual({ reason: "revoked", stopMs: 5_000 });
    expect(call.grant).toBe(fixture.handlers.call("grant trips/0@5").grant);
    expect(fixture.takeReports()).toEqual([]);
    call.resolve();
    await fixture.report();
    expect(fixture.takeReports()).toEqual([{ released: [entry("0", 5)] }]);
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    expect(fixture.executor.owns("trips", 1)).toBe(5);
  });

  it("during onGrant abort the signal and wait for it to settle before onRevoke", async () => {
    const fixture = await ExecutorFixture.granted();
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0-1", 5, 5_000]] });
    await fixture.report();
    expect(fixture.handlers.names).toEqual(["grant trips/0@5", "grant trips/1@5"]);
    fixture.handlers.call("grant trips/0@5").resolve();
    fixture.handlers.call("grant trips/1@5").reject(new Error("aborted"));
    await fixture.report();
    // What rejected has loaded nothing, so there is nothing to unload, and nobody asked for it any more.
    expect(fixture.logged).not.toContain("partition.failed 1");
    expect(fixture.handlers.names.slice(2)).toEqual(["revoke trips/0@5"]);
    expect(fixture.takeReports()).toEqual([{ released: [entry("1", 5)] }]);
    fixture.handlers.call("revoke trips/0@5").resolve();
    await fixture.report();
    expect(fixture.takeReports()).toEqual([{ released: [entry("0", 5)] }]);
  });

  it("that come before onGrant was even called leave it uncalled", async () => {
    const fixture = new ExecutorFixture();
    fixture.session.begin();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0"]] });
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 5_000]] });
    fixture.session.take();
    await fixture.report();
    expect(fixture.handlers.names).toEqual([]);
    expect(fixture.takeReports()).toEqual([{ released: [entry("0", 5)] }]);
  });

  it("P10: of a handler that never stops are cut at the limit; the rest goes on", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.handlers.prompt = false;
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 500]] });
    await fixture.clock.advanceAsync(499);
    expect(fixture.executor.owns("trips", 0)).toBe(5);
    await fixture.clock.advanceAsync(1);
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    expect(fixture.logged).toContain("partition.cut 0");
    expect(fixture.executor.owns("trips", 1)).toBe(5);
    expect(fixture.session.closed).toBeUndefined();
  });

  it("whose handler rejects are not reported released, since nothing says that it has stopped", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.handlers.prompt = false;
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 500]] });
    await fixture.report();
    fixture.session.take();
    fixture.handlers.call("revoke trips/0@5").reject(new Error("disk"));
    await fixture.clock.advanceAsync(100);
    expect(fixture.takeReports()).toEqual([]);
    expect(fixture.logged).toContain("partition.unload-failed 0");
    expect(fixture.executor.owns("trips", 0)).toBe(5);
    await fixture.clock.advanceAsync(400);
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
  });

  it("of a partition that is granted anew start it only after onRevoke has resolved", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.handlers.prompt = false;
    fixture.session.push({ revision: 8, base: null, grant: [["trips", "0", 8]] });
    await fixture.settle();
    expect(fixture.handlers.names.slice(2)).toEqual(["revoke trips/0@5", "revoke trips/1@5"]);
    expect(fixture.handlers.call("revoke trips/0@5").notice).toEqual({ reason: "dropped", stopMs: 0 });
    fixture.handlers.call("revoke trips/0@5").resolve();
    await fixture.settle();
    expect(fixture.handlers.names.slice(4)).toEqual(["grant trips/0@8"]);
  });
});

describe("a lapse", () => {
  it("aborts every signal before any onRevoke, and starts what is granted again when that has ended", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.handlers.prompt = false;
    const signals = fixture.handlers.calls.map((call) => call.grant.signal);
    fixture.clock.stall(10_000);
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
    expect(fixture.handlers.names.length).toBe(2);
    await fixture.clock.advanceAsync(0);
    expect(fixture.handlers.names.slice(2)).toEqual(["revoke trips/0@5", "revoke trips/1@5"]);
    expect(fixture.handlers.call("revoke trips/0@5").notice).toEqual({ reason: "lapsed", stopMs: 0 });
    fixture.session.begin();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-1", 5]] });
    fixture.handlers.call("revoke trips/1@5").resolve();
    await fixture.report();
    expect(fixture.handlers.names.slice(4)).toEqual(["grant trips/1@5"]);
    expect(fixture.takeReports()).toEqual([]);
  });

  it("waits for a handler that hangs no longer than stopTimeoutMs", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true, stopTimeoutMs: 3_000 });
    fixture.handlers.prompt = false;
    fixture.session.push({ revision: 8, base: null, grant: [["trips", "0", 8]] });
    await fixture.clock.advanceAsync(900);
    fixture.session.lease();
    await fixture.clock.advanceAsync(1_000);
    fixture.session.lease();
    await fixture.clock.advanceAsync(1_099);
    expect(fixture.handlers.names.slice(4)).toEqual([]);
    await fixture.clock.advanceAsync(1);
    expect(fixture.handlers.names.slice(4)).toEqual(["grant trips/0@8"]);
  });

  it("unloads what was still loading when it comes late, though nobody waits for it any more", async () => {
    const fixture = await ExecutorFixture.granted({ stopTimeoutMs: 1_000 });
    fixture.clock.stall(10_000);
    fixture.executor.owns("trips", 0);
    await fixture.clock.advanceAsync(5_000);
    expect(fixture.logged).toContain("partition.cut 0");
    fixture.handlers.call("grant trips/0@5").resolve();
    await fixture.settle();
    expect(fixture.handlers.names.slice(2)).toEqual(["revoke trips/0@5"]);
  });
});

describe("giving up", () => {
  it("reports failed, serves no longer, and unloads when it is asked back", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    expect(fixture.executor.fail("trips", 0, new PartitionError("crashed"))).toBe(true);
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    await fixture.report();
    expect(fixture.takeReports()).toEqual([{ failed: [{ ...entry("0", 5), reason: "crashed", retryable: true }] }]);
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0", 5, 500]] });
    await fixture.report();
    expect(fixture.handlers.names.at(-1)).toBe("revoke trips/0@5");
    expect(fixture.takeReports()).toEqual([{ released: [entry("0", 5)] }]);
    expect(fixture.executor.fail("trips", 7, new Error("not held"))).toBe(false);
  });
});

describe("leaving", () => {
  it("resolves when left, with everything unloaded and the connection closed", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const leaving = fixture.executor.leave();
    expect(fixture.session.take()).toEqual([{ type: "leave", mode: "move" }]);
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0-1", 5, 5_000]] });
    await fixture.report();
    expect(fixture.takeReports()).toEqual([{ released: [entry("0-1", 5)] }]);
    fixture.session.send({ type: "left" });
    await leaving;
    expect(await fixture.executor.closed).toEqual({ reason: "left" });
    expect(fixture.executor.status().state).toBe("closed");
  });

  it("stops everything and rejects when the scheduler does not answer in time", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const leaving = expect(fixture.executor.leave({ timeoutMs: 800 })).rejects.toThrow(LeaveTimeoutError);
    await fixture.clock.advanceAsync(800);
    await leaving;
    expect(fixture.handlers.names.slice(2)).toEqual(["revoke trips/0@5", "revoke trips/1@5"]);
    expect(await fixture.executor.closed).toEqual({ reason: "closed" });
  });

  it("for a restart waits without a scheduler no longer than its lease", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.session.end(1006);
    const leaving = fixture.executor.leave({ mode: "restart" });
    await fixture.clock.advanceAsync(8_900);
    expect(fixture.executor.status().state).toBe("connecting");
    await fixture.clock.advanceAsync(100);
    await leaving;
    expect(await fixture.executor.closed).toEqual({ reason: "lapsed" });
  });

  it("for a restart is over at once for one that holds no lease", async () => {
    const fixture = new ExecutorFixture();
    await fixture.executor.leave({ mode: "restart" });
    expect(await fixture.executor.closed).toEqual({ reason: "lapsed" });
    expect(fixture.session.closed).toBeDefined();
  });

  it("on SIGTERM is for a restart, and exits with 0 when left", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const exited = new Promise((exit) => leaveOnSigterm(fixture.executor, { exit }));
    process.emit("SIGTERM");
    expect(fixture.session.take()).toEqual([{ type: "leave", mode: "restart" }]);
    fixture.session.send({ type: "left" });
    expect(await exited).toBe(0);
  });

  it("on SIGTERM is as told", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const exited = new Promise((exit) => leaveOnSigterm(fixture.executor, { mode: "move", exit }));
    process.emit("SIGTERM");
    expect(fixture.session.take()).toEqual([{ type: "leave", mode: "move" }]);
    fixture.session.send({ type: "left" });
    expect(await exited).toBe(0);
  });

  it.each([
    ["SIGTERM", "restart"],
    ["SIGINT", "move"],
  ] as const)("on %s is with %s, and no second signal is listened for", async (signal, mode) => {
    const before = process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const exited = new Promise((exit) => leaveOnSignals(fixture.executor, { exit }));
    expect(process.listenerCount("SIGTERM") + process.listenerCount("SIGINT")).toBe(before + 2);
    process.emit(signal);
    expect(process.listenerCount("SIGTERM") + process.listenerCount("SIGINT")).toBe(before);
    expect(fixture.session.take()).toEqual([{ type: "leave", mode }]);
    fixture.session.send({ type: "left" });
    expect(await exited).toBe(0);
  });

  it("on SIGTERM exits with 1 when the scheduler did not confirm, and not at all once it was taken back", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const exits: number[] = [];
    leaveOnSigterm(fixture.executor, { exit: (code) => exits.push(code) })();
    const listeners = process.listenerCount("SIGTERM");
    leaveOnSigterm(fixture.executor, { timeoutMs: 500, exit: (code) => exits.push(code) });
    expect(process.listenerCount("SIGTERM")).toBe(listeners + 1);
    process.emit("SIGTERM");
    await fixture.clock.advanceAsync(500);
    await fixture.executor.closed;
    await fixture.settle();
    expect(exits).toEqual([1]);
    expect(process.listenerCount("SIGTERM")).toBe(listeners);
  });
});

describe("the end", () => {
  it("P14, H10: by a newer instance stops everything and is told as ReplacedError", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    fixture.session.end(4409, "a-2");
    const closed = await fixture.executor.closed;
    expect(closed.reason).toBe("replaced");
    expect("error" in closed && closed.error).toBeInstanceOf(ReplacedError);
    expect(fixture.handlers.call("revoke trips/0@5").notice?.reason).toBe("replaced");
    await expect(fixture.executor.leave()).rejects.toThrow(ReplacedError);
  });

  it("by refusal or for want of a token is told by what to do", async () => {
    const refused = await ExecutorFixture.granted();
    refused.session.end(4403, "not yours");
    for (const call of refused.handlers.calls) call.resolve();
    await refused.settle();
    for (const call of refused.handlers.calls.slice(2)) call.resolve();
    const closed = await refused.executor.closed;
    expect("error" in closed && closed.error).toEqual(expect.objectContaining({ code: "refused", refusal: 4403 }));
    expect("error" in closed && closed.error).toBeInstanceOf(RefusedError);
    const anonymous = new ExecutorFixture();
    anonymous.session.open();
    anonymous.session.end(4401);
    const ended = await anonymous.executor.closed;
    expect("error" in ended && ended.error).toBeInstanceOf(UnauthenticatedError);
  });

  it("waits for handlers, but for one that hangs no longer than stopTimeoutMs", async () => {
    const fixture = await ExecutorFixture.granted({ stopTimeoutMs: 3_000 });
    let isClosed = false;
    const closing = fixture.executor.close().then(() => {
      isClosed = true;
    });
    await fixture.clock.advanceAsync(2_999);
    expect(isClosed).toBe(false);
    await fixture.clock.advanceAsync(1);
    await closing;
    expect(isClosed).toBe(true);
  });
});

describe("statuses", () => {
  it("give the state now and after each change, and end when it is closed", async () => {
    const fixture = new ExecutorFixture({ prompt: true });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { state, waitingFor, owned, ready } of fixture.executor.statuses()) {
        seen.push(`${state} ${waitingFor ?? "-"} ${owned}/${ready}`);
      }
    })();
    await fixture.settle();
    fixture.session.begin({ waitingFor: "2 of 3 expected" });
    await fixture.settle();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-1"]] });
    await fixture.report();
    await fixture.executor.close();
    await reading;
    expect(seen[0]).toBe("connecting - 0/0");
    expect(seen[1]).toBe("pending 2 of 3 expected 0/0");
    expect(seen.at(-2)).toBe("assigned - 2/2");
    expect(seen.at(-1)).toBe("closed - 0/0");
  });

  it("give a reader that comes late only the newest, and the time left of the lease is no change", async () => {
    const fixture = await ExecutorFixture.granted({ prompt: true });
    const statuses = fixture.executor.statuses();
    expect((await statuses.next()).value).toMatchObject({ state: "assigned", owned: 2, ready: 2, revision: 5 });
    const next = statuses.next();
    await fixture.clock.advanceAsync(980);
    fixture.session.lease();
    fixture.session.push({ revision: 6, base: 5 });
    fixture.session.push({ revision: 7, base: 6 });
    expect((await next).value).toMatchObject({ revision: 7 });
  });
});

describe("misconfiguration", () => {
  const handlers = { onGrant() {}, onRevoke() {} };
  const start =
    (options: object, given: object = handlers) =>
    () =>
      startExecutor(options as ExecutorOptions, given as typeof handlers, {
        clock: new FakeClock(),
        random: { next: () => 0 },
        dial: () => {
          throw new Error("dialled");
        },
      });

  const mistakes: readonly (readonly [options: object, message: RegExp])[] = [
    [{ executor: "a" }, /^url: is missing; give the scheduler's address/],
    [{ executor: "a", urls: [] }, /^url: is missing/],
    [{ executor: "a", url: "ws://x", urls: ["ws://y"] }, /not both/],
    [{ executor: "a", url: "localhost:7420" }, /^url: not an address: "localhost:7420"/],
    [{ executor: "a", url: "ws://x?token=secret" }, /^url: .*give the token as `token`/],
    [{ url: "ws://x" }, /^executor: is missing/],
    [{ url: "ws://x", executor: "a b" }, /^executor: must be an id: 1 to 128 of/],
    [{ url: "ws://x", executor: "a", weight: 0 }, /^weight: must be a number above 0/],
    [{ url: "ws://x", executor: "a", capacity: 1.5 }, /^capacity: must be an integer/],
    [{ url: "ws://x", executor: "a", labels: { pool: 3 } }, /^labels: /],
    [{ url: "ws://x", executor: "a", token: "" }, /^token: /],
    [{ url: "ws://x", executor: "a", weigth: 2 }, /^unknown option: weigth/],
    [{ url: "ws://x", executor: "a", stopTimeoutMs: Number.NaN }, /^stopTimeoutMs: /],
    [{ url: "ws://x", executor: "a", stopTimeoutMs: 2 ** 31 }, /^stopTimeoutMs: /],
  ];

  it.each(mistakes)("%j is refused at the call", (options, message) => {
    expect(start(options)).toThrow(ConfigurationError);
    expect(start(options)).toThrow(message);
  });

  it("of handlers and updates is refused as well", () => {
    expect(start({ url: "ws://x", executor: "a" }, { onGrant() {} })).toThrow(/^onRevoke: must be a function/);
    const fixture = new ExecutorFixture();
    expect(() => fixture.executor.update({ weight: -1 })).toThrow(/^weight: must be/);
  });

  it("does not repeat a secret that was written into the address", () => {
    expect(start({ executor: "a", url: "ws://user:secret@x" })).toThrow(/^(?!.*secret).*$/);
  });
});
