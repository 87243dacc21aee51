import { expect, test } from "vitest";
import { RateLimit } from "../../src/gateway/rate-limit.ts";
import { MAX_MESSAGE_BURST, MAX_MESSAGES_PER_SECOND } from "../../src/protocol/limits.ts";

test("a burst that was not spent does not grow beyond its size", () => {
  const rate = new RateLimit(0);
  for (let n = 0; n < MAX_MESSAGE_BURST; n++) expect(rate.take(3_600_000)).toBe(true);
  expect(rate.take(3_600_000)).toBe(false);
  expect(rate.take(3_600_000 + 1_000 / MAX_MESSAGES_PER_SECOND)).toBe(true);
  expect(rate.take(3_600_000 + 1_000 / MAX_MESSAGES_PER_SECOND)).toBe(false);
});
