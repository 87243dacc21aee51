import { describe, expect, test } from "vitest";
import { type Code, codeBelow, type Node } from "./checkout.ts";

/** A file that no longer fits a reader's head is two. */
const MAX_FILE_LINES = 600;
/** One screen. */
const MAX_FUNCTION_LINES = 70;

/** Folders that are pure functions of their input: time and chance come in as arguments. */
const PURE = ["src/core/", "src/plan/", "src/ledger/", "src/protocol/", "src/model/"];
const IMPURE_GLOBALS = new Set([
  ..."Date performance process crypto setTimeout setInterval setImmediate queueMicrotask fetch".split(" "),
]);

const shipped = [...codeBelow("src/"), ...codeBelow("scripts/")];
const all = [...shipped, ...codeBelow("test/")];

const where = (code: Code, node: Node): string => `${code.file}:${code.lineAt(node.start)}`;

function isFunction(node: Node): boolean {
  return ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"].includes(node.type);
}

/** Whether an identifier stands for a value or type, and is not merely the name of a member. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (node.type !== "Identifier") return false;
  if (parent === undefined || parent["computed"] === true) return true;
  const isMember = parent.type === "MemberExpression" && parent["property"] === node;
  const isKey = parent["key"] === node && parent["shorthand"] !== true;
  return !isMember && !isKey;
}

describe("code", () => {
  test(`no file has more than ${MAX_FILE_LINES} lines`, () => {
    const long = all.filter((code) => code.lines > MAX_FILE_LINES).map((code) => `${code.file}: ${code.lines}`);
    expect(long).toEqual([]);
  });

  test(`no function of src and scripts has more than ${MAX_FUNCTION_LINES} lines`, () => {
    const long = shipped.flatMap((code) =>
      [...code.nodes()].flatMap(({ node }) => {
        if (!isFunction(node)) return [];
        const lines = code.lineAt(node.end) - code.lineAt(node.start) + 1;
        return lines > MAX_FUNCTION_LINES ? [`${where(code, node)}: ${lines} lines`] : [];
      }),
    );
    expect(long).toEqual([]);
  });

  test("nothing is exported as default, but by configuration of tools that ask for it", () => {
    const found = all
      .filter((code) => !/\.config\.(ts|mjs)$/.test(code.file))
      .flatMap((code) =>
        [...code.nodes()]
          .filter(({ node }) => node.type === "ExportDefaultDeclaration")
          .map(({ node }) => where(code, node)),
      );
    expect(found).toEqual([]);
  });

  test("no test is singled out, skipped or left to be written", () => {
    const found = codeBelow("test/").flatMap((code) =>
      [...code.nodes()].flatMap(({ node }) => {
        if (node.type !== "MemberExpression") return [];
        const object = node["object"] as Node;
        const property = node["property"] as Node;
        const isTest = object.type === "Identifier" && /^(test|it|describe|suite)$/.test(String(object["name"]));
        return isTest && /^(only|skip|todo)$/.test(String(property["name"])) ? [where(code, node)] : [];
      }),
    );
    expect(found).toEqual([]);
  });

  test("core, plan, ledger, protocol and model read no clock, roll no dice and start no timer", () => {
    const pure = all.filter((code) => PURE.some((folder) => code.file.startsWith(folder)));
    const found = pure.flatMap((code) =>
      [...code.nodes()].flatMap(({ node, parent }) => {
        if (isReference(node, parent) && IMPURE_GLOBALS.has(String(node["name"]))) {
          return [`${where(code, node)}: ${node["name"]}`];
        }
        const isRandom = node.type === "MemberExpression" && code.text.slice(node.start, node.end) === "Math.random";
        return isRandom ? [`${where(code, node)}: Math.random`] : [];
      }),
    );
    expect(found).toEqual([]);
  });
});
