import { afterEach, beforeAll, describe, test } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { crashRepeatedly } from "../store/crash.ts";

const ROUNDS = Number(process.env["EVENKEEL_CRASH_ROUNDS"] ?? 200);
const LIMIT_MS = 2_000 * ROUNDS;
const SEED = Number(process.env["EVENKEEL_CRASH_SEED"] ?? 1);

beforeAll(build, 120_000);
afterEach(endAll);

describe("a store whose process is killed, at length", () => {
  test(
    `${ROUNDS} times at any of its calls: whatever was acknowledged is there, once, without a gap (seed ${SEED})`,
    async () => {
      await crashRepeatedly(ROUNDS, SEED);
    },
    LIMIT_MS,
  );
});
