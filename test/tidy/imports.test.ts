import { describe, expect, test } from "vitest";
import { Code, codeBelow, readJson } from "./checkout.ts";
import { isKnown, packageOf, refuse } from "./import-rules.ts";

const sources = codeBelow("src/").map((code) => ({ code, file: code.file.slice("src/".length) }));

describe("imports follow the table of folders", () => {
  test("no file imports what its folder may not", () => {
    const breaches = sources.flatMap(({ code, file }) =>
      code.imports().flatMap((wanted) => {
        const why = refuse(file, wanted);
        return why === undefined ? [] : [`${code.file}: ${why}`];
      }),
    );
    expect(breaches).toEqual([]);
  });

  test("every folder of src stands in the table", () => {
    expect(sources.filter(({ file }) => !isKnown(file)).map(({ code }) => code.file)).toEqual([]);
  });

  test("relative imports name the file, with its ending", () => {
    const breaches = sources.flatMap(({ code }) =>
      code
        .imports()
        .flatMap(({ from }) => (from.startsWith(".") && !from.endsWith(".ts") ? [`${code.file}: ${from}`] : [])),
    );
    expect(breaches).toEqual([]);
  });

  test("each package that src imports is a dependency at run time", () => {
    const { dependencies } = readJson("package.json") as { dependencies: Record<string, string> };
    const missing = sources.flatMap(({ code }) =>
      code
        .imports()
        .filter(({ from }) => !from.startsWith(".") && !from.startsWith("node:"))
        .flatMap(({ from }) => (packageOf(from) in dependencies ? [] : [`${code.file}: ${from}`])),
    );
    expect(missing).toEqual([]);
  });

  test("ws is imported by one file of the client only, so that the rest runs in a browser", () => {
    const users = sources.filter(
      ({ file, code }) => file.startsWith("client/") && code.imports().some(({ from }) => from === "ws"),
    );
    expect(users.length).toBeLessThanOrEqual(1);
  });
});

describe("the table refuses", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["model/ids.ts", "../plan/types.ts", false],
    ["model/ids.ts", "node:fs", false],
    ["model/ids.ts", "./grant.ts", true],
    ["core/step.ts", "../ledger/fold.ts", true],
    ["core/step.ts", "../driver/ports.ts", false],
    ["core/step.ts", "immer", true],
    ["plan/quota.ts", "immer", false],
    ["gateway/outbox.ts", "../driver/ports.ts", true],
    ["gateway/outbox.ts", "../driver/inbox.ts", false],
    ["cli/commands/serve.ts", "../../server.ts", true],
    ["cli/commands/status.ts", "../../server.ts", false],
    ["cli/commands/status.ts", "../../client/admin.ts", true],
    ["server.ts", "./store/memory.ts", true],
    ["server.ts", "./cli/main.ts", false],
    ["testing/clock.ts", "../core/step.ts", true],
    ["testing/clock.ts", "../cli/main.ts", false],
    ["client/executor.ts", "../../test/helper.ts", false],
  ];
  test.each(cases)("%s importing %s: allowed %s", (file, from, allowed) => {
    expect(refuse(file, { from, typeOnly: false }) === undefined).toBe(allowed);
  });

  test("the store may import types of the ledger, but no code of it", () => {
    expect(refuse("store/memory.ts", { from: "../ledger/state.ts", typeOnly: true })).toBeUndefined();
    expect(refuse("store/memory.ts", { from: "../ledger/state.ts", typeOnly: false })).toMatch("may not import");
  });
});

test("an import is seen however it is written, and not in a comment or a string", () => {
  const code = new Code(
    "sample.ts",
    `import "a"; import type { B } from "b"; export * from "c"; export { d } from "d"; export type { E } from "e";
     const f = await import("f"); type G = import("g").G; import { type H, i } from "h"; /* import "no" */ const s = 'import "no"';`,
  );
  const seen = code.imports().map(({ from, typeOnly }) => (typeOnly ? `${from} (type)` : from));
  expect(seen).toEqual(["a", "b (type)", "c", "d", "e (type)", "f", "g (type)", "h"]);
});
