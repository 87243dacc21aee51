import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ROOT } from "./checkout.ts";

/** The scripts of a bare checkout, on a small one of their own. */

let checkout: string;

beforeEach(() => {
  checkout = realpathSync(mkdtempSync(join(tmpdir(), "evenkeel-scripts-")));
  cpSync(join(ROOT, "scripts"), join(checkout, "scripts"), { recursive: true });
});
afterEach(() => rmSync(checkout, { recursive: true }));

function write(file: string, content: string | object): void {
  const path = join(checkout, file);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}

interface Result {
  readonly code: number;
  readonly out: string;
  readonly complaint: string;
}

function run(command: string, args: readonly string[], cwd = checkout): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { cwd }, (_error, out, complaint) => {
      resolve({ code: child.exitCode ?? -1, out, complaint });
    });
  });
}

const node = (...args: readonly string[]): Promise<Result> => run(process.execPath, args);

describe("what is installed is compared with the lock file", () => {
  const a = { version: "1.0.0", integrity: "sha512-a" };
  const b = { version: "2.0.0", integrity: "sha512-b", optional: true };

  async function isInstalled(): Promise<boolean> {
    const { out } = await node("-e", 'import("./scripts/install.mjs").then((m) => console.log(m.isInstalled()))');
    return out.trim() === "true";
  }

  function present(packages: Record<string, object>): void {
    write("package-lock.json", { packages: { "": {}, "node_modules/a": a, "node_modules/b": b } });
    write("node_modules/.package-lock.json", { packages });
    for (const path of Object.keys(packages)) mkdirSync(join(checkout, path), { recursive: true });
  }

  test("the same is installed, also without what is for other platforms", async () => {
    present({ "node_modules/a": a, "node_modules/b": b });
    expect(await isInstalled()).toBe(true);
    present({ "node_modules/a": a });
    expect(await isInstalled()).toBe(true);
  });

  test("a missing or another version, another content and a removed folder are not", async () => {
    write("package-lock.json", { packages: { "": {}, "node_modules/a": a } });
    expect(await isInstalled()).toBe(false);
    present({});
    expect(await isInstalled()).toBe(false);
    present({ "node_modules/a": { ...a, version: "1.0.1" } });
    expect(await isInstalled()).toBe(false);
    present({ "node_modules/a": { ...a, integrity: "sha512-x" } });
    expect(await isInstalled()).toBe(false);
    present({ "node_modules/a": a, "node_modules/b": { ...b, version: "1.0.0" } });
    expect(await isInstalled()).toBe(false);
    present({ "node_modules/a": a });
    rmSync(join(checkout, "node_modules/a"), { recursive: true });
    expect(await isInstalled()).toBe(false);
  });
});

describe("builds", () => {
  beforeEach(() => {
    for (const file of ["package.json", "package-lock.json", "tsconfig.json"])
      cpSync(join(ROOT, file), join(checkout, file));
    symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"));
    write("src/cli/main.ts", 'console.log("one", process.cwd(), ...process.argv.slice(2)); process.exitCode = 3;\n');
    write("src/page/index.html", "<p>");
    write("src/page/NOTES.md", "not shipped");
  });

  test("run the command line from any folder and through a link, with its arguments and exit code", async () => {
    const link = join(checkout, "link");
    symlinkSync("scripts/evenkeel", link);
    const elsewhere = realpathSync(tmpdir());
    expect(await run(link, ["a", "b c"], elsewhere)).toEqual({
      code: 3,
      out: `one ${elsewhere} a b c\n`,
      complaint: "evenkeel: building\n",
    });
  });

  test("happen when a source has changed, and only then", async () => {
    await node("scripts/build.mjs");
    expect(await node("scripts/run.mjs")).toMatchObject({ out: `one ${checkout}\n`, complaint: "" });
    write("src/cli/main.ts", 'console.log("two");\n');
    expect(await node("scripts/run.mjs")).toEqual({ code: 0, out: "two\n", complaint: "evenkeel: building\n" });
    expect(await node("scripts/run.mjs")).toEqual({ code: 0, out: "two\n", complaint: "" });
  });

  test("hold what the sources are now: assets with it, leftovers and documents not", async () => {
    write("src/old.ts", "export const old = 1;\n");
    await node("scripts/build.mjs");
    expect(existsSync(join(checkout, "dist/old.js"))).toBe(true);
    rmSync(join(checkout, "src/old.ts"));
    await node("scripts/build.mjs");
    expect(existsSync(join(checkout, "dist/old.js"))).toBe(false);
    expect(existsSync(join(checkout, "dist/page/index.html"))).toBe(true);
    expect(existsSync(join(checkout, "dist/page/NOTES.md"))).toBe(false);
  });

  test("that fail are tried again, and run nothing", async () => {
    write("src/cli/main.ts", 'const a: number = "a";\nconsole.log(a);\n');
    for (const _ of [1, 2]) {
      const { code, out, complaint } = await node("scripts/run.mjs");
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(complaint).toContain("src/cli/main.ts(1,7): error");
    }
  });

  test("at one time are one build", async () => {
    const results = await Promise.all([1, 2, 3].map(() => node("scripts/run.mjs")));
    expect(results.map(({ code, out }) => ({ code, out }))).toEqual(
      Array(3).fill({ code: 3, out: `one ${checkout}\n` }),
    );
    expect(results.map(({ complaint }) => complaint).join("")).toBe("evenkeel: building\n");
  });

  test("take over from one that was killed", async () => {
    write("dist/.lock", "999999999");
    expect(await node("scripts/build.mjs")).toMatchObject({ code: 0 });
    expect(existsSync(join(checkout, "dist/.lock"))).toBe(false);
  });
});
