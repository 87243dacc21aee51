import { describe, expect, test } from "vitest";
import { SimExecutor } from "../core/sim-executor.ts";
import { World } from "../core/world.ts";

const TABLES = 5_000;
const EXECUTORS = 10;
/** Checking everything takes longer than a turn of the core. */
const TURNS_BETWEEN_CHECKS = 100;

class SampledWorld extends World {
  #turns = 0;

  override check(): void {
    if (this.#turns++ % TURNS_BETWEEN_CHECKS === 0) super.check();
  }
}

describe("movement, at length", () => {
  test(`L5: ${TABLES} tables of one partition, declared one by one, stay even after each, and nothing moves`, () => {
    const world = new SampledWorld();
    for (let i = 0; i < EXECUTORS; i++) new SimExecutor(world, `E${i}`).connect();
    world.table("t0", 1);
    world.advance(5_000);
    for (let i = 1; i < TABLES; i++) {
      world.table(`t${i}`, 1);
      const loads = world.state.ledger.holders.flatMap((holder) => (holder === undefined ? [] : [holder.ownedCount]));
      expect(loads.reduce((sum, load) => sum + load, 0)).toBe(i + 1);
      // Whoever has nothing yet is not among the holders.
      const least = loads.length < EXECUTORS ? 0 : Math.min(...loads);
      expect(Math.max(...loads) - least).toBeLessThanOrEqual(1);
    }
    expect(Object.values(world.loads())).toEqual(new Array(EXECUTORS).fill(TABLES / EXECUTORS));
    expect(world.moves()).toBe(0);
  });
});
