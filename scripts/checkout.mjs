/** What the scripts beside this file share: where the checkout is, a digest of files, and a lock between processes. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const DIST = join(ROOT, "dist");

/** Longer than an install over a slow network; a lock of this age was left behind. */
const LOCK_LIMIT_MS = 600_000;
const LOCK_POLL_MS = 100;

/** Every file below a folder, as absolute paths, in an order that is the same everywhere. */
export function filesBelow(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Digest of names and contents. Contents and not times, since a checkout gives every file a new time. */
export function digest(files) {
  const hash = createHash("sha256");
  for (const file of files) {
    const content = readFileSync(file);
    hash.update(`${file.slice(ROOT.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** The text of a file, undefined if there is none. */
export function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Says what went wrong and ends. The exit code is 1, as for every failure that is not the caller's. */
export function fail(message) {
  process.stderr.write(`evenkeel: ${message}\n`);
  process.exit(1);
}

/**
 * Runs `work` while no other process of this checkout runs any. The lock is a file with the holder's pid; one whose
 * holder is gone is taken over.
 */
export function withLock(work) {
  mkdirSync(DIST, { recursive: true });
  const lock = join(DIST, ".lock");
  const deadline = Date.now() + LOCK_LIMIT_MS;
  while (!take(lock)) {
    if (Date.now() > deadline)
      fail(`${lock} is held by process ${readIfThere(lock)}; remove it if that is not a build`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
  const release = () => rmSync(lock, { force: true });
  process.once("exit", release);
  try {
    return work();
  } finally {
    process.removeListener("exit", release);
    release();
  }
}

function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  if (isStale(lock)) discard(lock);
  return false;
}

function isStale(lock) {
  const holder = readIfThere(lock);
  if (holder === undefined) return false;
  const stat = statSync(lock, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  const ageMs = Date.now() - stat.mtimeMs;
  if (ageMs > LOCK_LIMIT_MS) return true;
  // An empty file is one whose holder is between making and filling it, unless it stays so.
  if (holder === "") return ageMs > 1_000;
  try {
    process.kill(Number(holder), 0);
    return Number(holder) === process.pid;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

/** Renames before removing: of several who saw the same stale lock, one moves it and the others find it gone. */
function discard(lock) {
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  rmSync(aside, { force: true });
}
