import { MAX_CLOSE_REASON_BYTES } from "./limits.ts";
import { utf8Bytes } from "./utf8.ts";

/**
 * What a client does when its socket is closed.
 *
 * - `finish`: stop if it was after `left` or by its own close, else reconnect with `resume`.
 * - `stop`: do not retry, tell the owner.
 * - `reconnect`: with backoff; `reconnect-with-resume`: the same, and the hello must say what is still held.
 * - `next-address`: with backoff, at the next configured address.
 * - `new-token`: get another token, then reconnect.
 * - `fresh`: stop everything, then hello without `resume`.
 * - `leader`: go to the address in `refused.leader`.
 * - `wait`: wait `refused.retryAfterMs`, then reconnect.
 */
export type CloseAction =
  | "finish"
  | "stop"
  | "reconnect"
  | "reconnect-with-resume"
  | "next-address"
  | "new-token"
  | "fresh"
  | "leader"
  | "wait";

export interface CloseRow {
  readonly code: number;
  readonly name: string;
  readonly action: CloseAction;
  /** Whether what is held may be served on within its lease. Nothing is extended without an answer. */
  readonly mayServe: boolean;
}

/** Codes by what they say, for those who close. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  binary: 1003,
  badUtf8: 1007,
  tooBig: 1009,
  badMessage: 4400,
  unauthenticated: 4401,
  forbidden: 4403,
  silent: 4408,
  replaced: 4409,
  leaseEnded: 4410,
  ackOverdue: 4411,
  notLeader: 4421,
  tooMany: 4429,
  fault: 4500,
  notReady: 4503,
} as const;

export const CLOSE_ROWS: readonly CloseRow[] = [
  { code: CLOSE.normal, name: "normal", action: "finish", mayServe: true },
  { code: CLOSE.goingAway, name: "going away", action: "next-address", mayServe: true },
  { code: CLOSE.binary, name: "binary frame", action: "stop", mayServe: false },
  { code: CLOSE.badUtf8, name: "bad UTF-8", action: "stop", mayServe: false },
  { code: CLOSE.tooBig, name: "too big", action: "stop", mayServe: false },
  { code: CLOSE.badMessage, name: "bad message", action: "stop", mayServe: false },
  { code: CLOSE.unauthenticated, name: "unauthenticated or token expired", action: "new-token", mayServe: false },
  { code: CLOSE.forbidden, name: "not allowed for this identity or role", action: "stop", mayServe: false },
  { code: CLOSE.silent, name: "no hello in time, silence, or an older attempt", action: "reconnect", mayServe: true },
  { code: CLOSE.replaced, name: "replaced by a newer instance of the id", action: "stop", mayServe: false },
  { code: CLOSE.leaseEnded, name: "lease ended, session over", action: "fresh", mayServe: false },
  { code: CLOSE.ackOverdue, name: "ack overdue", action: "reconnect-with-resume", mayServe: true },
  { code: CLOSE.notLeader, name: "not the leader", action: "leader", mayServe: true },
  { code: CLOSE.tooMany, name: "too many sessions or messages", action: "wait", mayServe: true },
  { code: CLOSE.fault, name: "scheduler fault", action: "reconnect", mayServe: true },
  { code: CLOSE.notReady, name: "scheduler not ready", action: "reconnect", mayServe: true },
];

const ROWS: ReadonlyMap<number, CloseRow> = new Map(CLOSE_ROWS.map((row) => [row.code, row]));

/** The row of a close code; for any other code: reconnect with backoff and `resume`. */
export function closeAction(code: number): CloseRow {
  return ROWS.get(code) ?? { code, name: "other", action: "reconnect-with-resume", mayServe: true };
}

/** Cuts a close reason to 123 bytes of UTF-8, at the border of a character. ws throws at a longer one. */
export function closeReason(text: string): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += utf8Bytes(character.codePointAt(0) ?? 0);
    if (bytes > MAX_CLOSE_REASON_BYTES) return text.slice(0, end);
    end += character.length;
  }
  return text;
}
