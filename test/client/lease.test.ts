import { describe, expect, it } from "vitest";
import { extendLease, hasLapsed, hasPassed, type Reading, tightenLimit } from "../../src/client/lease.ts";

const at = (now: number, sleptMs = 0): Reading => ({ now, wall: 1_000_000 + now + sleptMs });
const MARGIN = 1_000;

describe("lease", () => {
  it("lapses the margin before its deadline, to the millisecond", () => {
    const lease = extendLease(undefined, at(100), 10_000, MARGIN);
    expect(hasLapsed(lease, at(9_099))).toBe(false);
    expect(hasLapsed(lease, at(9_100))).toBe(true);
  });

  it("counts from when the question was sent, and is never shortened by a later answer", () => {
    const long = extendLease(undefined, at(0), 60_000, MARGIN);
    const lease = extendLease(long, at(5_000), 15_000, MARGIN);
    expect(lease.deadlineMs).toBe(60_000);
    expect(hasLapsed(lease, at(58_999))).toBe(false);
  });

  it("P18: lapses when wall time ran more than the margin ahead of monotonic time", () => {
    const lease = extendLease(undefined, at(0), 10_000, MARGIN);
    expect(hasLapsed(lease, at(1, MARGIN))).toBe(false);
    expect(hasLapsed(lease, at(1, MARGIN + 1))).toBe(true);
    expect(hasLapsed(lease, at(1, 3_600_000))).toBe(true);
  });

  it("P25: short suspends between two answers add up, since wall time is compared with that at sentAt", () => {
    const lease = extendLease(undefined, at(0), 10_000, MARGIN);
    expect(hasLapsed(lease, at(500, 900))).toBe(false);
    expect(hasLapsed(lease, at(1_000, 1_800))).toBe(true);
    // An answer to what was sent after the first suspend starts a new sum.
    const renewed = extendLease(lease, at(600, 900), 10_000, MARGIN);
    expect(hasLapsed(renewed, at(1_000, 1_800))).toBe(false);
  });

  it("P25: an answer that does not move the deadline leaves the sum as it was", () => {
    const lease = extendLease(undefined, at(0), 60_000, MARGIN);
    const same = extendLease(lease, at(5_000, 900), 15_000, MARGIN);
    expect(hasLapsed(same, at(6_000, 1_800))).toBe(true);
  });

  it("S3: a wall clock set back proves nothing", () => {
    const lease = extendLease(undefined, at(0), 10_000, MARGIN);
    expect(hasLapsed(lease, at(5_000, -3_600_000))).toBe(false);
  });
});

describe("stop limit", () => {
  it("P21: a repeat brings it nearer, never further away", () => {
    const first = tightenLimit(undefined, at(0), 5_000);
    const repeated = tightenLimit(first, at(3_000), 5_000);
    expect(hasPassed(repeated, at(4_999), MARGIN)).toBe(false);
    expect(hasPassed(repeated, at(5_000), MARGIN)).toBe(true);
    expect(tightenLimit(first, at(1_000), 500).deadlineMs).toBe(1_500);
  });

  it("P25: is over when the machine slept more than the margin since the first push that named it", () => {
    const limit = tightenLimit(tightenLimit(undefined, at(0), 5_000), at(1_000, 900), 5_000);
    expect(hasPassed(limit, at(1_500, MARGIN), MARGIN)).toBe(false);
    expect(hasPassed(limit, at(1_500, MARGIN + 1), MARGIN)).toBe(true);
  });

  it("a sleep within the margin counts: the scheduler waits for the limit, and need not wait for a margin of the client", () => {
    const limit = tightenLimit(undefined, at(0), 5_000);
    expect(hasPassed(limit, at(4_199, 800), MARGIN)).toBe(false);
    expect(hasPassed(limit, at(4_200, 800), MARGIN)).toBe(true);
    const repeated = tightenLimit(limit, at(1_000, 800), 2_000);
    expect(hasPassed(repeated, at(2_199, 800), MARGIN)).toBe(false);
    expect(hasPassed(repeated, at(2_200, 800), MARGIN)).toBe(true);
  });
});
