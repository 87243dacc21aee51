import { afterEach, beforeAll, describe, test } from "vitest";
import { build, endAll } from "../cli/processes.ts";
import { crashRepeatedly } from "./crash.ts";

const ROUNDS = 12;
/** Any seed will do; a fixed one makes a failure come again. */
const SEED = 20_260_101;

beforeAll(build, 120_000);
afterEach(endAll);

describe("a store whose process is killed", () => {
  test(`${ROUNDS} times at any of its calls: whatever was acknowledged is there, once, without a gap`, async () => {
    await crashRepeatedly(ROUNDS, SEED);
  });
});
