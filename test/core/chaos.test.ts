import { describe, test } from "vitest";
import { checkHistories } from "./chaos.ts";

describe("whatever happens", () => {
  test("no partition is served twice, every invariant holds after every turn, and it converges when all is well again", () => {
    checkHistories(Number(process.env["EVENKEEL_CHAOS_RUNS"] ?? 150));
  }, 120_000);
});
