import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readSet, writeSet } from "./independent/sets.ts";
import { INDEPENDENT } from "./rig/clients.ts";
import { sessionSuite } from "./suite.ts";

sessionSuite(INDEPENDENT);

describe("the independent client", () => {
  test("shares no code with src, and uses no WebSocket library", () => {
    const folder = new URL("./independent/", import.meta.url);
    const files = [
      new URL("./independent-client.ts", import.meta.url),
      ...readdirSync(folder).map((name) => new URL(name, folder)),
    ];
    const imports = files.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1] ?? ""),
    );
    expect(imports.length).toBeGreaterThan(8);
    expect(imports.filter((from) => !/^(node:|\.\/independent\/|\.\/[a-z]+\.ts$)/.test(from))).toEqual([]);
  });

  test.each(["", "0", "0-1", "5,7-9,1048575"])("reads and writes the set `%s`", (text) => {
    expect(writeSet(readSet(text))).toBe(text);
  });

  test.each(["1,0", "0,1", "3-3", "07", "0-1,2", "1-0", " 1", "1,", "-1", "1-", "1,1"])("refuses `%s`", (text) => {
    expect(() => readSet(text)).toThrow();
  });
});
