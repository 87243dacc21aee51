import { EvenkeelError } from "../model/errors.ts";

/**
 * Partition of a key in a table that has `count` partitions and no keys of its own: MurmurHash3 x86 32 with seed 0 over the
 * key's UTF-8, modulo `count`. Every client computes the same, in any language.
 *
 * Throws EvenkeelError `invalid` for a count that is not a positive integer and for a key with a lone surrogate, which has
 * no UTF-8.
 */
export function partitionOfKey(key: string, count: number): number {
  if (!Number.isSafeInteger(count) || count < 1) throw new EvenkeelError("invalid", "count must be a positive integer");
  if (/\p{Surrogate}/u.test(key)) throw new EvenkeelError("invalid", "the key has a lone surrogate");
  return murmur3(utf8.encode(key), 0) % count;
}

const utf8 = new TextEncoder();

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** MurmurHash3_x86_32 by Austin Appleby (public domain algorithm, SMHasher), as an unsigned 32-bit number. */
export function murmur3(bytes: Uint8Array, seed: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = bytes.length & ~3;
  let hash = seed;
  for (let at = 0; at < whole; at += 4) {
    hash ^= scramble(view.getUint32(at, true));
    hash = Math.imul(rotateLeft(hash, 13), 5) + 0xe6546b64;
  }
  let tail = 0;
  for (let at = bytes.length - 1; at >= whole; at--) tail = (tail << 8) | view.getUint8(at);
  hash ^= scramble(tail) ^ bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function scramble(block: number): number {
  return Math.imul(rotateLeft(Math.imul(block, C1), 15), C2);
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
