import fc from "fast-check";
import { expect } from "vitest";
import { SimExecutor } from "./sim-executor.ts";
import { World } from "./world.ts";

/** What may happen to a fleet. Numbers pick among what is there. */
type Op =
  | { readonly op: "arrive"; readonly releaseMs: number; readonly ackMs: number; readonly capacity: number | undefined }
  | { readonly op: "kill" | "drop" | "return" | "freeze" | "thaw" | "replace" | "fail"; readonly pick: number }
  | { readonly op: "leave"; readonly pick: number; readonly mode: "move" | "restart" }
  | { readonly op: "table"; readonly pick: number; readonly count: number }
  | { readonly op: "delete"; readonly pick: number }
  | { readonly op: "store"; readonly mode: "ok" | "fail"; readonly commitMs: number }
  | { readonly op: "restart"; readonly downMs: number; readonly landed: boolean }
  | { readonly op: "wait"; readonly ms: number };

const pick = fc.nat(20);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant("arrive" as const),
      releaseMs: fc.constantFrom(0, 0, 500, 20_000, 60_000),
      ackMs: fc.constantFrom(0, 0, 300, 12_000),
      capacity: fc.constantFrom(undefined, undefined, 3, 0),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ op: fc.constantFrom("kill", "drop", "return", "freeze", "thaw", "replace", "fail"), pick }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant("leave" as const), pick, mode: fc.constantFrom("move", "restart") }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant("table" as const),
      pick: fc.nat(3),
      count: fc.integer({ min: 1, max: 12 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("delete" as const), pick: fc.nat(3) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("store" as const),
      mode: fc.constantFrom("ok", "fail"),
      commitMs: fc.constantFrom(0, 700, 4_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("restart" as const),
      downMs: fc.constantFrom(0, 100, 3_000, 15_000),
      landed: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant("wait" as const),
      ms: fc.constantFrom(10, 300, 1_500, 6_000, 15_000, 40_000),
    }),
  },
);

class Chaos {
  readonly world = new World({ settings: { loss: { waitMs: 10_000, returnMs: 30_000 } } });
  #born = 0;

  apply(step: Op): void {
    const { world } = this;
    switch (step.op) {
      case "arrive": {
        const { releaseMs, ackMs, capacity } = step;
        this.#start(`E${this.#born++ % 6}`, { releaseMs, ackMs, ...(capacity === undefined ? {} : { capacity }) });
        return;
      }
      case "table":
        world.table(`t${step.pick}`, step.count);
        return;
      case "delete":
        world.deleteTable(`t${step.pick}`);
        return;
      case "store":
        world.store = step.mode;
        world.commitMs = step.commitMs;
        return;
      case "restart":
        if (!world.down) world.restart(step.downMs, { landed: step.landed });
        return;
      case "wait":
        world.advance(step.ms);
        return;
      default:
        return this.#disturb(step);
    }
  }

  /** Everything works again; whoever lives comes back. */
  heal(): void {
    const { world } = this;
    world.store = "ok";
    world.commitMs = 0;
    for (const executor of world.executors) {
      Object.assign(executor.options, { ackMs: 0, releaseMs: 0, reconnectMs: 500 });
      executor.frozen = false;
    }
    world.advance(1_000);
    for (const executor of this.#living()) if (executor.session === undefined && !executor.finished) executor.connect();
    world.advance(400_000);
  }

  #disturb(step: Exclude<Op, { op: "arrive" | "table" | "delete" | "store" | "restart" | "wait" }>): void {
    const living = this.#living();
    const executor = living[step.pick % Math.max(1, living.length)];
    if (executor === undefined) return;
    const [key = ""] = executor.held.keys();
    if (step.op === "kill") executor.kill();
    else if (step.op === "drop") executor.drop(step.pick * 100);
    else if (step.op === "return" && !executor.frozen) executor.connect({ resume: step.pick % 2 === 0 });
    else if (step.op === "freeze") executor.frozen = true;
    else if (step.op === "thaw") executor.frozen = false;
    else if (step.op === "replace") this.#start(executor.id, {});
    else if (step.op === "fail" && key !== "") executor.fail(key.split("/")[0] ?? "", key.split("/")[1] ?? "");
    else if (step.op === "leave" && executor.session !== undefined) executor.leave(step.mode);
  }

  #start(id: string, options: ConstructorParameters<typeof SimExecutor>[2]): void {
    const number = ++this.#born;
    new SimExecutor(this.world, `${id}#${number}`, {
      ...options,
      instance: `${id}-${number}`,
      reconnectMs: 500,
    }).connect();
  }

  #living(): SimExecutor[] {
    return this.world.executors.filter((executor) => !executor.dead && !executor.replaced);
  }
}

/**
 * Runs random histories of a fleet. No partition may be served twice, every invariant holds after every turn, and once all
 * is well again nothing is waited for. EVENKEEL_SEED repeats a run.
 */
export function checkHistories(runs: number): void {
  fc.assert(
    fc.property(fc.array(op, { minLength: 5, maxLength: 40 }), (steps) => {
      const chaos = new Chaos();
      chaos.world.table("t0", 10);
      for (const step of steps) chaos.apply(step);
      chaos.heal();
      const { status } = chaos.world;
      const waiting = status.waitingFor.filter((reason) => reason !== "no executor is connected");
      if (status.executors.some((executor) => executor.connected && executor.state === "live"))
        expect(waiting).toEqual([]);
    }),
    {
      numRuns: runs,
      ...(process.env["EVENKEEL_SEED"] === undefined ? {} : { seed: Number(process.env["EVENKEEL_SEED"]) }),
    },
  );
}
