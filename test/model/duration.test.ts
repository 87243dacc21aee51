import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatDuration, MAX_DURATION_MS, parseDuration } from "../../src/model/duration.ts";

describe("parseDuration", () => {
  test.each([
    ["250ms", 250],
    ["10s", 10_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["0", 0],
    ["0s", 0],
    ["1500", 1_500],
    [1_500, 1_500],
    [0, 0],
    [MAX_DURATION_MS, MAX_DURATION_MS],
    [`${MAX_DURATION_MS}ms`, MAX_DURATION_MS],
    ["24d", 2_073_600_000],
  ])("%j is %i ms", (value, ms) => {
    expect(parseDuration(value)).toBe(ms);
  });

  test.each([
    "",
    "s",
    "-1s",
    "+1s",
    "1.5s",
    "1 s",
    " 1s",
    "1s ",
    "1S",
    "1w",
    "1e3",
    "0x10",
    "1m30s",
    "25d",
    `${MAX_DURATION_MS + 1}`,
    "99999999999",
    MAX_DURATION_MS + 1,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    true,
    ["1s"],
  ])("%j is none", (value) => {
    expect(parseDuration(value)).toBeUndefined();
  });
});

describe("formatDuration", () => {
  test.each([
    [0, "0ms"],
    [250, "250ms"],
    [1_000, "1s"],
    [90_000, "90s"],
    [120_000, "2m"],
    [7_200_000, "2h"],
    [604_800_000, "7d"],
    [1_001, "1001ms"],
  ])("%i ms is written %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("what it writes reads as the same", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => parseDuration(formatDuration(ms)) === ms),
    );
  });
});
