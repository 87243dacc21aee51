import { createHash, randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { closePayload, FrameReader, OPCODE, readClose, type WireFrame, writeFrame } from "./frames.ts";

/** PROTOCOL §1: where sessions are, and what is spoken there. */
const PATH = "/v1/session";
const SUBPROTOCOL = "evenkeel.v1";
/** PROTOCOL §3: the bounds hold both ways. */
const MAX_MESSAGE_BYTES = 262_144;
/** RFC 6455 §1.3. */
const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** How long the answer to an own close is waited for. */
const CLOSE_WAIT_MS = 1_000;

/** How a socket ended that its user did not close. */
export type End =
  /** By a close frame; 1006 without one. */
  | { readonly kind: "closed"; readonly code: number; readonly reason: string }
  /** The upgrade was answered with an HTTP status. */
  | { readonly kind: "refused"; readonly status: number; readonly retryAfterMs?: number }
  | { readonly kind: "failed"; readonly detail: string };

export interface Listener {
  opened(): void;
  text(text: string): void;
  ended(end: End): void;
}

/** One WebSocket of a client, over a bare TCP socket. After its own `close`, or the end, nothing is heard of it. */
export class WebSocketClient {
  /** False: pings stay unanswered, as by a peer that hangs. */
  answersPings = true;
  readonly #listener: Listener;
  readonly #socket: Socket;
  readonly #key = randomBytes(16).toString("base64");
  readonly #reader = new FrameReader();
  #head = Buffer.alloc(0);
  #isOpen = false;
  #isOver = false;
  /** Of a message that is not complete. */
  #parts: Buffer[] = [];

  /** `url` is that of a server, such as `ws://127.0.0.1:7420`. */
  constructor(url: string, listener: Listener) {
    const { hostname, port } = new URL(url);
    this.#listener = listener;
    this.#socket = connect({ host: hostname, port: Number(port) }, () =>
      this.#socket.write(this.#request(hostname, port)),
    );
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error) => this.#end({ kind: "failed", detail: error.message }));
    this.#socket.on("close", () => this.#end(this.#isOpen ? ABNORMAL : { kind: "failed", detail: "no answer" }));
  }

  send(text: string): void {
    this.sendFrame(OPCODE.text, Buffer.from(text));
  }

  /** Sends any frame, also one that nobody should. */
  sendFrame(opcode: number, payload: Buffer, fin = true): void {
    this.sendBytes(writeFrame(opcode, payload, { fin, mask: randomBytes(4) }));
  }

  /** Sends bytes that need not be a frame at all. */
  sendBytes(bytes: Buffer): void {
    if (this.#isOpen && this.#socket.writable) this.#socket.write(bytes);
  }

  /** Leaves: nothing more is heard of this socket, whatever it still brings. */
  close(code = 1000, reason = ""): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!this.#isOpen) {
      this.#socket.destroy();
      return;
    }
    this.#socket.end(writeFrame(OPCODE.close, closePayload(code, reason), { mask: randomBytes(4) }));
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_WAIT_MS);
    this.#socket.once("close", () => clearTimeout(timer));
  }

  /** Breaks the connection without a word. */
  destroy(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #request(hostname: string, port: string): string {
    const lines = [
      `GET ${PATH} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      `Sec-WebSocket-Key: ${this.#key}`,
      `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`,
    ];
    return `${lines.join("\r\n")}\r\n\r\n`;
  }

  #receive(chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#isOpen) return this.#readFrames(chunk);
    this.#head = Buffer.concat([this.#head, chunk]);
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return;
    const rest = this.#head.subarray(end + 4);
    const problem = this.#judge(this.#head.subarray(0, end).toString("latin1"));
    if (problem !== undefined) {
      this.#end(problem);
      this.#socket.destroy();
      return;
    }
    this.#isOpen = true;
    this.#listener.opened();
    if (rest.length > 0) this.#readFrames(rest);
  }

  /** Judges the answer to the upgrade. */
  #judge(head: string): End | undefined {
    const [statusLine = "", ...lines] = head.split("\r\n");
    const status = Number(statusLine.split(" ")[1]);
    const headers = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    if (status !== 101) {
      const seconds = Number(headers.get("retry-after") ?? Number.NaN);
      return { kind: "refused", status, ...(seconds >= 0 && { retryAfterMs: seconds * 1_000 }) };
    }
    const accept = createHash("sha1")
      .update(this.#key + ACCEPT_GUID)
      .digest("base64");
    if (headers.get("sec-websocket-accept") !== accept) return { kind: "failed", detail: "a wrong accept key" };
    if (headers.get("sec-websocket-protocol") !== SUBPROTOCOL) return { kind: "failed", detail: "a wrong subprotocol" };
    return undefined;
  }

  #readFrames(chunk: Buffer): void {
    for (const frame of this.#reader.read(chunk)) {
      if (this.#isOver) return;
      this.#handle(frame);
    }
  }

  #handle({ fin, opcode, payload }: WireFrame): void {
    switch (opcode) {
      case OPCODE.ping:
        if (this.answersPings) this.sendFrame(OPCODE.pong, payload);
        return;
      case OPCODE.pong:
        return;
      case OPCODE.close: {
        const { code, reason } = readClose(payload);
        if (this.#socket.writable) this.#socket.end(writeFrame(OPCODE.close, payload, { mask: randomBytes(4) }));
        return this.#end({ kind: "closed", code, reason });
      }
      case OPCODE.text:
      case OPCODE.continuation:
        this.#parts.push(payload);
        if (this.#parts.reduce((sum, part) => sum + part.length, 0) > MAX_MESSAGE_BYTES) return this.#refuse(1009);
        if (fin) this.#deliver(Buffer.concat(this.#parts.splice(0)));
        return;
      default:
        return this.#refuse(opcode === OPCODE.binary ? 1003 : 1002);
    }
  }

  #deliver(message: Buffer): void {
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(message);
    } catch {
      return this.#refuse(1007);
    }
    this.#listener.text(text);
  }

  /** The server broke a rule of the transport. */
  #refuse(code: number): void {
    this.close(code);
    this.#listener.ended({ kind: "failed", detail: `the server's frames are worth a close ${code}` });
  }

  #end(end: End): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.ended(end);
  }
}

/** RFC 6455 §7.1.5: the socket ended without a close frame. */
const ABNORMAL: End = { kind: "closed", code: 1006, reason: "" };
