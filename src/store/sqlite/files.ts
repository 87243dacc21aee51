import { closeSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { EvenkeelError } from "../../model/errors.ts";

/** A store holds the key of the stamps, so nobody but its owner may read it. */
const PRIVATE = 0o600;

/**
 * Makes the file if it is not there, empty and private, and gives its path without links: two names of one file must be one
 * store. Throws EvenkeelError.
 */
export function createPrivately(path: string): string {
  try {
    closeSync(openSync(path, "a", PRIVATE));
    return realpathSync(path);
  } catch (error) {
    throw new EvenkeelError("invalid", `the store ${path} cannot be opened: ${reason(path, error)}`);
  }
}

/** Tells a file from another one that has taken its name; undefined if there is none. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

function reason(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return `there is no folder ${dirname(path)}`;
  if (code === "EISDIR") return "it is a folder";
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return "this user may not write it";
  return message;
}
