import { beforeEach, describe, expect, test, vi } from "vitest";
import { ExecHandlers } from "../../src/cli/exec/exec-handlers.ts";
import { type ChildEnd, monotonicMs, type StopChild, type ToGuard } from "../../src/cli/exec/messages.ts";
import type { PartitionGrant } from "../../src/client/executor.ts";

/** The handlers over a guard that only notes what it is told. */

let toGuard: ToGuard[];
let givenUp: string[];
let handlers: ExecHandlers;
let abort: AbortController;
let grant: PartitionGrant;

beforeEach(() => {
  toGuard = [];
  givenUp = [];
  handlers = new ExecHandlers({
    command: "serve it",
    note: () => {},
    giveUp: ({ table, partition }, error) => givenUp.push(`${table}/${partition}: ${error.message}`),
    onLost: () => givenUp.push("lost"),
    guard: () => ({ send: (message) => toGuard.push(message), close: () => Promise.resolve() }),
  });
  abort = new AbortController();
  grant = { table: "trips", partition: 3, key: "eu", epoch: 12, signal: abort.signal };
});

const exited = (code: number): ChildEnd => ({ kind: "exited", code });

function gone(child: number, end: ChildEnd, warned = false): void {
  handlers.gone({ type: "gone", child, end, warned });
}

function types(): readonly string[] {
  return toGuard.map(({ type }) => type);
}

async function settled(promise: Promise<void> | undefined): Promise<string> {
  const pending = new Promise<string>((resolve) => setImmediate(() => resolve("pending")));
  const outcome = Promise.resolve(promise).then(
    () => "resolved",
    (error: Error) => error.message,
  );
  return Promise.race([outcome, pending]);
}

describe("a partition", () => {
  test("is loaded when its child has started, with what it is in the environment", async () => {
    const load = handlers.onGrant(grant);
    expect(toGuard).toEqual([
      {
        type: "start",
        child: 1,
        command: "serve it",
        environment: { EVENKEEL_TABLE: "trips", EVENKEEL_PARTITION: "3", EVENKEEL_KEY: "eu", EVENKEEL_EPOCH: "12" },
      },
    ]);
    expect(await settled(load)).toBe("pending");
    handlers.started(1);
    expect(await settled(load)).toBe("resolved");
  });

  test("fails when its child cannot be started", async () => {
    const load = handlers.onGrant(grant);
    gone(1, { kind: "not-started", reason: "no memory" });
    expect(await settled(load)).toBe("the command could not be started: no memory");
  });

  test("is given up when its child ends by itself, but not when that was all there was to do", async () => {
    void handlers.onGrant(grant);
    handlers.started(1);
    gone(1, exited(3));
    await vi.waitFor(() => expect(givenUp).toEqual(["trips/3: the command exited with 3"]));
    const other = { ...grant, partition: 4 };
    void handlers.onGrant(other);
    handlers.started(2);
    gone(2, exited(0));
    await settled(undefined);
    expect(givenUp).toHaveLength(1);
    expect(handlers.onRevoke(other, { reason: "revoked", stopMs: 1_000 })).toBeUndefined();
  });

  test("is released when its child is gone, however that ended", async () => {
    void handlers.onGrant(grant);
    handlers.started(1);
    abort.abort();
    const unload = handlers.onRevoke(grant, { reason: "revoked", stopMs: 5_000 });
    const stop = toGuard.at(-1) as StopChild;
    expect(stop).toMatchObject({ type: "stop", child: 1 });
    expect(stop.killAtMs - monotonicMs()).toBeGreaterThan(4_000);
    expect(await settled(unload)).toBe("pending");
    gone(1, { kind: "killed", signal: "SIGTERM" });
    expect(await settled(unload)).toBe("resolved");
    expect(givenUp).toEqual([]);
  });

  test.each(["lapsed", "dropped", "incarnation", "ended"] as const)(
    "that is %s has its child killed at once",
    (reason) => {
      void handlers.onGrant(grant);
      handlers.started(1);
      abort.abort();
      void handlers.onRevoke(grant, { reason, stopMs: 0 });
      expect((toGuard.at(-1) as StopChild).killAtMs).toBeLessThanOrEqual(monotonicMs());
    },
  );

  test("that is asked back before its child has started is stopped all the same", async () => {
    const load = handlers.onGrant(grant);
    abort.abort();
    expect(await settled(load)).toBe("resolved");
    const unload = handlers.onRevoke(grant, { reason: "revoked", stopMs: 5_000 });
    expect(types()).toEqual(["start", "stop"]);
    handlers.started(1);
    expect(await settled(unload)).toBe("pending");
    gone(1, exited(0));
    expect(await settled(unload)).toBe("resolved");
  });

  test("whose child went between the abort and the revoke has nothing to stop", () => {
    void handlers.onGrant(grant);
    handlers.started(1);
    abort.abort();
    gone(1, exited(1));
    expect(handlers.onRevoke(grant, { reason: "revoked", stopMs: 5_000 })).toBeUndefined();
    expect(types()).toEqual(["start"]);
  });
});

describe("the lease", () => {
  const lease = { leftMs: 14_000, renewMs: 4_000, marginMs: 1_000 };

  test("is handed on with a warning two renew periods before it lapses", () => {
    const now = monotonicMs();
    handlers.onLease(lease);
    const [told] = toGuard;
    if (told?.type !== "lease") throw new Error("the guard was told of no lease");
    expect(told.lapseAtMs - now).toBeCloseTo(14_000, -2);
    expect(told.lapseAtMs - told.warnAtMs).toBeCloseTo(8_000, -2);
  });

  test("as short as it may be warns only when a renew has stayed unanswered for half a period", () => {
    const now = monotonicMs();
    handlers.onLease({ ...lease, leftMs: 12_000 });
    const [told] = toGuard;
    if (told?.type !== "lease") throw new Error("the guard was told of no lease");
    expect(told.warnAtMs - now).toBeCloseTo(6_000, -2);
  });

  test("that goes on starts what ended on the warning anew, and not before", () => {
    void handlers.onGrant(grant);
    handlers.started(1);
    gone(1, exited(0), true);
    expect(types()).toEqual(["start"]);
    handlers.onLease(lease);
    expect(toGuard.slice(1)).toMatchObject([
      { type: "lease" },
      { type: "start", child: 2, environment: { EVENKEEL_EPOCH: "12" } },
    ]);
    handlers.onLease(lease);
    expect(types()).toEqual(["start", "lease", "start", "lease"]);
  });

  test("that goes on starts nothing that was asked back meanwhile", () => {
    void handlers.onGrant(grant);
    handlers.started(1);
    gone(1, exited(0), true);
    abort.abort();
    expect(handlers.onRevoke(grant, { reason: "lapsed", stopMs: 0 })).toBeUndefined();
    handlers.onLease(lease);
    expect(types()).toEqual(["start", "lease"]);
  });
});

test("a lost guard releases what is waited for, and is told", async () => {
  const load = handlers.onGrant(grant);
  handlers.lost();
  expect(await settled(load)).toBe("the guard of the children was lost");
  expect(givenUp).toEqual(["lost"]);
});
