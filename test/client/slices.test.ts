import { describe, expect, it } from "vitest";
import { SLICE_MS, Slices } from "../../src/client/slices.ts";
import { FakeClock, settle } from "../../src/testing/fake-clock.ts";

/** Work whose every item takes `itemMs`. Each line of `slices` has what was done in one go. */
class Workshop {
  readonly clock = new FakeClock();
  readonly slices: string[] = [];
  idle = 0;
  itemMs = 3;
  readonly subject = new Slices(this.clock, () => {
    this.idle++;
  });
  #done: string[] = [];

  readonly work = (item: string): void => {
    this.#done.push(item);
    this.clock.stall(this.itemMs);
  };

  async run(): Promise<readonly string[]> {
    do {
      await settle();
      this.pause();
      this.clock.advance(0);
      this.pause();
    } while (this.clock.pendingTimers > 0);
    return this.slices;
  }

  pause(): void {
    if (this.#done.length > 0) this.slices.push(this.#done.splice(0).join(" "));
  }
}

describe("slices", () => {
  it("begin no item after their time, and go on in a turn of their own", async () => {
    const shop = new Workshop();
    shop.subject.add("load", [..."abcdefghij"], shop.work);
    expect(shop.slices).toEqual([]);
    expect(await shop.run()).toEqual(["a b c d", "e f g h", "i j"]);
    expect(4 * shop.itemMs).toBeGreaterThan(SLICE_MS);
    expect(shop.idle).toBe(1);
    expect(shop.subject.isIdle).toBe(true);
  });

  it("have at least one item, however long it takes", async () => {
    const shop = new Workshop();
    shop.itemMs = SLICE_MS + 1;
    shop.subject.add("load", [..."abc"], shop.work);
    expect(await shop.run()).toEqual(["a", "b", "c"]);
  });

  it("take what is more urgent first, and what came first before the rest", async () => {
    const shop = new Workshop();
    shop.itemMs = 0;
    shop.subject.add("load", [], shop.work);
    shop.subject.add("load", ["load 1"], shop.work);
    shop.subject.add("unload", ["unload 1", "unload 2"], shop.work);
    shop.subject.add("load", ["load 2"], (item) => {
      shop.work(item);
      shop.subject.add("unload", ["late"], shop.work);
      shop.subject.add("abort", ["later"], shop.work);
    });
    shop.subject.add("load", ["load 3"], shop.work);
    shop.subject.add("abort", ["abort 1"], shop.work);
    expect(await shop.run()).toEqual(["abort 1 unload 1 unload 2 load 1 load 2 later late load 3"]);
  });

  it("that begin at once leave what is over for the next, before all else", async () => {
    const shop = new Workshop();
    shop.subject.add("unload", ["x"], shop.work);
    shop.subject.begin([..."abcdef"], shop.work);
    shop.pause();
    expect(await shop.run()).toEqual(["a b c d", "e f x"]);
  });

  it("begin anew when something comes after the last", async () => {
    const shop = new Workshop();
    shop.subject.add("load", ["a"], shop.work);
    await shop.run();
    shop.subject.add("load", ["b"], shop.work);
    expect(await shop.run()).toEqual(["a", "b"]);
    expect(shop.idle).toBe(2);
  });
});
