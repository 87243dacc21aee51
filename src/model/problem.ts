import { ERROR_TABLE, type EvenkeelError } from "./errors.ts";

/** Media type of error bodies (RFC 9457). */
export const PROBLEM_TYPE = "application/problem+json";

/** Seconds in the Retry-After of a 503: most of its reasons are over in less. */
export const RETRY_AFTER_S = 1;

/** Body of an HTTP error. `code` is stable, `detail` says what was wrong, `hint` what to do. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint?: string;
}

export function problemOf({ code, detail, hint }: EvenkeelError): Problem {
  const { status, title } = ERROR_TABLE[code];
  return { type: `urn:evenkeel:problem:${code}`, title, status, code, detail, ...(hint === undefined ? {} : { hint }) };
}

/** Headers that an error's status asks for, besides those of its body. */
export function problemHeaders(status: number): Readonly<Record<string, string>> {
  return status === 503 ? { "retry-after": String(RETRY_AFTER_S) } : {};
}
