import { describe, expect, test } from "vitest";
import { sessionId } from "../../src/model/ids.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { append, FLOOR, lease, Rig, renew } from "./scripted-core.ts";

describe("turns", () => {
  test("a burst of events is one turn, in the order they came, at the time after them", async () => {
    const rig = new Rig();
    await rig.start();
    for (const n of [1, 2, 3]) rig.driver.post(renew(n));
    rig.clock.stall(5);
    rig.driver.post(renew(4));
    expect(rig.turns).toEqual([]);
    await settle();
    expect(rig.turns).toEqual([{ events: [renew(1), renew(2), renew(3), renew(4)], now: 5 }]);
  });

  test("what is posted within a turn comes in the next one", async () => {
    const rig = new Rig();
    await rig.start();
    rig.script = ({ events }) => {
      if (events.length === 2) rig.driver.post(renew(3));
      return {};
    };
    rig.driver.post(renew(1));
    rig.driver.post(renew(2));
    await settle();
    await settle();
    expect(rig.turns.map(({ events }) => events)).toEqual([[renew(1), renew(2)], [renew(3)]]);
  });

  test("effects are carried out in their order, logs among them", async () => {
    const rig = new Rig();
    await rig.start();
    const close = { type: "session.close", session: sessionId("s1"), code: 1000, reason: "bye" } as const;
    rig.script = () => ({
      effects: [lease(1), { type: "log", level: "warn", event: "push.overdue", fields: { n: 1 } }, lease(2), close],
    });
    rig.driver.post(renew(1));
    await settle();
    expect(rig.sent).toEqual([lease(1), lease(2), close]);
    expect(rig.logged.at(-1)).toEqual({ level: "warn", event: "push.overdue", fields: { n: 1 } });
  });

  test("a start gives the core what the store has, and turns once by itself", async () => {
    const rig = new Rig();
    rig.store.loaded = { checkpoint: { revision: 7, state: { at: 7 } }, changes: [], floor: FLOOR, maxLeaseMs: 0 };
    rig.clock.advance(42);
    await rig.driver.start();
    await settle();
    expect(rig.started).toMatchObject({ incarnation: "inc", term: 1, checkpoint: { at: 7 }, changes: [], now: 42 });
    expect(rig.turns).toHaveLength(1);
    expect(rig.logged[0]).toMatchObject({ event: "leader.elected", fields: { term: 1, incarnation: "inc" } });
  });

  test("a start that fails gives the store up again", async () => {
    const rig = new Rig();
    rig.store.load = async () => {
      throw new Error("inner damage at revision 7");
    };
    await expect(rig.driver.start()).rejects.toThrow("inner damage");
    expect(rig.store.released).toBe(1);
    expect(rig.driver.ready()).toBe(false);
    await rig.driver.stop();
  });

  test("events that come before the start wait for it", async () => {
    const rig = new Rig();
    rig.driver.post(renew(1));
    await settle();
    expect(rig.turns).toEqual([]);
    expect(rig.driver.ready()).toBe(false);
    await rig.driver.start();
    await settle();
    expect(rig.seen).toEqual([["renew.received"]]);
    expect(rig.driver.ready()).toBe(true);
  });
});

describe("the wake-up", () => {
  test("an idle core is turned when it asked for that, and not before", async () => {
    const rig = new Rig();
    let wakeAt = 700;
    rig.script = () => ({ wakeAt });
    await rig.start();
    await rig.clock.advanceAsync(699);
    expect(rig.turns).toEqual([]);
    wakeAt = Number.POSITIVE_INFINITY;
    await rig.clock.advanceAsync(1);
    expect(rig.turns).toEqual([{ events: [], now: 700 }]);
    await rig.clock.advanceAsync(100_000);
    expect(rig.turns).toHaveLength(1);
  });

  test("a time that comes nearer is kept", async () => {
    const rig = new Rig();
    let wakeAt = 60_000;
    rig.script = () => ({ wakeAt });
    await rig.start();
    wakeAt = 300;
    rig.driver.post(renew(1));
    await settle();
    rig.turns.length = 0;
    wakeAt = Number.POSITIVE_INFINITY;
    await rig.clock.advanceAsync(300);
    expect(rig.turns).toEqual([{ events: [], now: 300 }]);
  });

  test("a time in the past, or further than a timer reaches, is no spin and no loss", async () => {
    const rig = new Rig();
    let wakeAt = 5;
    rig.script = () => ({ wakeAt });
    await rig.start();
    rig.clock.stall(50);
    wakeAt = 10;
    rig.driver.post(renew(1));
    await settle();
    wakeAt = 3_000_000_000;
    await rig.clock.advanceAsync(1);
    expect(rig.turns.at(-1)).toEqual({ events: [], now: 50 });
    expect(rig.clock.nextDue).toBeLessThanOrEqual(2_147_483_647);
  });

  test("frames without a pause do not keep it off: each of their turns has the time", async () => {
    const rig = new Rig();
    const due: number[] = [];
    rig.script = ({ now }) => {
      if (now >= 100) due.push(now);
      return { wakeAt: due.length > 0 ? Number.POSITIVE_INFINITY : 100 };
    };
    await rig.start();
    // The loop is so busy that no timer of it ever fires.
    for (let n = 1; n <= 150; n++) {
      rig.clock.stall(1);
      rig.driver.post(renew(n));
      await settle();
    }
    expect(due[0]).toBe(100);
  });

  test("a time that moves on with every event leaves one timer, not one for each", async () => {
    const rig = new Rig();
    await rig.start();
    const idle = rig.clock.pendingTimers;
    rig.script = ({ now }) => ({ wakeAt: now + 8_000 });
    for (let n = 1; n <= 50; n++) {
      rig.driver.post(renew(n));
      await rig.clock.advanceAsync(10);
    }
    expect(rig.clock.pendingTimers).toBe(idle + 1);
  });
});

