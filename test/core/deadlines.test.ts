import fc from "fast-check";
import { expect, test } from "vitest";
import { Deadlines } from "../../src/core/fleet/deadlines.ts";

test("deadlines come out by time, then key; the last setting of a key counts", () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant("set" as const), key: fc.constantFrom("a", "b", "c", "d", "e"), at: fc.nat(50) }),
    fc.record({
      kind: fc.constant("clear" as const),
      key: fc.constantFrom("a", "b", "c", "d", "e"),
      at: fc.constant(0),
    }),
    fc.record({ kind: fc.constant("take" as const), key: fc.constant(""), at: fc.nat(50) }),
  );
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const deadlines = new Deadlines();
      const model = new Map<string, number>();
      for (const { kind, key, at } of operations) {
        if (kind === "set") {
          deadlines.set(key, at);
          model.set(key, at);
        } else if (kind === "clear") {
          deadlines.clear(key);
          model.delete(key);
        } else {
          const due = [...model].filter(([, time]) => time <= at).sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
          expect(deadlines.take(at)).toEqual(due.map(([name]) => name));
          for (const [name] of due) model.delete(name);
        }
        expect(deadlines.next()).toBe(Math.min(Number.POSITIVE_INFINITY, ...model.values()));
      }
    }),
  );
});

test("moving a deadline away a hundred thousand times leaves one entry to take", () => {
  const deadlines = new Deadlines();
  for (let at = 1; at <= 100_000; at++) deadlines.set("lease", at);
  expect(deadlines.take(99_999)).toEqual([]);
  expect(deadlines.take(100_000)).toEqual(["lease"]);
});
