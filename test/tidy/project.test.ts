import { describe, expect, test } from "vitest";
import { read, readJson, trackedFiles } from "./checkout.ts";

/** What a person sees first. Everything else has its place below one of these. */
const TOP_LEVEL = [
  ".ci",
  ".gitignore",
  "LICENSE",
  "README.md",
  "biome.json",
  "package-lock.json",
  "package.json",
  "scripts",
  "src",
  "test",
  "tsconfig.json",
];

/** Folders that exist on somebody's machine and on no other. In two parts, so that this file does not hold one. */
const MACHINE_PATH = new RegExp("(^|[^A-Za-z0-9._~/-])/(home|Users|root|work|farm|tmp/[A-Za-z0-9_.-]+)" + "/", "m");
const REGISTRY_HOST = new RegExp(["registry", "\\.[a-z0-9-]+\\.[a-z]+"].join(""), "i");
const BINARY = /\.(png|ico|woff2|gz)$/;

/**
 * Packages whose install script only looks whether the binary that they bring along fits. The checkout installs without
 * running scripts, so the tests of the store show that it need not run.
 */
const SCRIPT_NEED_NOT_RUN = ["node_modules/@photostructure/sqlite"];

interface LockEntry {
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly integrity?: string;
  readonly link?: boolean;
}

const lock = readJson("package-lock.json") as { lockfileVersion: number; packages: Record<string, LockEntry> };
const manifest = readJson("package.json") as Record<
  "dependencies" | "devDependencies" | "scripts",
  Record<string, string>
>;
const packages = Object.entries(lock.packages).filter(([path]) => path !== "");

describe("the project", () => {
  test("the top level holds only what a user looks for there", () => {
    const entries = new Set(trackedFiles().map((file) => file.split("/")[0] ?? ""));
    expect([...entries].filter((entry) => !TOP_LEVEL.includes(entry))).toEqual([]);
  });

  test("no file names a path of somebody's machine or the host of a package registry", () => {
    const found = trackedFiles()
      .filter((file) => !BINARY.test(file))
      .flatMap((file) => {
        const lines = read(file).split("\n");
        return lines.flatMap((line, i) =>
          MACHINE_PATH.test(line) || REGISTRY_HOST.test(line) ? [`${file}:${i + 1}: ${line.trim()}`] : [],
        );
      });
    expect(found).toEqual([]);
  });

  test("the README names the two commands, and they exist", () => {
    const readme = read("README.md");
    expect(readme).toContain("npm start");
    expect(readme).toContain("npm test");
    expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(["start", "test"]));
  });
});

describe("packages", () => {
  test("every version is pinned exactly", () => {
    const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(
      ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
    );
    expect(loose).toEqual([]);
  });

  test("the lock file carries digests but no download addresses", () => {
    expect(lock.lockfileVersion).toBe(3);
    expect(packages.length).toBeGreaterThan(20);
    expect(packages.filter(([, entry]) => entry.resolved !== undefined || entry.link === true)).toEqual([]);
    expect(packages.filter(([, entry]) => !/^sha512-/.test(entry.integrity ?? ""))).toEqual([]);
  });

  test("no package that is needed at run time has an install script that must run", () => {
    const scripted = packages.filter(([, entry]) => entry.hasInstallScript === true && entry.dev !== true);
    expect(scripted.map(([path]) => path)).toEqual(SCRIPT_NEED_NOT_RUN);
  });

  test("package.json and the lock file name the same versions", () => {
    const root = lock.packages[""] as unknown as typeof manifest;
    expect({ ...root.dependencies, ...root.devDependencies }).toEqual({
      ...manifest.dependencies,
      ...manifest.devDependencies,
    });
  });
});
