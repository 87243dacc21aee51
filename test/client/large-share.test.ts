import { afterEach, describe, expect, it, vi } from "vitest";
import { PartitionStoppedError } from "../../src/client/errors.ts";
import type { PartitionGrant } from "../../src/client/handler-runner.ts";
import { SLICE_MS } from "../../src/client/slices.ts";
import { ExecutorFixture } from "./executor-fixture.ts";

/** Each handler call takes this long, so two begin in a slice. */
const CALL_MS = 5;
const PER_SLICE = SLICE_MS / CALL_MS;
const COUNT = 1_000;

/** An executor whose handlers are done at once but keep the loop busy meanwhile, granted `trips 0-999` at revision 5. */
class LargeShare extends ExecutorFixture {
  readonly grants: PartitionGrant[] = [];
  readonly revoked: number[] = [];
  /** Most handler calls in one turn of a timer. */
  mostCalls = 0;

  constructor() {
    super();
    const setTimer = this.clock.setTimer.bind(this.clock);
    this.clock.setTimer = (delayMs, callback) =>
      setTimer(delayMs, () => {
        const before = this.calls;
        callback();
        this.mostCalls = Math.max(this.mostCalls, this.calls - before);
      });
    this.handlers.onGrant = (grant) => {
      this.grants.push(grant);
      this.clock.stall(CALL_MS);
    };
    this.handlers.onRevoke = ({ partition }) => {
      this.revoked.push(partition);
      this.clock.stall(CALL_MS);
    };
    this.session.begin();
    this.session.push({ revision: 5, base: null, grant: [["trips", `0-${COUNT - 1}`]] });
  }

  get calls(): number {
    return this.grants.length + this.revoked.length;
  }

  /** Lets the next timer have its turn, which may be a slice, and answers the renew that may have gone out. */
  async turn(): Promise<void> {
    const { nextDue = 0 } = this.clock;
    await this.clock.advanceAsync(Math.max(0, nextDue - this.clock.now()));
    this.answer();
  }

  /** Turns until `isDone`; at most as many as could ever be needed. */
  async turnUntil(isDone: () => boolean, each: () => void = () => {}): Promise<void> {
    for (let turns = 0; !isDone(); turns++) {
      if (turns > 2 * COUNT) throw new Error(`not done: ${this.grants.length} granted, ${this.revoked.length} revoked`);
      await this.turn();
      each();
    }
  }

  answer(): void {
    const renews = this.session.received.filter((frame) => frame.type === "renew").length;
    if (renews > 0 && this.session.closed === undefined) this.session.lease(renews);
  }

  /** Partitions of this list over all reports so far, in the text of their sets. */
  reported(list: "ready" | "released"): readonly number[] {
    const reports = this.session.received.flatMap((frame) => (frame.type === "report" ? frame[list] : []));
    return reports.flatMap(({ partitions }) => [...partitions]).sort((a, b) => a - b);
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("a large share", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is acked before any handler runs, and served from then on", () => {
    const fixture = new LargeShare();
    expect(fixture.session.takeTypes()).toEqual(["hello", "ack"]);
    expect(fixture.calls).toBe(0);
    expect(fixture.executor.owns("trips", COUNT - 1)).toBe(5);
    expect(fixture.executor.status()).toMatchObject({ owned: COUNT, ready: 0 });
  });

  it("is loaded in slices, between which the lease is renewed and questions are answered", async () => {
    const fixture = new LargeShare();
    await fixture.settle();
    expect(fixture.calls).toBe(PER_SLICE);
    await fixture.turnUntil(
      () => fixture.executor.status().ready === COUNT,
      () => expect(fixture.executor.owns("trips", COUNT - 1)).toBe(5),
    );
    await fixture.report();
    expect(fixture.mostCalls).toBe(PER_SLICE);
    expect(fixture.session.received.filter((frame) => frame.type === "renew").length).toBeGreaterThan(3);
    expect(fixture.scheduler.sessions.length).toBe(1);
    expect(fixture.grants.map(({ partition }) => partition)).toEqual(upTo(COUNT));
    expect(fixture.reported("ready")).toEqual(upTo(COUNT));
    expect(fixture.executor.status()).toMatchObject({ owned: COUNT, ready: COUNT });
  });

