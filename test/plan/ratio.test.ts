import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ceilOf, floorOf, share, toCommonScale } from "../../src/plan/ratio.ts";

describe("shares of whole numbers", () => {
  test("are exact next to whole numbers, where doubles are not", () => {
    // In doubles 4.35 · 100 is 434.99999999999994.
    const part = share(435n, 10_000n);
    expect([floorOf(part, 10_000), ceilOf(part, 10_000)]).toEqual([435, 435]);
    const third = share(1n, 3n);
    expect([floorOf(third, 999_999), ceilOf(third, 999_999)]).toEqual([333_333, 333_333]);
    expect([floorOf(third, 1_000_000), ceilOf(third, 1_000_000)]).toEqual([333_333, 333_334]);
    const justBelow = share(10n ** 30n - 1n, 10n ** 30n);
    expect([floorOf(justBelow, 7), ceilOf(justBelow, 7)]).toEqual([6, 7]);
    const justAbove = share(1n, 10n ** 40n);
    expect([floorOf(justAbove, 7), ceilOf(justAbove, 7)]).toEqual([0, 1]);
  });

  test("agree with whole number division", () => {
    const parts = fc.tuple(fc.bigInt(0n, 10n ** 20n), fc.bigInt(1n, 10n ** 20n), fc.nat(10_000_000));
    fc.assert(
      fc.property(parts, ([a, b, whole]) => {
        const [numerator, denominator] = a < b ? [a, b] : [b, a + 1n];
        const part = share(numerator, denominator);
        const product = numerator * BigInt(whole);
        const floor = Number(product / denominator);
        expect(floorOf(part, whole)).toBe(floor);
        expect(ceilOf(part, whole)).toBe(product % denominator === 0n ? floor : floor + 1);
      }),
    );
  });

  test("of numbers too long for a double", () => {
    const long = 10n ** 400n;
    expect([floorOf(share(long, 4n * long), 10), ceilOf(share(long, 4n * long), 10)]).toEqual([2, 3]);
    expect([floorOf(share(1n, long), 10), ceilOf(share(1n, long), 10)]).toEqual([0, 1]);
  });
});

describe("numbers on a common scale", () => {
  test.each([
    [
      [1, 2, 3],
      [1n, 2n, 3n],
    ],
    [
      [0.1, 0.2, 0.3],
      [1n, 2n, 3n],
    ],
    [
      [0.5, 1_000_000],
      [5n, 10_000_000n],
    ],
    [
      [1e-7, 1],
      [1n, 10_000_000n],
    ],
    [
      [1.5e-7, 1e21],
      [15n, 10n ** 29n],
    ],
  ])("%j", (numbers, scaled) => {
    expect(toCommonScale(numbers)).toEqual(scaled);
  });

  test("the smallest weight beside the largest", () => {
    expect(toCommonScale([5e-324, 1e6])).toEqual([5n, 10n ** 330n]);
  });
});
