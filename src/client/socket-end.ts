import { CLOSE, closeAction } from "../protocol/close-codes.ts";
import type { RefusedFrame } from "../protocol/frames.ts";
import type { Closing, SocketEnd, StopReason } from "./ports.ts";

/** What to do after a socket ended. */
export type Verdict =
  /** Go on serving within the lease, and say hello with `resume`. `afterMs`: wait at least this long. */
  | { readonly next: "reconnect"; readonly address: "same" | "next"; readonly afterMs?: number }
  /** The same, at the leader if its address may be followed. */
  | { readonly next: "hop"; readonly leader: string | undefined; readonly afterMs?: number }
  /** Stop everything, then say hello without `resume`. */
  | { readonly next: "fresh" }
  /** Stop everything; reconnect if another token can be had. */
  | { readonly next: "new-token"; readonly detail: string }
  /** Stop everything, for good. */
  | { readonly next: "give-up"; readonly reason: StopReason; readonly closing: Closing };

/**
 * Judges the end of a socket by the table of PROTOCOL §5. `refused` is the frame before the close, if there was one.
 * `wasWelcomed`: some session came about before, so the address and the frames of this client are right.
 */
export function judgeEnd(end: SocketEnd, refused: RefusedFrame | undefined, wasWelcomed: boolean): Verdict {
  switch (end.kind) {
    case "closed":
      return judgeClose(end.code, end.reason, refused);
    case "refused":
      return judgeStatus(end, wasWelcomed);
    case "failed":
      return { next: "reconnect", address: "next" };
    default:
      return end satisfies never;
  }
}

/** The end of a socket in words. */
export function problemOf(end: SocketEnd): string {
  return end.kind === "closed" ? `closed with ${end.code} ${end.reason}`.trimEnd() : end.detail;
}

function judgeClose(code: number, reason: string, refused: RefusedFrame | undefined): Verdict {
  const row = closeAction(code);
  const detail = reason === "" ? row.name : reason;
  const wait = refused?.retryAfterMs === undefined ? {} : { afterMs: refused.retryAfterMs };
  switch (row.action) {
    case "stop":
      return code === CLOSE.replaced
        ? { next: "give-up", reason: "replaced", closing: { kind: "replaced", detail } }
        : { next: "give-up", reason: "refused", closing: { kind: "refused", code, detail } };
    case "fresh":
      return { next: "fresh" };
    case "new-token":
      return { next: "new-token", detail };
    case "leader":
      return { next: "hop", leader: refused?.leader, ...wait };
    case "next-address":
      return { next: "reconnect", address: "next", ...wait };
    case "finish":
    case "reconnect":
    case "reconnect-with-resume":
    case "wait":
      return { next: "reconnect", address: "same", ...wait };
    default:
      return row.action satisfies never;
  }
}

/** Statuses that say that the address or the request is wrong. Once a session came about they can only be a passing state of something in between. */
const MISTAKES: ReadonlySet<number> = new Set([400, 404, 405, 426, 431]);

function judgeStatus(end: SocketEnd & { readonly kind: "refused" }, wasWelcomed: boolean): Verdict {
  const { status, detail, retryAfterMs } = end;
  if (status === 401) return { next: "new-token", detail };
  if (status === 403 || (MISTAKES.has(status) && !wasWelcomed)) {
    return { next: "give-up", reason: "refused", closing: { kind: "refused", code: status, detail } };
  }
  const wait = retryAfterMs === undefined ? {} : { afterMs: retryAfterMs };
  return { next: "reconnect", address: "next", ...wait };
}
