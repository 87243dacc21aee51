import fc from "fast-check";
import { expect, test } from "vitest";
import { writeInSlices } from "../../src/store/sqlite/slices.ts";

async function same(data: unknown): Promise<void> {
  expect(await writeInSlices(data)).toBe(JSON.stringify(data));
}

test("the text is that of JSON.stringify, for any data", async () => {
  await fc.assert(fc.asyncProperty(fc.jsonValue(), same));
  await same({ absent: undefined, list: [undefined, 1], nested: { list: [] } });
});

test.each([0, 1, 499, 500, 501, 1_000, 1_001])("also with a list of %i items", async (length) => {
  await same({ before: 1, list: Array.from({ length }, (_, n) => ({ n, text: "é" })), after: [[]] });
});

test("the loop turns while a long list is written", async () => {
  let turns = 0;
  const turning = setInterval(() => turns++, 0);
  await writeInSlices({ list: Array.from({ length: 200_000 }, (_, n) => ({ n, text: "a".repeat(50) })) });
  clearInterval(turning);
  expect(turns).toBeGreaterThan(5);
});
