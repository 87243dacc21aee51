import { WebSocket } from "ws";
import { CLOSE } from "../protocol/close-codes.ts";
import { MAX_FRAME_BYTES, SUBPROTOCOL } from "../protocol/limits.ts";
import type { TokenSource } from "./options.ts";
import type { ClientSocket, Dial, SocketEnd, SocketHandlers } from "./ports.ts";

/** Longest wait for the answer to the upgrade; the connection has a shorter one of its own once it knows the renew period. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** A peer that does not answer a close is cut after this; `close` alone would wait for it for ever. */
const CLOSE_DEADLINE_MS = 2_000;

/** How much of a refusal's body is read: a problem document takes a few hundred bytes. */
const MAX_REFUSAL_BYTES = 16_384;

/** Dials over ws. The token is asked for with each dial and goes into the Authorization header, never into the address. */
export function nodeDial(token: TokenSource | undefined): Dial {
  return (url, handlers) => {
    const socket = new NodeSocket(handlers);
    Promise.resolve(typeof token === "function" ? Promise.resolve().then(token) : token).then(
      (value) => socket.connect(url, value),
      (error: unknown) => socket.fail(`the token function failed: ${messageOf(error)}`),
    );
    return socket;
  };
}

class NodeSocket implements ClientSocket {
  readonly #handlers: SocketHandlers;
  #socket: WebSocket | undefined;
  #isOver = false;
  #isOpen = false;
  #problem = "the connection was lost";

  constructor(handlers: SocketHandlers) {
    this.#handlers = handlers;
  }

  connect(url: string, token: string | undefined): void {
    if (this.#isOver) return;
    const socket = new WebSocket(url, SUBPROTOCOL, {
      perMessageDeflate: false,
      maxPayload: MAX_FRAME_BYTES,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    this.#socket = socket;
    socket.on("open", () => {
      this.#isOpen = true;
      if (!this.#isOver) this.#handlers.opened();
    });
    socket.on("message", (data, isBinary) => {
      if (this.#isOver) return;
      if (!isBinary) return this.#handlers.received(data.toString());
      this.close(CLOSE.binary, "binary frame");
      this.#handlers.ended({ kind: "failed", detail: "the scheduler sent a binary frame" });
    });
    socket.on("unexpected-response", (request, response) => {
      readRefusal(response, (body) => {
        request.destroy();
        const { statusCode: status = 0 } = response;
        this.#end(refusalOf(status, body, response.headers["retry-after"]));
      });
    });
    // Without this listener one bad frame of the peer would end the process.
    socket.on("error", (error) => {
      this.#problem = messageOf(error);
    });
    socket.on("close", (code, reason) => {
      if (this.#isOpen)
        this.#end({ kind: "closed", code, reason: reason.toString() || (code === 1006 ? this.#problem : "") });
      else this.#end({ kind: "failed", detail: this.#problem });
    });
  }

  send(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  close(code: number, reason: string): void {
    this.#isOver = true;
    const socket = this.#socket;
    if (socket === undefined || socket.readyState >= WebSocket.CLOSING) return;
    socket.close(code, reason);
    const deadline = setTimeout(() => socket.terminate(), CLOSE_DEADLINE_MS);
    socket.once("close", () => clearTimeout(deadline));
  }

  /** Ends it before or without a close of the peer. */
  fail(detail: string): void {
    this.#end({ kind: "failed", detail });
  }

  #end(end: SocketEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handlers.ended(end);
  }
}

/** Reads the body of a refusal as far as it is of use, and calls back once, also if it breaks off. */
function readRefusal(response: NodeJS.ReadableStream, done: (body: string) => void): void {
  let body = "";
  let isDone = false;
  const finish = () => {
    if (isDone) return;
    isDone = true;
    done(body);
  };
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => {
    body += chunk;
    if (body.length > MAX_REFUSAL_BYTES) finish();
  });
  response.on("end", finish);
  response.on("error", finish);
  response.on("close", finish);
}

/** The end that an HTTP answer to the upgrade amounts to, with the detail of its problem document. */
export function refusalOf(status: number, body: string, retryAfter: string | undefined): SocketEnd {
  const seconds = Number(retryAfter);
  const retryAfterMs =
    retryAfter !== undefined && seconds >= 0 ? Math.min(seconds, MAX_RETRY_AFTER_S) * 1_000 : undefined;
  const detail = `status ${status}: ${detailOf(body) ?? "the upgrade was refused"}`;
  return { kind: "refused", status, detail, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** Longest Retry-After that is believed: an hour. */
const MAX_RETRY_AFTER_S = 3_600;

function detailOf(body: string): string | undefined {
  try {
    const { detail, title } = JSON.parse(body) as { readonly detail?: unknown; readonly title?: unknown };
    return [detail, title].find((text) => typeof text === "string");
  } catch {
    return undefined;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0].message;
  return error instanceof Error ? error.message || error.name : String(error);
}
