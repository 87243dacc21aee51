import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CLOSE_ROWS } from "../../src/protocol/close-codes.ts";
import { decodeClientFrame, decodeServerFrame, encodeFrame } from "../../src/protocol/codec.ts";
import { clientFrame, serverFrame } from "../../src/protocol/frames.ts";
import { murmur3 } from "../../src/protocol/key-hash.ts";
import {
  HELLO_TIMEOUT_MS,
  MAX_ADDRESS_CHARS,
  MAX_CAUSE_NAMES,
  MAX_CAUSES,
  MAX_CLOSE_REASON_BYTES,
  MAX_FRAME_BYTES,
  MAX_JSON_DEPTH,
  MAX_KEY_CHARS,
  MAX_LABEL_CHARS,
  MAX_LABELS,
  MAX_LEADER_HOPS,
  MAX_MESSAGE_BURST,
  MAX_MESSAGES_PER_SECOND,
  MAX_REASON_CHARS,
  MAX_STAMP_CHARS,
  MAX_WEIGHT,
  PING_INTERVAL_MS,
  RECONNECT_MAX_MS,
  RECONNECT_MIN_MS,
  SESSION_PATH,
  SILENCE_TIMEOUT_MS,
  SUBPROTOCOL,
} from "../../src/protocol/limits.ts";

// Cells of tables are padded for the eye.
const DOCUMENT = readFileSync(new URL("../../src/protocol/PROTOCOL.md", import.meta.url), "utf8").replaceAll(
  / +/g,
  " ",
);
const lines = DOCUMENT.split("\n");
const examples = (side: "C" | "S") => lines.filter((line) => line.startsWith(`${side} {`)).map((line) => line.slice(2));
const inThousands = (value: number) => value.toLocaleString("en-US");

describe("the protocol document", () => {
  it.each(examples("C"))("shows a valid client frame: %s", (text) => {
    const decoded = decodeClientFrame(text);
    // A reader copies examples, so they are complete: a default that is left out would show here.
    expect(decoded.ok ? encodeFrame(decoded.frame) : decoded.close.reason).toBe(text);
  });

  it.each(examples("S"))("shows a valid server frame: %s", (text) => {
    const decoded = decodeServerFrame(text);
    expect(decoded.ok ? decoded.frame && encodeFrame(decoded.frame) : decoded.close.reason).toBe(text);
  });

  it("shows every frame of an executor's session that is not rare", () => {
    const shown = new Set([...examples("C"), ...examples("S")].map((text) => JSON.parse(text).type));
    expect([...shown].sort()).toEqual(
      ["ack", "hello", "lease", "leave", "left", "push", "refused", "renew", "report", "welcome"].sort(),
    );
  });

  it("names every frame and every member of it", () => {
    const shapes = [
      ...clientFrame.options.flatMap((option): object[] =>
        "options" in option ? option.options.map(({ shape }) => shape) : [option.shape],
      ),
      ...serverFrame.options.map((option): object => option.shape),
    ];
    for (const member of new Set(shapes.flatMap((shape) => Object.keys(shape)))) {
      expect(DOCUMENT).toMatch(new RegExp(`\\b${member}\\b`));
    }
    for (const { shape } of serverFrame.options) expect(DOCUMENT).toContain(`\`${shape.type.value}\``);
  });

  it.each(CLOSE_ROWS)("has close code $code as the table in code has it", ({ code, mayServe }) => {
    const row = lines.find((line) => new RegExp(`^\\| [0-9, ]*\\b${code}\\b`).test(line));
    const says = row?.split("|").at(-2)?.trim();
    expect(says).toBe(code === 1000 ? "–" : mayServe ? "yes" : "no");
  });

  it.each([
    `\`GET ${SESSION_PATH}\``,
    `\`${SUBPROTOCOL}\``,
    `| frame | ${inThousands(MAX_FRAME_BYTES)} bytes |`,
    `| nesting of JSON | ${MAX_JSON_DEPTH} |`,
    `| labels | ${MAX_LABELS} pairs, values of ${MAX_LABEL_CHARS} characters |`,
    `| key | ${MAX_KEY_CHARS} characters |`,
    `at most ${inThousands(MAX_WEIGHT)} |`,
    `| time to hello | ${HELLO_TIMEOUT_MS / 1000} s |`,
    `| answer to a ping | ${SILENCE_TIMEOUT_MS / 1000} s |`,
    `pings at least every ${PING_INTERVAL_MS / 1000} s`,
    `| frames | ${MAX_MESSAGES_PER_SECOND} a second, bursts of ${inThousands(MAX_MESSAGE_BURST)} |`,
    `| close reason | ${MAX_CLOSE_REASON_BYTES} bytes of UTF-8 |`,
    `newest ${MAX_CAUSES}, and the first ${MAX_CAUSE_NAMES} names`,
    `at most ${MAX_LEADER_HOPS} hops`,
    `from ${RECONNECT_MIN_MS} ms to ${RECONNECT_MAX_MS / 1000} s`,
    `\`murmur3("hello")\` is ${murmur3(new TextEncoder().encode("hello"), 0)}`,
  ])("agrees with the code: %s", (text) => {
    expect(DOCUMENT).toContain(text);
  });

  it("gives one limit for address, reason and stamp", () => {
    expect([MAX_ADDRESS_CHARS, MAX_REASON_CHARS, MAX_STAMP_CHARS]).toEqual([512, 512, 512]);
    expect(DOCUMENT).toContain("| `address`, `failed.reason`, `stamp` | 512 characters each |");
  });
});
