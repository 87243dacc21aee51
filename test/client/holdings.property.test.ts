import fc from "fast-check";
import { expect, it } from "vitest";
import { epochOf, type Handle, isOverdue } from "../../src/client/handle.ts";
import type { Steps } from "../../src/client/holdings.ts";
import type { Grant } from "../../src/model/grant.ts";
import { type Brief, MARGIN, push, Subject, T } from "./holdings-fixture.ts";

const PARTITIONS = 4;

type Step =
  | { readonly kind: "grant" | "regrant"; readonly partition: number }
  | { readonly kind: "revoke"; readonly partition: number; readonly stopMs: number }
  /** A push with base null; what is not kept is left out. */
  | { readonly kind: "whole"; readonly keep: readonly boolean[]; readonly listed: readonly boolean[] }
  | { readonly kind: "pass" | "sleep"; readonly ms: number }
  | { readonly kind: "load" | "fail" | "end"; readonly which: number }
  | { readonly kind: "cut" | "stop-everything" };

const partition = fc.nat(PARTITIONS - 1);
const flags = fc.array(fc.boolean(), { minLength: PARTITIONS, maxLength: PARTITIONS });
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constantFrom("grant", "regrant"), partition }), weight: 4 },
  { arbitrary: fc.record({ kind: fc.constant("revoke"), partition, stopMs: fc.nat(3_000) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant("whole"), keep: flags, listed: flags }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.nat(2_000) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant("sleep"), ms: fc.nat(900) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constantFrom("load", "fail", "end"), which: fc.nat(9) }), weight: 5 },
  { arbitrary: fc.record({ kind: fc.constantFrom("cut", "cut", "cut", "stop-everything") }), weight: 3 },
) as fc.Arbitrary<Step>;

interface Revoked {
  readonly epoch: number;
  until: number;
  readonly sleptAt: number;
}

/**
 * What may be served by the letter of the rules, kept in the plainest way: the last push's grants, and what was revoked
 * until its earliest limit.
 */
class Oracle {
  readonly subject = new Subject();
  readonly granted = new Map<number, number>();
  readonly revoked = new Map<number, Revoked[]>();
  readonly failed = new Set<number>();
  readonly running = new Set<Handle>();
  #revision = 10;

