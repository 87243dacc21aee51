import fc from "fast-check";
import { expect, it } from "vitest";
import type { FakeSession, GrantText } from "../../src/testing/fake-scheduler.ts";
import { Fixture } from "./connection-fixture.ts";

const PARTITIONS = 3;
const DURATION = 10_000;
const MARGIN = 1_000;

type Step =
  | { readonly kind: "pass" | "stall" | "sleep"; readonly ms: number }
  | { readonly kind: "answer" | "drop" | "late" }
  | {
      readonly kind: "push";
      readonly whole: boolean;
      readonly grants: readonly number[];
      readonly revokes: readonly number[];
    };

const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.nat(1_500) }), weight: 4 },
  { arbitrary: fc.record({ kind: fc.constant("stall"), ms: fc.nat(6_000) }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant("sleep"), ms: fc.nat(900) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constantFrom("answer", "answer", "answer", "drop", "late") }), weight: 6 },
  {
    arbitrary: fc.record({
      kind: fc.constant("push"),
      whole: fc.boolean(),
      grants: fc.uniqueArray(fc.nat(PARTITIONS - 1)),
      revokes: fc.uniqueArray(fc.nat(PARTITIONS - 1)),
    }),
    weight: 4,
  },
) as fc.Arbitrary<Step>;

/** A scheduler that answers what it is told to, and remembers what it may be held to: until when a lease may last at most. */
class World {
  readonly fixture = new Fixture();
  /** Per question answered: when it was asked, by both clocks. */
  readonly answered: { readonly now: number; readonly wall: number }[] = [];
  readonly asked = new Map<string, { readonly now: number; readonly wall: number }>();
  readonly granted = new Map<number, number>();
  #revision = 10;
  #welcomed = new Set<FakeSession>();
  #old: FakeSession | undefined;

  run(step: Step): void {
    const { clock } = this.fixture;
    switch (step.kind) {
      case "pass":
        for (let passed = 0; passed < step.ms; passed += 50) this.#advance(50);
        return;
      case "stall":
        return clock.stall(step.ms);
      case "sleep":
        return clock.jumpWall(step.ms);
      case "answer":
        return this.#answer();
      case "drop":
        this.#old = this.fixture.session;
        this.fixture.session.end(1006);
        return this.#advance(0);
      case "late":
        // An abandoned socket may say what it likes.
        this.#old?.push({ revision: 1, base: null, grant: [["trips", "0-2", 1]] });
        this.#old?.lease();
        return;
      case "push":
        return this.#push(step);
      default:
        return step satisfies never;
    }
  }

  check(): void {
    const now = this.fixture.clock.now();
    const wall = this.fixture.clock.wall();
    const alive = this.answered.some((sentAt) => now < sentAt.now + DURATION - MARGIN);
    const last = this.answered.reduce((a, b) => (b.now > a.now ? b : a), { now: -1, wall: 0 });
    const slept = wall - last.wall - (now - last.now);
    for (let p = 0; p < PARTITIONS; p++) {
      const owns = this.fixture.owns(p);
      if (owns === undefined) continue;
      expect(alive, "served without a lease").toBe(true);
      expect(slept, "served after a sleep beyond the margin").toBeLessThanOrEqual(MARGIN);
      expect(owns, "served under another epoch than granted").toBe(this.granted.get(p));
    }
    const open = this.fixture.scheduler.sessions.filter((session) => session.closed === undefined);
    expect(open.length, "more than one socket").toBeLessThanOrEqual(1);
  }

  #advance(ms: number): void {
    this.fixture.clock.advance(ms);
    this.#note();
  }

  /** Notes when each question was asked. A stall is no time at which anything is sent, so noting after each step is exact enough: never too early. */
  #note(): void {
    const { session, clock } = this.fixture;
    for (const [index, frame] of session.received.entries()) {
      const id = `${session.number}/${index}`;
      const isQuestion = frame.type === "hello" || frame.type === "renew";
      if (isQuestion && !this.asked.has(id)) this.asked.set(id, { now: clock.now(), wall: clock.wall() });
    }
  }

  #answer(): void {
    const { session } = this.fixture;
    if (session.closed !== undefined) return this.#advance(0);
    if (session.received.length === 0) session.open();
    this.#note();
    const at = session.received.findLastIndex((frame) => frame.type === "hello" || frame.type === "renew");
    const sentAt = this.asked.get(`${session.number}/${at}`);
    if (sentAt === undefined) return;
    if (!this.#welcomed.has(session)) {
      session.welcome({ resumed: session.hello.resume !== undefined });
      this.#welcomed.add(session);
      if (session.closed === undefined && session.hello.resume === undefined) this.granted.clear();
    } else session.lease();
    if (session.closed === undefined) this.answered.push(sentAt);
  }

  #push({ whole, grants, revokes }: Step & { readonly kind: "push" }): void {
    const { session } = this.fixture;
    if (!this.#welcomed.has(session) || session.closed !== undefined) return;
    const base = whole ? null : this.#revision;
    this.#revision++;
    const revoke = revokes.flatMap((p) => {
      const epoch = this.granted.get(p);
      return epoch === undefined ? [] : ([["trips", `${p}`, epoch, 0]] as const);
    });
    const next = new Map(this.granted);
    for (const p of revokes) next.delete(p);
    for (const p of grants) if (!next.has(p)) next.set(p, this.#revision);
    const grant: GrantText[] = [...next]
      .filter(([p, epoch]) => whole || epoch === this.#revision || grants.includes(p))
      .map(([p, epoch]) => ["trips", `${p}`, epoch]);
    session.push({ revision: this.#revision, base, grant, revoke });
    if (session.closed !== undefined) return;
    this.granted.clear();
    for (const [p, epoch] of next) this.granted.set(p, epoch);
  }
}

it("whatever a network does, nothing is served without a lease, and nothing that was not granted last", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const one of steps) {
        world.run(one);
        world.check();
      }
    }),
    { numRuns: 300 },
  );
});
