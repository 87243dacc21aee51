import { describe, test } from "vitest";
import { checkHistories } from "./histories.ts";

/** What fits into a run of all tests; many times that is for a night. */
const RUNS = Number(process.env["EVENKEEL_CHAOS_RUNS"] ?? 100);

describe("the core and the SDK together", () => {
  test("no partition may be served twice, epochs rise, and all comes to rest when all is well again", async () => {
    await checkHistories(RUNS);
  }, 3_600_000);
});