  run(step: Step): void {
    switch (step.kind) {
      case "grant":
      case "regrant":
        if (step.kind === "grant" && this.granted.has(step.partition)) return;
        return this.apply({ base: this.#revision, grant: [[`${step.partition}`, ++this.#revision]] });
      case "revoke":
        return this.apply({ base: this.#revision, revoke: this.revokes(step.partition, step.stopMs) });
      case "whole":
        return this.apply(this.whole(step));
      case "pass":
        this.subject.now += step.ms;
        return;
      case "sleep":
        this.subject.slept += step.ms;
        return;
      case "load":
      case "fail":
      case "end":
        return this.settle(step.kind, step.which);
      case "cut":
        return this.cut();
      case "stop-everything":
        this.granted.clear();
        this.revoked.clear();
        return this.follow(this.subject.holdings.stopEverything(this.subject.at));
      default:
        return step satisfies never;
    }
  }

  /** Everything awaited is listed, as the rules ask of every push; the one partition anew. */
  revokes(partition: number, stopMs: number): NonNullable<Brief["revoke"]> {
    const epoch = this.granted.get(partition) ?? ++this.#revision;
    return [[`${partition}`, epoch, stopMs]];
  }

  whole({ keep, listed }: Step & { readonly kind: "whole" }): Brief {
    const grant = [...this.granted].filter(([p]) => keep[p]).map(([p, epoch]) => [`${p}`, epoch] as const);
    const revoke = [...this.revoked]
      .filter(([p]) => listed[p])
      .flatMap(([p, list]) => list.map(({ epoch }) => [`${p}`, epoch, 5_000] as const));
    return { base: null, grant, revoke };
  }

  apply(brief: Brief): void {
    const { at } = this.subject;
    if (brief.base === null) {
      const kept = new Map((brief.grant ?? []).map(([set, epoch]) => [Number(set), epoch]));
      for (const p of [...this.granted.keys()]) if (!kept.has(p)) this.granted.delete(p);
      const listed = (brief.revoke ?? []).map(([set, epoch]) => `${set}@${epoch}`);
      for (const [p, list] of this.revoked)
        this.revoked.set(
          p,
          list.filter((one) => listed.includes(`${p}@${one.epoch}`)),
        );
    }
    for (const [set, epoch, stopMs = 0] of brief.revoke ?? []) {
      const p = Number(set);
      const list = this.revoked.get(p) ?? [];
      const held = this.granted.get(p);
      if (held !== undefined && held <= epoch) {
        this.granted.delete(p);
        list.push({ epoch: held, until: Number.POSITIVE_INFINITY, sleptAt: this.subject.slept });
      }
      for (const one of list) if (one.epoch <= epoch) one.until = Math.min(one.until, at.now + stopMs);
      this.revoked.set(p, list);
    }
    for (const [set, epoch] of brief.grant ?? []) {
      if (this.granted.get(Number(set)) !== epoch) this.failed.delete(Number(set));
      this.granted.set(Number(set), epoch);
    }
    this.follow(this.subject.holdings.apply(push(brief), at));
  }

  settle(kind: "load" | "fail" | "end", which: number): void {
    const handle = [...this.running][which];
    if (handle === undefined) return;
    const { holdings, at } = this.subject;
    if (kind === "load") return this.follow(holdings.loaded([handle], at));
    if (kind === "fail") {
      const isCurrent = handle.state === "loading" || handle.state === "loaded";
      if (isCurrent) this.failed.add(handle.partition);
      if (handle.state === "loading") this.running.delete(handle);
      return this.follow(holdings.fail(handle, { reason: "x", retryable: true }, at));
    }
    if (handle.state !== "stopping") return;
    this.running.delete(handle);
    this.follow(holdings.ended([handle], at));
  }

  follow(steps: Steps): void {
    for (const handle of steps.start) {
      const before = [...this.running].filter((one) => one.partition === handle.partition && !one.cut);
      expect(before, `${handle.partition} starts while an earlier handle runs`).toEqual([]);
      this.running.add(handle);
    }
    for (const { partitions, epoch } of steps.owed.released) {
      for (const p of partitions) {
        const served = this.subject.serves(p);
        expect(served === undefined || served > epoch, `${p}@${epoch} released, ${served} served`).toBe(true);
        const left = [...this.running].filter((one) => one.partition === p && epochOf(one) <= epoch && !one.cut);
        expect(left, `${p}@${epoch} released while a handle runs`).toEqual([]);
      }
    }
  }

  /** What is kept as running counts is what counting would give. */
  checkCounts(): void {
    const granted = [...this.granted.keys()].filter((p) => !this.failed.has(p));
    const ready = granted.filter((p) => this.subject.holdings.current(T, p)?.state === "loaded");
    expect(this.subject.holdings.counts()).toEqual({ owned: granted.length, ready: ready.length });
  }

  /** The next look at what is overdue never comes too late. */
  checkCuts(): void {
    for (const { limit, patienceEndsAt } of this.waited()) {
      const end = Math.min(limit?.deadlineMs ?? Infinity, patienceEndsAt ?? Infinity);
      expect(this.subject.holdings.nextCutAt()).toBeLessThanOrEqual(end);
    }
  }

  waited(): readonly Handle[] {
    return [...this.running].filter((one) => one.state === "stopping" && !one.cut);
  }

  /** Everything that is overdue by either clock is found. */
  cut(): void {
    const { holdings, at } = this.subject;
    const overdue = this.waited().filter((one) => isOverdue(one, at, MARGIN));
    const steps = holdings.cutOverdue(at, MARGIN);
    expect(steps.cut).toEqual(expect.arrayContaining(overdue));
    expect(steps.cut.length).toBe(overdue.length);
    this.follow(steps);
  }

  check(): void {
    this.checkCounts();
    this.checkCuts();
    for (let p = 0; p < PARTITIONS; p++) {
      const served = this.subject.serves(p);
      const granted = this.granted.get(p);
      if (granted !== undefined && !this.failed.has(p)) {
        expect(served, `${p} is granted`).toBe(granted);
      } else if (served !== undefined) {
        const right = (this.revoked.get(p) ?? []).some(
          (one) => one.epoch === served && this.subject.now < one.until && this.subject.slept - one.sleptAt <= MARGIN,
        );
        expect(right, `${p} is served as ${served}`).toBe(true);
      }
    }
  }
}

it("whatever pushes come, what is served is what the last push and the stop limits allow", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const oracle = new Oracle();
      for (const one of steps) {
        oracle.run(one);
        oracle.check();
      }
    }),
    { numRuns: 1_000 },
  );
});

it("nothing waits for ever: once every handler has ended, what is granted runs and what is asked back is released", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const oracle = new Oracle();
      for (const one of steps) oracle.run(one);
      const { holdings, at } = oracle.subject;
      const brief = oracle.whole({
        kind: "whole",
        keep: Array(PARTITIONS).fill(true),
        listed: Array(PARTITIONS).fill(true),
      });
      oracle.apply(brief);
      for (const handle of [...oracle.running]) if (handle.state === "stopping") holdings.ended([handle], at);
      for (const p of oracle.granted.keys()) {
        const handle = holdings.current(T, p);
        if (handle?.state === "loading") holdings.loaded([handle], at);
      }
      const pairs = (lists: readonly (readonly Grant[])[]) =>
        lists
          .flat()
          .flatMap(({ partitions, epoch }) => [...partitions].map((p) => `${p}@${epoch}`))
          .sort();
      const { ready, failed, released } = holdings.owed();
      expect(pairs([ready, failed])).toEqual([...oracle.granted].map(([p, epoch]) => `${p}@${epoch}`).sort());
      const asked = new Set((brief.revoke ?? []).map(([set, epoch]) => `${set}@${epoch}`));
      expect(pairs([released])).toEqual([...asked].sort());
    }),
    { numRuns: 500 },
  );
});
