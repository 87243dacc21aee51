import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { FORMATS, format, plainLines, type View } from "../../src/cli/output.ts";

/** What a terminal may act upon: a colour, a C1 control, the right-to-left override, an isolate, what nobody sees. */
const HOSTILE = "\u001b[31m\u009b2J\u202egnp.exe\u2066\u200b\u2028\ufeff";
/** Of these, what no line may hold. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for.
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

const data = { name: HOSTILE, [`key ${HOSTILE}`]: 1, count: 12, text: "12", plain: "as it is" };
const view: View = { data, items: [data], parts: [{ columns: [{ name: "name" }], rows: [[HOSTILE]] }, HOSTILE] };

describe("text of others cannot steer a terminal or turn its reader around", () => {
  test.each(FORMATS)("-o %s", (as) => {
    const text = format(view, as);
    expect(text).not.toMatch(RAW);
    expect(text).toContain("\\u202e");
  });

  test("in messages, whose lines stay lines", () => {
    expect(plainLines(`one\n${HOSTILE}`)).toBe("one\n\\u001b[31m\\u009b2J\\u202egnp.exe\\u2066\\u200b\\u2028\\ufeff");
  });
});

test("data reads as the same values", () => {
  for (const as of ["json", "jsonl"] as const) expect(JSON.parse(format(view, as))).toEqual(data);
  expect(parse(format(view, "yaml"))).toEqual(data);
});

test("yaml without such text stays free of quotes that it does not need", () => {
  expect(format({ data: { name: "trips", count: 2 }, parts: [] }, "yaml")).toBe("name: trips\ncount: 2\n");
});
