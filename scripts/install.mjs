/**
 * Installs the packages of package-lock.json, development ones included, if what is in node_modules is not exactly that.
 * Compares contents, not times: one look is some milliseconds and needs no network, and a copy or a checkout fools it not.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, ROOT, readIfThere, withLock } from "./checkout.mjs";

/** True if every package of the lock file is there in its version. Optional ones may be missing: they are for other platforms. */
export function isInstalled() {
  const wanted = packagesOf(join(ROOT, "package-lock.json"));
  const present = packagesOf(join(ROOT, "node_modules", ".package-lock.json"));
  if (wanted === undefined) fail("package-lock.json is missing: this is not a whole checkout");
  if (present === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const found = present[path];
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.integrity === entry.integrity && existsSync(join(ROOT, path));
  });
}

/** Installs when needed; silent otherwise. */
export function install() {
  checkNode();
  if (isInstalled()) return;
  withLock(() => {
    // Another process may have done it while this one waited.
    if (isInstalled()) return;
    process.stderr.write("evenkeel: installing packages (once)\n");
    const [command, ...prefix] = npmCommand();
    // No package here needs an install script, so none is run; NODE_ENV=production must not leave the build tools out.
    const options = ["--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
    const result = spawnSync(command, [...prefix, "ci", ...options, "--loglevel=error"], {
      cwd: ROOT,
      stdio: ["ignore", "ignore", "inherit"],
      shell: process.platform === "win32" && prefix.length === 0,
    });
    if (result.error) fail(`npm cannot be run: ${result.error.message}`);
    if (result.status !== 0) fail("npm ci failed; its messages are above. Run it by hand in the checkout to see more");
    if (!isInstalled())
      fail("npm ci ended well, but node_modules is not what package-lock.json says; remove it and try again");
  });
}

function packagesOf(file) {
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text).packages;
  } catch {
    // A half-written file of an interrupted install counts as none.
    return undefined;
  }
}

/** The npm that runs this script, if one does, else the one on the path. */
function npmCommand() {
  const running = process.env.npm_execpath;
  if (running !== undefined && /^npm(-cli)?\.c?js$/.test(basename(running))) return [process.execPath, running];
  return ["npm"];
}

/** Before anything of the checkout is loaded: an old Node fails in stranger ways. */
function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  fail(`this is Node ${process.versions.node}; evenkeel needs 20.19 or newer`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) install();
