import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_PARTITIONS, PartitionSet, PartitionSetBuilder, PartitionSetError } from "../../src/model/partition-set.ts";

/** A plain set is the model: small numbers, so that ranges often touch, and the ends of what is allowed. */
const anyNumber = fc.oneof(
  { weight: 8, arbitrary: fc.nat({ max: 40 }) },
  { weight: 1, arbitrary: fc.nat({ max: MAX_PARTITIONS - 1 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, MAX_PARTITIONS - 2, MAX_PARTITIONS - 1) },
);
const anyNumbers = fc.array(anyNumber, { maxLength: 60 });
const ascending = (numbers: Iterable<number>) => [...new Set(numbers)].sort((a, b) => a - b);

/** The canonical text, by the plainest way there is. */
function format(numbers: Iterable<number>): string {
  const ranges: [number, number][] = [];
  for (const number of ascending(numbers)) {
    const last = ranges.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(",");
}

describe("a partition set against a plain set of numbers", () => {
  it("holds the numbers it was made of, and reads its own text back", () => {
    fc.assert(
      fc.property(anyNumbers, (numbers) => {
        const set = PartitionSet.of(numbers);
        expect([...set]).toEqual(ascending(numbers));
        expect(`${set}`).toBe(format(numbers));
        const read = PartitionSet.parse(format(numbers));
        expect([...read]).toEqual(ascending(numbers));
        expect(JSON.stringify({ set: read })).toBe(JSON.stringify({ set: format(numbers) }));
      }),
    );
  });

  it("knows size, first, last, emptiness and its ranges", () => {
    fc.assert(
      fc.property(anyNumbers, (numbers) => {
        const set = PartitionSet.of(numbers);
        const model = ascending(numbers);
        expect([set.size, set.first, set.last, set.isEmpty]).toEqual([
          model.length,
          model[0],
          model.at(-1),
          model.length === 0,
        ]);
        const text = format(numbers);
        expect(set.rangeCount).toBe(text === "" ? 0 : text.split(",").length);
        expect(
          [...set.ranges()].flatMap(([low, high]) => Array.from({ length: high - low + 1 }, (_, n) => low + n)),
        ).toEqual(model);
      }),
    );
  });

  it("has exactly its numbers", () => {
    fc.assert(
      fc.property(anyNumbers, fc.array(anyNumber), (numbers, others) => {
        const [set, model] = [PartitionSet.of(numbers), new Set(numbers)];
        for (const number of [...others, ...numbers, ...numbers.map((n) => n + 1), ...numbers.map((n) => n - 1)]) {
          expect(set.has(number)).toBe(model.has(number));
        }
      }),
    );
  });

  it("unites, intersects and subtracts", () => {
    fc.assert(
      fc.property(anyNumbers, anyNumbers, (a, b) => {
        const [setA, setB, modelA, modelB] = [PartitionSet.of(a), PartitionSet.of(b), new Set(a), new Set(b)];
        expect(`${setA.union(setB)}`).toBe(format([...a, ...b]));
        expect(`${setA.intersect(setB)}`).toBe(format(a.filter((n) => modelB.has(n))));
        expect(`${setA.difference(setB)}`).toBe(format(a.filter((n) => !modelB.has(n))));
        // Operations change neither side.
        expect([`${setA}`, `${setB}`]).toEqual([format(modelA), format(modelB)]);
      }),
    );
  });

  it("equals what holds the same, however it came about", () => {
    fc.assert(
      fc.property(anyNumbers, anyNumbers, (a, b) => {
        const set = PartitionSet.of(a);
        expect(set.equals(PartitionSet.of([...a].reverse()))).toBe(true);
        expect(set.equals(PartitionSet.parse(format(a)))).toBe(true);
        const other = PartitionSet.of(b).difference(set);
        expect(set.union(other).difference(other).equals(set)).toBe(true);
        expect(set.equals(PartitionSet.of(b))).toBe(format(a) === format(b));
      }),
    );
  });

  it("is built from ascending numbers and ranges that may overlap", () => {
    const anyRuns = fc.array(fc.tuple(fc.nat({ max: 60 }), fc.integer({ min: -2, max: 5 })), { maxLength: 30 });
    fc.assert(
      fc.property(anyRuns, (runs) => {
        const sorted = runs.sort(([a], [b]) => a - b);
        const builder = new PartitionSetBuilder();
        const model: number[] = [];
        for (const [low, more] of sorted) {
          builder.addRange(low, low + more);
          for (let n = low; n <= low + more; n++) model.push(n);
        }
        expect(`${builder.build()}`).toBe(format(model));
      }),
    );
  });

  it("a built set does not change when its builder goes on", () => {
    const builder = new PartitionSetBuilder().add(1);
    const set = builder.build();
    builder.add(2);
    expect([`${set}`, `${builder.build()}`]).toEqual(["1", "1-2"]);
  });

  it("makes ranges; none when the end is before the start", () => {
    expect(`${PartitionSet.range(3, 5)}`).toBe("3-5");
    expect(`${PartitionSet.range(3, 3)}`).toBe("3");
    expect(PartitionSet.range(3, 2)).toBe(PartitionSet.empty);
    expect(`${PartitionSet.upTo(2)}`).toBe("0-1");
    expect(PartitionSet.upTo(0).isEmpty).toBe(true);
    expect(PartitionSet.upTo(MAX_PARTITIONS).size).toBe(MAX_PARTITIONS);
  });
});

describe("numbers that are no partitions", () => {
  it.each([-1, MAX_PARTITIONS, 1.5, Number.NaN, 2 ** 32, Number.POSITIVE_INFINITY])(
    "%d is refused, not wrapped",
    (number) => {
      expect(() => PartitionSet.of([0, number])).toThrow();
      expect(() => new PartitionSetBuilder().add(number)).toThrow();
      expect(() => PartitionSet.range(number, number)).toThrow();
    },
  );

  it("a table of one partition too many is refused", () => {
    expect(() => PartitionSet.upTo(MAX_PARTITIONS + 1)).toThrow();
  });

  it("a builder refuses a number below the range it is at, rather than lose it", () => {
    expect(() => new PartitionSetBuilder().add(5).add(3)).toThrow();
    expect(() => new PartitionSetBuilder().addRange(1, 2).addRange(7, 9).add(4)).toThrow();
  });
});

describe("texts that are not canonical", () => {
  /** Ways to write the same numbers otherwise; undefined where one does not apply. */
  const rewritings: Readonly<Record<string, (text: string) => string | undefined>> = {
    "a leading comma": (text) => `,${text}`,
    "a trailing comma": (text) => `${text},`,
    "a leading zero": (text) => text.replace(/\d+/, "0$&"),
    "a leading zero at the end of a range": (text) => replaced(text, /-(\d)/, "-0$1"),
    "a plus sign": (text) => `+${text}`,
    "a space": (text) => replaced(text, /,/, ", "),
    "a space at the end": (text) => `${text} `,
    "a double comma": (text) => replaced(text, /,/, ",,"),
    "a range of one": (text) => replaced(text, /(^|,)(\d+)(?=,|$)/, "$1$2-$2"),
    "a range cut in two": (text) => {
      const range = /(\d+)-(\d+)/.exec(text);
      if (range === null) return undefined;
      const [whole, low, high] = [range[0], Number(range[1]), Number(range[2])];
      return text.replace(whole, low + 1 === high ? `${low},${high}` : `${low},${low + 1}-${high}`);
    },
    "a range turned around": (text) => replaced(text, /(\d+)-(\d+)/, "$2-$1"),
    "a repeated part": (text) => text.replace(/[^,]+/, "$&,$&"),
    "another order": (text) => (text.includes(",") ? text.split(",").reverse().join(",") : undefined),
    "a decimal point": (text) => text.replace(/\d+/, "$&.0"),
    "an exponent": (text) => text.replace(/\d+/, "$&e0"),
    "a double dash": (text) => replaced(text, /-/, "--"),
    "an open range": (text) => `${text}-`,
    "other digits": (text) => text.replace(/\d/, "\u0661"),
  };

  it.each(Object.keys(rewritings))("refuses %s in any set", (name) => {
    let applied = 0;
    fc.assert(
      fc.property(
        anyNumbers.filter((numbers) => numbers.length > 0),
        (numbers) => {
          const text = rewritings[name]?.(format(numbers));
          if (text === undefined) return;
          applied++;
          expect(() => PartitionSet.parse(text)).toThrow(PartitionSetError);
        },
      ),
    );
    expect(applied).toBeGreaterThan(10);
  });

  it("takes a text only if it is the canonical one of what it says", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."0123456789,-"), maxLength: 12 }), (text) => {
        let set: PartitionSet;
        try {
          set = PartitionSet.parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(PartitionSetError);
          return;
        }
        expect(format(set)).toBe(text);
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    ["0,1", 2],
    ["5,3", 2],
    ["12,x", 3],
    ["1-", 2],
    ["1048576", 0],
    ["0-1048576", 2],
    ["99999999999999999999", 0],
    ["1;2", 1],
  ])("says where %s went wrong: character %i", (text, at) => {
    expect(() => PartitionSet.parse(text)).toThrow(expect.objectContaining({ at }));
  });
});

describe("the largest sets", () => {
  const everySecond = Array.from({ length: MAX_PARTITIONS / 2 }, (_, n) => 2 * n);

  it("reads and writes 1,048,576 partitions of which every second is in", () => {
    const text = everySecond.join(",");
    const set = PartitionSet.parse(text);
    expect([set.size, set.rangeCount, set.last]).toEqual([MAX_PARTITIONS / 2, MAX_PARTITIONS / 2, MAX_PARTITIONS - 2]);
    expect(PartitionSet.of(everySecond).toString() === text).toBe(true);
    expect([set.has(1_000_000), set.has(1_000_001)]).toEqual([true, false]);
  });

  it("combines them", () => {
    const even = PartitionSet.of(everySecond);
    const odd = PartitionSet.upTo(MAX_PARTITIONS).difference(even);
    expect(odd.size).toBe(MAX_PARTITIONS / 2);
    expect(odd.intersect(even).isEmpty).toBe(true);
    expect(`${odd.union(even)}`).toBe(`0-${MAX_PARTITIONS - 1}`);
  });
});

function replaced(text: string, pattern: RegExp, by: string): string | undefined {
  const other = text.replace(pattern, by);
  return other === text ? undefined : other;
}
