import { StoreError } from "../../driver/ports.ts";

/** What SQLite's result codes say about a change that was to be written. */

/** Primary codes: the lower byte of every result code. */
const BUSY = 5;
const READONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;
/** Extended codes. */
const IOERR_WRITE = 778;
const IOERR_FSYNC = 1034;
const IOERR_DIR_FSYNC = 1290;

/** What reading several rows at once throws with its text alone. */
const WITHOUT_CODE = [
  ["database disk image is malformed", CORRUPT],
  ["file is not a database", NOT_A_DATABASE],
] as const;

/** How far a transaction had come when it failed: its last step is the only one that can make anything durable. */
export type Stage = "statement" | "commit";

/**
 * The error that the port promises: `broken` if the file or what the system said of it can no longer be trusted,
 * `not-written` if the transaction certainly left nothing behind. Any other failure of a commit comes back as it was,
 * because nobody can say what became of it.
 */
export function judgeWrite(error: unknown, stage: Stage, path: string): Error {
  const known = judge(error, path);
  if (known !== undefined) return known;
  const code = codeOf(error);
  // A commit's last write carries the mark that makes it count; where a write fails, that mark is not whole.
  const leftNothing = [BUSY, READONLY, FULL].includes(code & 0xff) || code === IOERR_WRITE;
  if (code !== 0 && (stage === "statement" || leftNothing)) {
    return new StoreError("not-written", `${path} could not be written: ${reasonOf(error)}`);
  }
  return error instanceof Error ? error : new Error(String(error));
}

/** As the port promises for a read: `broken` if the file is, else the error as it was. */
export function judgeRead(error: unknown, path: string): Error {
  return judge(error, path) ?? (error instanceof Error ? error : new Error(String(error)));
}

export function isBusy(error: unknown): boolean {
  return (codeOf(error) & 0xff) === BUSY;
}

/** What is wrong in a file, and what to do about it. */
export function damaged(path: string, what: string): StoreError {
  const hint = `see all of it with evenkeel store check ${path}, and take the last good backup: evenkeel store restore`;
  return new StoreError("broken", `${path} is damaged: ${what}; ${hint}`);
}

/** The text of an error, with SQLite's code if it has one. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  return code === 0 ? message : `${message} (SQLite ${code})`;
}

function judge(error: unknown, path: string): StoreError | undefined {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  if ([CORRUPT, NOT_A_DATABASE].includes(code & 0xff)) return damaged(path, reasonOf(error));
  if (code === IOERR_FSYNC || code === IOERR_DIR_FSYNC) {
    // Linux drops what it could not write and lets the next fsync succeed: only a new start reads what is really there.
    const text = `the disk did not take what was written to ${path}: ${reasonOf(error)}; look at the disk, then start again`;
    return new StoreError("broken", text);
  }
  return undefined;
}

function codeOf(error: unknown): number {
  const { errcode, message } = error as { readonly errcode?: unknown; readonly message?: unknown };
  if (typeof errcode === "number") return errcode;
  return WITHOUT_CODE.find(([text]) => message === text)?.[1] ?? 0;
}
