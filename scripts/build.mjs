/**
 * Compiles src to dist if anything it is made from differs from the last build. Builds of one checkout wait for each other.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { DIST, digest, fail, filesBelow, ROOT, readIfThere, withLock } from "./checkout.mjs";
import { install } from "./install.mjs";

const SOURCE = join(ROOT, "src");
const MAIN = join(DIST, "cli", "main.js");
const STAMP = join(DIST, ".built-from");
const SCRIPT_FILE = /\.[cm]?tsx?$/;
/** Long documents live beside the code that they explain, and are not part of the build. */
const DOCUMENT = /\.md$/;

/** Builds when stale. */
export function build() {
  install();
  if (isFresh(inputs())) return;
  withLock(() => {
    const from = inputs();
    if (isFresh(from)) return;
    process.stderr.write("evenkeel: building\n");
    // A build that fails leaves no stamp, so the next call tries again.
    rmSync(STAMP, { force: true });
    compile();
    const made = copyAssets();
    removeLeftovers(made);
    chmodSync(MAIN, 0o755);
    writeFileSync(STAMP, from);
  });
}

/** Digest of all that the output depends on: the sources, the compiler's settings and the compiler. */
function inputs() {
  const settings = ["tsconfig.json", "package.json", "node_modules/typescript/package.json"];
  return digest([...filesBelow(SOURCE), ...settings.map((file) => join(ROOT, file))]);
}

function isFresh(from) {
  return readIfThere(STAMP) === from && existsSync(MAIN);
}

function compile() {
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const result = spawnSync(process.execPath, [compiler, "-p", join(ROOT, "tsconfig.json"), "--pretty", "false"], {
    cwd: ROOT,
    // Standard output belongs to the command that is going to run.
    stdio: ["ignore", 2, 2],
  });
  if (result.error) fail(`the compiler cannot be run: ${result.error.message}`);
  if (result.status !== 0) fail("the build failed; the compiler's messages are above");
}

/** Copies what is neither code nor documentation. Returns everything that dist is to hold. */
function copyAssets() {
  const kept = new Set();
  for (const file of filesBelow(SOURCE)) {
    const target = join(DIST, relative(SOURCE, file));
    if (SCRIPT_FILE.test(file)) {
      const stem = target.replace(SCRIPT_FILE, "");
      for (const ending of [".js", ".js.map", ".d.ts", ".d.ts.map"]) kept.add(stem + ending);
    } else if (!DOCUMENT.test(file)) {
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(file, target);
      kept.add(target);
    }
  }
  return kept;
}

/** Output of sources that are gone would still be importable, and would hide that they are. */
function removeLeftovers(kept) {
  for (const file of filesBelow(DIST)) {
    // Stamp and lock begin with a dot.
    if (!kept.has(file) && !relative(DIST, file).startsWith(".")) rmSync(file);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) build();
