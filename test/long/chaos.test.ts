import { describe, test } from "vitest";
import { checkHistories } from "../core/chaos.ts";

/** Many times what each run of the tests does; how many there are in the environment's variable, for a night of it. */
const RUNS = Number(process.env["EVENKEEL_CHAOS_RUNS"] ?? 5_000);

describe("whatever happens, at length", () => {
  test(`${RUNS} histories: no partition is served twice, every invariant holds, and each converges`, () => {
    checkHistories(RUNS);
  });
});
