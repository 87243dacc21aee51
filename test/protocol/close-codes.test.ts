import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLOSE, CLOSE_ROWS, closeAction, closeReason } from "../../src/protocol/close-codes.ts";
import { MAX_CLOSE_REASON_BYTES } from "../../src/protocol/limits.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

describe("close codes", () => {
  it.each([
    [1000, "finish", true],
    [1001, "next-address", true],
    [1003, "stop", false],
    [1007, "stop", false],
    [1009, "stop", false],
    [4400, "stop", false],
    [4401, "new-token", false],
    [4403, "stop", false],
    [4408, "reconnect", true],
    [4409, "stop", false],
    [4410, "fresh", false],
    [4411, "reconnect-with-resume", true],
    [4421, "leader", true],
    [4429, "wait", true],
    [4500, "reconnect", true],
    [4503, "reconnect", true],
  ])("%i: the client's action is %s, may serve: %s", (code, action, mayServe) => {
    expect(closeAction(code)).toMatchObject({ code, action, mayServe });
  });

  it.each([1006, 1011, 4402, 4999, 0])("any other, as %i: reconnect with resume, and serve on", (code) => {
    expect(closeAction(code)).toEqual({ code, name: "other", action: "reconnect-with-resume", mayServe: true });
  });

  it("has one row for each code that is used", () => {
    expect(CLOSE_ROWS.map(({ code }) => code)).toEqual(Object.values(CLOSE));
  });
});

describe("close reasons", () => {
  it("keeps 123 bytes and cuts the 124th", () => {
    expect(closeReason("x".repeat(MAX_CLOSE_REASON_BYTES))).toHaveLength(123);
    expect(closeReason("x".repeat(MAX_CLOSE_REASON_BYTES + 1))).toHaveLength(123);
  });

  it("cuts at the border of a character", () => {
    expect(closeReason(`${"x".repeat(120)}\u{1f600}`)).toBe("x".repeat(120));
    expect(closeReason(`${"x".repeat(119)}\u{1f600}!`)).toBe(`${"x".repeat(119)}\u{1f600}`);
  });

  it("is the longest beginning of the text that fits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const reason = closeReason(text);
        expect(text.startsWith(reason)).toBe(true);
        expect(bytesOf(reason)).toBeLessThanOrEqual(MAX_CLOSE_REASON_BYTES);
        const [next = ""] = text.slice(reason.length);
        expect(next === "" || bytesOf(reason + next) > MAX_CLOSE_REASON_BYTES).toBe(true);
      }),
    );
  });
});
