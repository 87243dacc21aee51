/** Frames of RFC 6455, read and written by hand, so that no library stands between a test and the wire. */

export const OPCODE = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

export interface WireFrame {
  /** True on the last frame of a message. */
  readonly fin: boolean;
  readonly opcode: number;
  /** Without its mask. */
  readonly payload: Buffer;
}

const FIN = 0x80;
const MASKED = 0x80;
const LENGTH_BITS = 0x7f;
/** Lengths that say that the real one follows in 2 or in 8 bytes. */
const [IN_TWO_BYTES, IN_EIGHT_BYTES] = [126, 127];

/** Cuts what a socket brings into frames, masked or not. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that are complete with this chunk. */
  read(chunk: Buffer): readonly WireFrame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: WireFrame[] = [];
    for (let next = this.#cut(); next !== undefined; next = this.#cut()) frames.push(next);
    return frames;
  }

  #cut(): WireFrame | undefined {
    const bytes = this.#rest;
    if (bytes.length < 2) return undefined;
    const [first, second] = [bytes.readUInt8(0), bytes.readUInt8(1)];
    let length = second & LENGTH_BITS;
    let at = 2;
    if (length === IN_TWO_BYTES) {
      if (bytes.length < 4) return undefined;
      length = bytes.readUInt16BE(2);
      at = 4;
    } else if (length === IN_EIGHT_BYTES) {
      if (bytes.length < 10) return undefined;
      length = Number(bytes.readBigUInt64BE(2));
      at = 10;
    }
    const isMasked = (second & MASKED) !== 0;
    const start = isMasked ? at + 4 : at;
    if (bytes.length < start + length) return undefined;
    const payload = Buffer.from(bytes.subarray(start, start + length));
    if (isMasked) applyMask(payload, bytes.subarray(at, at + 4));
    this.#rest = bytes.subarray(start + length);
    return { fin: (first & FIN) !== 0, opcode: first & 0x0f, payload };
  }
}

export interface WriteOptions {
  /** Default true. */
  readonly fin?: boolean;
  /** The mask of a client's frame; absent: none, as a server writes. */
  readonly mask?: Buffer;
}

export function writeFrame(opcode: number, payload: Buffer, { fin = true, mask }: WriteOptions = {}): Buffer {
  const head = [(fin ? FIN : 0) | opcode];
  const maskBit = mask === undefined ? 0 : MASKED;
  const { length } = payload;
  let extended = Buffer.alloc(0);
  if (length < IN_TWO_BYTES) head.push(maskBit | length);
  else if (length < 0x1_0000) {
    head.push(maskBit | IN_TWO_BYTES);
    extended = Buffer.alloc(2);
    extended.writeUInt16BE(length);
  } else {
    head.push(maskBit | IN_EIGHT_BYTES);
    extended = Buffer.alloc(8);
    extended.writeBigUInt64BE(BigInt(length));
  }
  if (mask === undefined) return Buffer.concat([Buffer.from(head), extended, payload]);
  const masked = Buffer.from(payload);
  applyMask(masked, mask);
  return Buffer.concat([Buffer.from(head), extended, mask, masked]);
}

/** Payload of a close frame. */
export function closePayload(code: number, reason: string): Buffer {
  const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
  payload.writeUInt16BE(code);
  payload.write(reason, 2);
  return payload;
}

/** Code and reason of a close frame; 1005 if it has none. */
export function readClose(payload: Buffer): { readonly code: number; readonly reason: string } {
  if (payload.length < 2) return { code: 1005, reason: "" };
  return { code: payload.readUInt16BE(0), reason: payload.subarray(2).toString("utf8") };
}

function applyMask(bytes: Buffer, mask: Buffer): void {
  for (let index = 0; index < bytes.length; index++) {
    bytes.writeUInt8(bytes.readUInt8(index) ^ mask.readUInt8(index & 3), index);
  }
}
