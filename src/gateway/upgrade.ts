import type { IncomingMessage } from "node:http";
import type { Access } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { SESSION_PATH, SUBPROTOCOL } from "../protocol/limits.ts";

/** What of a request decides whether it may become a session. */
export type UpgradeRequest = Pick<IncomingMessage, "method" | "url" | "headers">;

/** Why a request does not become a session, with what its answer carries besides. */
export interface Refusal {
  readonly error: EvenkeelError;
  readonly headers?: Readonly<Record<string, string>>;
  readonly members?: Readonly<Record<string, unknown>>;
}

export interface Gate {
  readonly access: Access;
  /** Undefined while sessions are taken, else why not. */
  readonly closedBecause: () => string | undefined;
}

/** The checks of PROTOCOL §1 before the upgrade; undefined if it may go on. */
export function judgeUpgrade({ method, url = "", headers }: UpgradeRequest, gate: Gate): Refusal | undefined {
  const [path, query = ""] = splitOnce(url, "?");
  if (path !== SESSION_PATH) {
    const hint = `sessions are at ${SESSION_PATH}; everything else is asked without an Upgrade header`;
    return { error: new EvenkeelError("not-found", "no WebSocket is served at this path", hint) };
  }
  if (method !== "GET") {
    const error = new EvenkeelError("method-not-allowed", "a WebSocket is opened with GET");
    return { error, headers: { allow: "GET" } };
  }
  const wrong = judgeHandshake(headers);
  if (wrong !== undefined) return wrong;
  const { origin, host } = headers;
  const denied = gate.access.refuse({ query, origin, host });
  if (denied !== undefined) return { error: denied };
  if (!offered(headers["sec-websocket-protocol"]).includes(SUBPROTOCOL)) {
    const hint = `offer the subprotocol ${SUBPROTOCOL}`;
    const error = new EvenkeelError("invalid", "Sec-WebSocket-Protocol names no version that is spoken here", hint);
    return { error, members: { supported: [SUBPROTOCOL] } };
  }
  const why = gate.closedBecause();
  return why === undefined ? undefined : { error: new EvenkeelError("not-ready", why, "try again shortly") };
}

/** A key of 16 bytes in base64. */
const KEY_PATTERN = /^[+/0-9A-Za-z]{22}==$/;
const VERSION = "13";

function judgeHandshake(headers: IncomingMessage["headers"]): Refusal | undefined {
  if (headers.upgrade?.toLowerCase() !== "websocket") {
    const error = new EvenkeelError("upgrade-required", "the Upgrade header does not ask for websocket");
    return { error, headers: { upgrade: "websocket" } };
  }
  if (headers["sec-websocket-version"] !== VERSION) {
    const error = new EvenkeelError("upgrade-required", `Sec-WebSocket-Version is not ${VERSION}`);
    return { error, headers: { upgrade: "websocket", "sec-websocket-version": VERSION } };
  }
  if (!KEY_PATTERN.test(headers["sec-websocket-key"] ?? "")) {
    return { error: new EvenkeelError("invalid", "Sec-WebSocket-Key is missing or not 16 bytes in base64") };
  }
  return undefined;
}

function offered(header: string | undefined): readonly string[] {
  return (header ?? "").split(",").map((name) => name.trim());
}

function splitOnce(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
