/** Partition sets of PROTOCOL §2 as plain sorted arrays: `"0-2,5"` is `[0, 1, 2, 5]`. */

const RANGE = /^(0|[1-9][0-9]*)(?:-([1-9][0-9]*))?$/;

/** Reads a canonical set; throws at anything else. */
export function readSet(text: string): readonly number[] {
  if (text === "") return [];
  const numbers: number[] = [];
  let last = -2;
  for (const range of text.split(",")) {
    const match = RANGE.exec(range);
    if (match === null) throw new Error("a partition set has a part that is no range");
    const from = Number(match[1]);
    const to = match[2] === undefined ? from : Number(match[2]);
    // Ranges that touch would be one, and a range of one number is written as that number.
    if (from <= last + 1 || (match[2] !== undefined && to <= from)) throw new Error("a partition set is not canonical");
    for (let number = from; number <= to; number++) numbers.push(number);
    last = to;
  }
  return numbers;
}

/** Writes the numbers, in any order, as the one canonical text. */
export function writeSet(numbers: Iterable<number>): string {
  return writeRanges(numbers).join(",");
}

export function writeRanges(numbers: Iterable<number>): readonly string[] {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const ranges: { from: number; to: number }[] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && number === last.to + 1) last.to = number;
    else ranges.push({ from: number, to: number });
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
}
