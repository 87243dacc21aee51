import { describe, expect, it } from "vitest";
import { murmur3, partitionOfKey } from "../../src/protocol/key-hash.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("the hash of keys", () => {
  // Test vectors published for MurmurHash3_x86_32 by its implementers: bytes, seed, hash.
  it.each([
    [[], 0, 0],
    [[], 1, 0x514e28b7],
    [[], 0xffffffff, 0x81f16f39],
    [[0xff, 0xff, 0xff, 0xff], 0, 0x76293b50],
    [[0x21, 0x43, 0x65, 0x87], 0, 0xf55b516b],
    [[0x21, 0x43, 0x65, 0x87], 0x5082edee, 0x2362f9de],
    [[0x21, 0x43, 0x65], 0, 0x7e4a8634],
    [[0x21, 0x43], 0, 0xa0f7b07a],
    [[0x21], 0, 0x72661cf4],
    [[0, 0, 0, 0], 0, 0x2362f9de],
    [[0, 0, 0], 0, 0x85f0b427],
    [[0, 0], 0, 0x30f4c306],
    [[0], 0, 0x514e28b7],
    [utf8("abcd"), 0x9747b28c, 0xf0478627],
    [utf8("abc"), 0x9747b28c, 0xc84a62dd],
    [utf8("Hello, world!"), 0x9747b28c, 0x24884cba],
    [utf8("ππππππππ"), 0x9747b28c, 0xd58063c1],
    [utf8("hello"), 0, 0x248bfa47],
    [utf8("hello, world"), 0, 0x149bbb7f],
    [utf8("The quick brown fox jumps over the lazy dog"), 0, 0x2e4ff723],
  ])("agrees with published vectors: %s, seed %i", (bytes, seed, hash) => {
    expect(murmur3(Uint8Array.from(bytes), seed)).toBe(hash);
  });

  it("hashes a view that does not start its buffer", () => {
    expect(murmur3(utf8("xxhello").subarray(2), 0)).toBe(0x248bfa47);
  });

  it("is taken modulo the count, of the key's UTF-8", () => {
    expect(partitionOfKey("hello", 128)).toBe(0x248bfa47 % 128);
    expect(partitionOfKey("", 7)).toBe(0);
    expect(partitionOfKey("ключ\u{1f600}", 1_048_576)).toBe(murmur3(utf8("ключ\u{1f600}"), 0) % 1_048_576);
    expect(partitionOfKey("anything", 1)).toBe(0);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a count of %d", (count) => {
    expect(() => partitionOfKey("a", count)).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  it("refuses a lone surrogate rather than give two keys one hash", () => {
    expect(() => partitionOfKey("a\ud800", 8)).toThrow(expect.objectContaining({ code: "invalid" }));
  });
});
