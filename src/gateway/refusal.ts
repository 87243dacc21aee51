import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { PROBLEM_TYPE, problemHeaders, problemOf } from "../model/problem.ts";
import { LINGER_MS } from "./limits.ts";
import type { Refusal } from "./upgrade.ts";

/**
 * Answers a request that never reached a handler, on its bare socket, and ends that. What the peer still sends is read for
 * a moment and dropped: a socket closed with unread data is reset, and the reset can overtake the answer.
 */
export function refuse(socket: Duplex, refusal: Refusal, clock: Clock): void {
  // The HTTP parser reports again what follows on a request that was answered already.
  if (socket.writableEnded) return;
  socket.on("error", () => socket.destroy());
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const timer = clock.setTimer(LINGER_MS, () => socket.destroy());
  socket.once("close", () => timer.cancel());
  socket.once("end", () => socket.destroy());
  socket.end(answer(refusal));
  socket.resume();
}

/** What is wrong with a request that the HTTP parser gave up on. */
export function brokenRequest(error: NodeJS.ErrnoException): Refusal {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return { error: new EvenkeelError("headers-too-large", "the headers are larger than this server takes") };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { error: new EvenkeelError("request-timeout", "the request was not complete in time") };
    default:
      return { error: new EvenkeelError("invalid", "what was sent is not an HTTP/1.1 request") };
  }
}

function answer({ error, headers, members }: Refusal): string {
  const problem = problemOf(error);
  const body = JSON.stringify({ ...problem, ...members });
  const head = {
    "content-type": PROBLEM_TYPE,
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...problemHeaders(problem.status),
    ...headers,
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`;
}