describe("the wall clock", () => {
  test.each([3_600_000, -3_600_000])(
    "S3: set by %i ms, it moves no turn, no stall and no wake-up; only `at` shows it",
    async (jumpMs) => {
      const rig = new Rig();
      rig.script = ({ now }) => (now === 0 ? { wakeAt: 5_000 } : { effects: now === 5_000 ? [append(FLOOR + 1)] : [] });
      await rig.driver.start();
      await settle();
      rig.clock.jumpWall(jumpMs);
      rig.clock.advance(4_999);
      await settle();
      expect(rig.turns).toHaveLength(1);
      rig.clock.advance(1);
      await settle();
      expect(rig.turns.slice(0, 2).map(({ events, now }) => [events.length, now])).toEqual([
        [0, 0],
        [0, 5_000],
      ]);
      expect(rig.store.appended.map(({ at }) => at)).toEqual([rig.clock.wall()]);
    },
  );
});

describe("a loop that stood still", () => {
  test("for longer than a renew period: said first in the turn, before what waited", async () => {
    const rig = new Rig();
    await rig.start();
    rig.driver.post(renew(1));
    rig.clock.stall(4_001);
    await settle();
    await settle();
    expect(rig.turns).toEqual([{ events: [{ type: "loop.stalled", stalledMs: 4_001 }, renew(1)], now: 4_001 }]);
  });

  test("not for longer: nothing is said", async () => {
    const rig = new Rig();
    await rig.start();
    rig.driver.post(renew(1));
    rig.clock.stall(4_000);
    await settle();
    await settle();
    expect(rig.seen).toEqual([["renew.received"]]);
  });

  test("with nobody speaking: a turn of its own says so, before the core's timer counts", async () => {
    const rig = new Rig();
    rig.script = ({ now }) => ({ wakeAt: now < 9_000 ? 9_000 : Number.POSITIVE_INFINITY });
    await rig.start();
    await rig.clock.advanceAsync(1_500);
    rig.clock.stall(20_000);
    await rig.clock.advanceAsync(0);
    const [first] = rig.turns;
    expect(first?.events[0]).toMatchObject({ type: "loop.stalled" });
    const [event] = first?.events ?? [];
    const stalledMs = event?.type === "loop.stalled" ? event.stalledMs : 0;
    expect(stalledMs).toBeGreaterThanOrEqual(20_000);
    expect(stalledMs).toBeLessThanOrEqual(21_000);
  });

  test("an idle hour is no stall", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.clock.advanceAsync(3_600_000);
    expect(rig.turns).toEqual([]);
  });

  test("is said once", async () => {
    const rig = new Rig();
    await rig.start();
    rig.clock.stall(10_000);
    await rig.clock.advanceAsync(2_000);
    rig.driver.post(renew(1));
    await settle();
    expect(rig.seen).toEqual([["loop.stalled"], ["renew.received"]]);
  });
});

describe("a core that throws", () => {
  test("is turned no more; the reason is logged and handed out, and the store is given up", async () => {
    const rig = new Rig();
    await rig.start();
    rig.script = () => {
      throw new Error("two owners of trips/3");
    };
    const answer = rig.driver.putTable(rig.driver.tables()[0] as never, "api");
    await expect(answer).rejects.toMatchObject({ code: "not-ready" });
    expect((await rig.driver.failed).message).toContain("two owners of trips/3");
    expect(rig.logged.at(-1)).toMatchObject({
      level: "error",
      event: "core.failed",
      fields: { error: "two owners of trips/3" },
    });
    expect(rig.driver.ready()).toBe(false);
    expect(rig.store.released).toBe(1);
    rig.driver.post(renew(1));
    await rig.clock.advanceAsync(60_000);
    expect(rig.turns).toHaveLength(1);
    expect(rig.clock.pendingTimers).toBe(0);
    expect(() => rig.driver.status()).toThrow("two owners");
    await rig.driver.stop();
  });
});
