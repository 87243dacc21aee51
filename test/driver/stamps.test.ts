import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { createStamps } from "../../src/driver/stamps.ts";
import { MAX_STAMP_CHARS } from "../../src/protocol/limits.ts";

const key = new Uint8Array(32).fill(7);

test("a stamp says term and revision, under a MAC over incarnation, term and revision", () => {
  const mac = createHmac("sha256", key).update("inc\n3\n41").digest("base64url");
  expect(createStamps(key, "inc", 3).mint(41)).toBe(`1.3.41.${mac}`);
});

test("another key, incarnation, term or revision is another stamp", () => {
  const stamps = [
    createStamps(key, "inc", 3).mint(41),
    createStamps(new Uint8Array(32).fill(8), "inc", 3).mint(41),
    createStamps(key, "other", 3).mint(41),
    createStamps(key, "inc", 4).mint(41),
    createStamps(key, "inc", 3).mint(42),
  ];
  expect(new Set(stamps.map((stamp) => stamp.split(".").at(-1))).size).toBe(stamps.length);
});

test("one per revision, the same for all, also when revisions alternate", () => {
  const stamps = createStamps(key, "inc", 3);
  const [first, second] = [stamps.mint(41), stamps.mint(42)];
  expect([stamps.mint(41), stamps.mint(42)]).toEqual([first, second]);
});

test("the longest fits the protocol's limit", () => {
  const stamp = createStamps(key, "i".repeat(128), Number.MAX_SAFE_INTEGER).mint(Number.MAX_SAFE_INTEGER);
  expect(stamp.length).toBeLessThanOrEqual(MAX_STAMP_CHARS);
});

test("a stamp of this store and incarnation is proof of term and revision; anything else proves nothing", () => {
  const stamps = createStamps(key, "inc", 3);
  expect(stamps.verify(createStamps(key, "inc", 9).mint(41))).toEqual({ term: 9, revision: 41 });
  const mac = stamps.mint(41).split(".").at(-1);
  const forged = ["", "1.3.41", `1.3.42.${mac}`, `1.4.41.${mac}`, `2.3.41.${mac}`, `1.3.41.${mac}x`, `1.03.41.${mac}`];
  const foreign = [createStamps(key, "other", 3).mint(41), createStamps(new Uint8Array(32), "inc", 3).mint(41)];
  expect([...forged, ...foreign].map((stamp) => stamps.verify(stamp))).toEqual(Array(9).fill(undefined));
});
