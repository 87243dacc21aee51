import { describe, expect, it } from "vitest";
import { FakeClock } from "../../src/testing/fake-clock.ts";

describe("fake clock", () => {
  it("fires timers by due time, then by the order they were set, each at its own time", () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    clock.setTimer(20, () => fired.push(`late@${clock.now()}`));
    clock.setTimer(10, () => fired.push(`first@${clock.now()}`));
    clock.setTimer(10, () => fired.push(`second@${clock.now()}`));
    clock.advance(9);
    expect(fired).toEqual([]);
    clock.advance(11);
    expect(fired).toEqual(["first@10", "second@10", "late@20"]);
  });

  it("fires a timer that another timer set within the same advance, and none that was cancelled", () => {
    const clock = new FakeClock();
    const fired: number[] = [];
    const cancelled = clock.setTimer(5, () => fired.push(-1));
    clock.setTimer(3, () => {
      cancelled.cancel();
      clock.setTimer(4, () => fired.push(clock.now()));
    });
    clock.advance(10);
    expect(fired).toEqual([7]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("fires nothing while stalled, and late afterwards", () => {
    const clock = new FakeClock();
    const fired: number[] = [];
    clock.setTimer(5, () => fired.push(clock.now()));
    clock.stall(100);
    expect(fired).toEqual([]);
    clock.advance(0);
    expect(fired).toEqual([100]);
  });

  it("never goes back, however long a callback has stalled it", async () => {
    const clock = new FakeClock();
    clock.setTimer(5, () => clock.stall(100));
    clock.advance(10);
    expect(clock.now()).toBe(105);
    void Promise.resolve().then(() => clock.stall(50));
    await clock.advanceAsync(10);
    expect(clock.now()).toBe(155);
  });

  it("moves wall time with monotonic time, and alone when told to", () => {
    const clock = new FakeClock();
    const start = clock.wall();
    clock.advance(50);
    clock.jumpWall(1_000);
    clock.jumpWall(-300);
    expect(clock.now()).toBe(50);
    expect(clock.wall() - start).toBe(750);
  });

  it("refuses delays that Node would fire after 1 ms", () => {
    const clock = new FakeClock();
    for (const delay of [-1, Number.NaN, 2 ** 31]) expect(() => clock.setTimer(delay, () => {})).toThrow(RangeError);
    clock.setTimer(2 ** 31 - 1, () => {});
  });

  it("lets promises settle between timers when asked to", async () => {
    const clock = new FakeClock();
    const seen: string[] = [];
    clock.setTimer(1, () => void Promise.resolve().then(() => seen.push("promise")));
    clock.setTimer(2, () => seen.push("timer"));
    await clock.advanceAsync(2);
    expect(seen).toEqual(["promise", "timer"]);
  });
});
