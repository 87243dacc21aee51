/**
 * Shares as exact ratios. A quota that is a whole number must not become 3.9999999 on the way: the bounds of cells and of
 * totals would no longer fit together, and a plan within them might not exist.
 */
export interface Share {
  readonly numerator: bigint;
  /** Above 0. */
  readonly denominator: bigint;
  /** The ratio as a double, wrong by a few units in the last place at most. */
  readonly estimate: number;
}

/** Far above the error of an estimated part (about 4e-16 of it), far below what would make the exact check frequent. */
const NEAR_RELATIVE = 1e-14;
const NEAR_ABSOLUTE = 1e-12;

/** Digits that a bigint may have before it overflows a double. */
const MAX_HEX_DIGITS = 250;

export function share(numerator: bigint, denominator: bigint): Share {
  return { numerator, denominator, estimate: divide(numerator, denominator) };
}

/** Largest whole number not above `share` of `whole`. */
export function floorOf(share: Share, whole: number): number {
  const part = whole * share.estimate;
  const nearest = Math.round(part);
  if (isClear(part, nearest)) return Math.floor(part);
  return excess(share, whole, nearest) >= 0 ? nearest : nearest - 1;
}

/** Smallest whole number not below `share` of `whole`. */
export function ceilOf(share: Share, whole: number): number {
  const part = whole * share.estimate;
  const nearest = Math.round(part);
  if (isClear(part, nearest)) return Math.ceil(part);
  return excess(share, whole, nearest) <= 0 ? nearest : nearest + 1;
}

/**
 * Numbers as whole multiples of one power of ten. They are taken as people wrote them (the shortest decimals that give the
 * same double), so that 0.1, 0.2 and 0.3 stand as 1 : 2 : 3.
 */
export function toCommonScale(numbers: readonly number[]): bigint[] {
  const decimals = numbers.map(toDecimal);
  const lowest = decimals.reduce((least, { exponent }) => Math.min(least, exponent), 0);
  return decimals.map(({ digits, exponent }) => digits * 10n ** BigInt(exponent - lowest));
}

/** `digits` · 10^`exponent`. */
function toDecimal(value: number): { digits: bigint; exponent: number } {
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

function isClear(part: number, nearest: number): boolean {
  return Math.abs(part - nearest) > part * NEAR_RELATIVE + NEAR_ABSOLUTE;
}

/** Sign of `share` · `whole` − `candidate`, exactly. */
function excess({ numerator, denominator }: Share, whole: number, candidate: number): number {
  const difference = BigInt(whole) * numerator - BigInt(candidate) * denominator;
  return difference > 0n ? 1 : difference < 0n ? -1 : 0;
}

function divide(numerator: bigint, denominator: bigint): number {
  const over = Math.max(numerator.toString(16).length, denominator.toString(16).length) - MAX_HEX_DIGITS;
  if (over <= 0) return Number(numerator) / Number(denominator);
  const shift = BigInt(over * 4);
  return Number(numerator >> shift) / Number(denominator >> shift);
}
