import fc from "fast-check";
import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";
import type { Climate } from "./world.ts";

/** Waits so short that each of them matters within a short history: lease 3 s, renewed every 900 ms. */
const SHORT: Settings = {
  ...DEFAULT_SETTINGS,
  lease: { durationMs: 3_000, renewMs: 900, clientMarginMs: 300, serverMarginMs: 300, driftRate: 0.01 },
  formation: { quietMs: 400, maxMs: 1_000 },
  join: { quietMs: 100, maxMs: 600 },
  loss: { waitMs: 1_800, returnMs: 5_000 },
  moves: { perExecutor: 64, total: 10_000 },
  delivery: { ackTimeoutMs: 1_500 },
  drain: { deadlineMs: 5_000 },
  rejection: { backoffMs: 400, maxBackoffMs: 4_000 },
  executors: { forgetMs: 8_000 },
};

/** The defaults, but for the waits that are minutes or hours long. */
const LONG: Settings = {
  ...DEFAULT_SETTINGS,
  loss: { waitMs: 10_000, returnMs: 20_000 },
  drain: { deadlineMs: 20_000 },
  rejection: { backoffMs: 1_000, maxBackoffMs: 10_000 },
  executors: { forgetMs: 30_000 },
};

const base = fc.oneof({ weight: 4, arbitrary: fc.constant(SHORT) }, { weight: 1, arbitrary: fc.constant(LONG) });

/** Settings of all kinds that the configuration takes. */
const settings: fc.Arbitrary<Settings> = fc
  .record({
    base,
    serverMarginMs: fc.constantFrom(300, 0, 0, 1_000),
    driftRate: fc.constantFrom(0.01, 0.01, 0, 0.1),
    waitMs: fc.constantFrom(undefined, 0, 12_000),
    perExecutor: fc.constantFrom(64, 64, 1),
    returnMs: fc.constantFrom(undefined, 300),
  })
  .map(({ base, serverMarginMs, driftRate, waitMs, perExecutor, returnMs }) => ({
    ...base,
    lease: { ...base.lease, serverMarginMs, driftRate },
    loss: { waitMs: waitMs ?? base.loss.waitMs, returnMs: returnMs ?? base.loss.returnMs },
    moves: { ...base.moves, perExecutor },
  }));

export const climate: fc.Arbitrary<Climate> = fc.record({
  seed: fc.nat(),
  settings,
  drift: fc.constantFrom(0, 1, -1),
  tinyPages: fc.boolean(),
  latencyMs: fc.constantFrom(2, 20, 200),
});
