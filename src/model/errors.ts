/**
 * Errors that a caller can do something about. The code is stable; title, HTTP status and CLI exit code follow from it
 * by this one table.
 */

export const ERROR_TABLE = {
  invalid: { status: 400, exit: 2, title: "The request is not valid" },
  unauthenticated: { status: 401, exit: 5, title: "No or no valid token" },
  forbidden: { status: 403, exit: 5, title: "Not allowed" },
  "not-found": { status: 404, exit: 4, title: "Not found" },
  "method-not-allowed": { status: 405, exit: 2, title: "The path does not take this method" },
  "table-removing": { status: 409, exit: 6, title: "A table of this name is still being removed" },
  "table-fixed": { status: 409, exit: 6, title: "This of a table cannot change" },
  conflict: { status: 409, exit: 6, title: "The request conflicts with the present state" },
  "revision-mismatch": { status: 412, exit: 6, title: "The revision has moved on" },
  "request-timeout": { status: 408, exit: 7, title: "The request came too slowly" },
  "too-large": { status: 413, exit: 2, title: "The request is too large" },
  "unsupported-media-type": { status: 415, exit: 2, title: "A write needs Content-Type: application/json" },
  "upgrade-required": { status: 426, exit: 2, title: "This path speaks WebSocket" },
  "headers-too-large": { status: 431, exit: 2, title: "The request's headers are too large" },
  internal: { status: 500, exit: 1, title: "A fault of the scheduler" },
  "not-supported": { status: 501, exit: 5, title: "Not supported yet" },
  "not-ready": { status: 503, exit: 7, title: "The scheduler is not ready" },
  "store-unavailable": { status: 503, exit: 7, title: "The store cannot be written" },
  "not-leader": { status: 503, exit: 7, title: "Another scheduler leads" },
} as const satisfies Record<string, { status: number; exit: number; title: string }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** An error with a stable code, what was wrong (`detail`) and what to do (`hint`). */
export class EvenkeelError extends Error {
  override readonly name = "EvenkeelError";
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    readonly hint?: string,
  ) {
    super(hint === undefined ? detail : `${detail}; ${hint}`);
  }
}

/** A broken invariant: a fault of this program, never of a caller. The process stops rather than go on with a state it cannot trust. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Stays on in production. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** What a value that must be there is, with its name if it is not. */
export function present<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new InvariantError(`${name} is missing`);
  return value;
}