  it("tells what is ready while the rest still loads", async () => {
    const fixture = new LargeShare();
    await fixture.turnUntil(() => fixture.reported("ready").length > 0);
    expect(fixture.calls).toBeLessThan(COUNT / 2);
  });

  it("that is asked back meanwhile is released, what had not begun without having been started", async () => {
    const fixture = new LargeShare();
    await fixture.turnUntil(() => fixture.calls >= 100);
    const begun = fixture.calls;
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", `0-${COUNT - 2}`, 5, 60_000]] });
    await fixture.turnUntil(() => fixture.reported("released").length === COUNT - 1);
    expect(fixture.revoked).toEqual(upTo(begun));
    await fixture.turnUntil(() => fixture.grants.length > begun);
    expect(fixture.grants.slice(begun).map(({ partition }) => partition)).toEqual([COUNT - 1]);
  });

  it("that is still loading makes no revoke wait for the rest of it", async () => {
    const fixture = new LargeShare();
    await fixture.turnUntil(() => fixture.calls >= 100);
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "7", 5, 60_000]] });
    const begun = fixture.grants.length;
    await fixture.turnUntil(() => fixture.calls > begun);
    expect(fixture.revoked).toEqual([7]);
    expect(fixture.grants.length - begun).toBeLessThan(PER_SLICE);
  });

  it("is not served from the lapse on, and given up in slices without starting the rest", async () => {
    const fixture = new LargeShare();
    const abortedAt: number[] = [];
    fixture.handlers.onGrant = (grant) => {
      fixture.grants.push(grant);
      grant.signal.addEventListener("abort", () => {
        abortedAt.push(fixture.clock.now());
        fixture.clock.stall(CALL_MS);
      });
      fixture.clock.stall(CALL_MS);
    };
    await fixture.turnUntil(() => fixture.calls >= 100);
    const begun = fixture.calls;
    fixture.clock.stall(60_000);
    const from = fixture.clock.now();
    expect(fixture.executor.owns("trips", 0)).toBeUndefined();
    expect(abortedAt.length).toBe(PER_SLICE);
    expect(fixture.grants.filter(({ signal }) => signal.aborted).length).toBe(PER_SLICE);
    let isClosed = false;
    const closing = fixture.executor.close().then(() => {
      isClosed = true;
    });
    await fixture.turnUntil(() => fixture.revoked.length > 0);
    expect(abortedAt.length).toBe(begun);
    expect(abortedAt.slice(0, 3)).toEqual([from, from + CALL_MS, from + 2 * CALL_MS]);
    await fixture.turnUntil(() => isClosed);
    await closing;
    expect(fixture.revoked).toEqual(upTo(begun));
    expect(fixture.grants.length).toBe(begun);
    expect(fixture.clock.now() - from).toBeLessThan(3 * begun * CALL_MS);
  });

  it("makes no abort controller for whoever asks for no signal", async () => {
    let made = 0;
    class Counted extends AbortController {
      constructor() {
        super();
        made++;
      }
    }
    vi.stubGlobal("AbortController", Counted);
    const fixture = new LargeShare();
    await fixture.turnUntil(() => fixture.grants.length >= 10 * PER_SLICE);
    fixture.session.push({ revision: 6, base: 5, revoke: [["trips", "0-3", 5, 60_000]] });
    await fixture.turnUntil(() => fixture.reported("released").length === 4);
    expect(made).toBe(0);
    const [first, , , , fifth] = fixture.grants;
    expect(first?.signal.aborted).toBe(true);
    expect(first?.signal.reason).toBeInstanceOf(PartitionStoppedError);
    expect(fifth?.signal.aborted).toBe(false);
    expect(fifth?.signal).toBe(fifth?.signal);
    expect(made).toBe(2);
  });
});
