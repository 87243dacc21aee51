import { randomBytes } from "node:crypto";
import { SESSION_PATH, SUBPROTOCOL } from "../../src/protocol/limits.ts";

/** How messages stand in a byte stream, written by hand: the same raw client speaks to floor and subject. */

export type FramingKind = "websocket" | "lines";

export interface Framing {
  encode(text: string): Buffer;
  /** A reader keeps what is not whole yet. `onText` gets each message, `onPing` what a ping asks to be sent back. */
  newReader(onText: (text: string) => void, onPing: (payload: Buffer) => void): (chunk: Buffer) => void;
}

/** What a client sends for the upgrade. The key is not checked by anyone here. */
export function upgradeRequest(port: number): string {
  return [
    `GET ${SESSION_PATH} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    `sec-websocket-key: ${randomBytes(16).toString("base64")}`,
    `sec-websocket-protocol: ${SUBPROTOCOL}`,
    "\r\n",
  ].join("\r\n");
}

const OPCODE_TEXT = 0x1;
const OPCODE_PING = 0x9;
const OPCODE_PONG = 0xa;
const FIN = 0x80;
const MASKED = 0x80;

/** A frame of a server: without a mask. */
export function serverFrame(text: string): Buffer {
  return frame(OPCODE_TEXT, Buffer.from(text), false);
}

export function pongFrame(payload: Buffer): Buffer {
  return frame(OPCODE_PONG, payload, true);
}

const websocket: Framing = {
  encode: (text) => frame(OPCODE_TEXT, Buffer.from(text), true),
  newReader(onText, onPing) {
    let rest: Buffer = Buffer.alloc(0);
    return (chunk) => {
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let at = 0;
      for (;;) {
        const head = readHead(data, at);
        if (head === undefined || data.length < head.end) break;
        if (head.opcode === OPCODE_TEXT) onText(data.toString("utf8", head.start, head.end));
        else if (head.opcode === OPCODE_PING) onPing(data.subarray(head.start, head.end));
        at = head.end;
      }
      rest = data.subarray(at);
    };
  },
};

const lines: Framing = {
  encode: (text) => Buffer.from(`${text}\n`),
  newReader(onText) {
    const split = lineSplitter(onText);
    return (chunk) => split(chunk.toString());
  },
};

export const FRAMINGS: Readonly<Record<FramingKind, Framing>> = { websocket, lines };

/** Cuts a stream of ASCII text into lines. */
export function lineSplitter(onLine: (line: string) => void): (chunk: string) => void {
  let rest = "";
  return (chunk) => {
    const text = rest + chunk;
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      onLine(text.slice(from, end));
      from = end + 1;
    }
    rest = text.slice(from);
  };
}

/** The mask is zero, which XORs to the same bytes: a server unmasks them all the same. */
function frame(opcode: number, payload: Buffer, isMasked: boolean): Buffer {
  const { length } = payload;
  const mask = isMasked ? MASKED : 0;
  const head = length < 126 ? Buffer.from([FIN | opcode, mask | length]) : Buffer.alloc(length < 65_536 ? 4 : 10);
  if (length >= 126) {
    head[0] = FIN | opcode;
    head[1] = mask | (length < 65_536 ? 126 : 127);
    if (length < 65_536) head.writeUInt16BE(length, 2);
    else head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, Buffer.alloc(isMasked ? 4 : 0), payload]);
}

/** Where a frame of a server begins and ends; undefined if its head is not whole. */
function readHead(data: Buffer, at: number) {
  if (data.length < at + 2) return undefined;
  const opcode = (data[at] as number) & 0x0f;
  const short = (data[at + 1] as number) & 0x7f;
  const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
  if (data.length < start) return undefined;
  const length = short < 126 ? short : short === 126 ? data.readUInt16BE(at + 2) : Number(data.readBigUInt64BE(at + 2));
  return { opcode, start, end: start + length };
}
