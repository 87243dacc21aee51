import { closeSync, existsSync, fsyncSync, openSync, realpathSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvenkeelError } from "../../model/errors.ts";
import type { OpenDatabase } from "./database.ts";
import { createPrivately } from "./files.ts";
import { inUse, StoreLock } from "./lock.ts";

export interface Target {
  readonly to: string;
  /** Take the place of a file that is there. Default: refused. */
  readonly force?: boolean;
}

/**
 * Makes a file beside `to`, and gives it that name only when it is whole and on the disk. Throws EvenkeelError `conflict`
 * if `to` is there and `force` is not said, or if a process has it open.
 */
export function makeFile<T>(target: Target, open: OpenDatabase, make: (path: string) => T): T {
  const to = placeOf(target.to);
  refuseExisting(to, target.force ?? false);
  const made = `${to}.new-${process.pid}`;
  rmSync(made, { force: true });
  createPrivately(made);
  try {
    const result = make(made);
    syncToDisk(made);
    take(to, made, open);
    return result;
  } finally {
    for (const ending of ["", "-journal", "-wal", "-shm"]) rmSync(made + ending, { force: true });
  }
}

/** The path without links; the file itself need not be there. Throws EvenkeelError. */
export function placeOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(path);
  if (!existsSync(folder)) throw new EvenkeelError("invalid", `there is no folder ${folder}`);
  return join(realpathSync(folder), basename(path));
}

function refuseExisting(to: string, force: boolean): void {
  if (existsSync(to) && !force) {
    throw new EvenkeelError("conflict", `${to} is there already`, "give another name, or say --force to replace it");
  }
}

/** The name is changed under the lock, so that no scheduler has the old file open. */
function take(to: string, made: string, open: OpenDatabase): void {
  const lock = existsSync(to) ? StoreLock.take(to, open) : "not needed";
  if (lock === undefined) throw inUse(to, undefined);
  try {
    // A log that stayed would be taken for the new file's.
    for (const ending of ["-wal", "-shm"]) rmSync(to + ending, { force: true });
    renameSync(made, to);
    syncToDisk(dirname(to));
  } finally {
    if (lock !== "not needed") lock.release();
  }
}

function syncToDisk(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
