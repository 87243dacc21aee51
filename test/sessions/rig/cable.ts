import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { FrameReader, OPCODE, readClose, type WireFrame, writeFrame } from "../independent/frames.ts";

/** A frame that went through a cable. */
export interface Seen {
  /** Connections of a cable are numbered from 0. */
  readonly connection: number;
  readonly from: "client" | "server";
  /** Monotonic ms of this process. */
  readonly at: number;
  /** False if it was swallowed. */
  readonly delivered: boolean;
  /** A JSON frame, or `{type: "close", code, reason}` for a close frame of RFC 6455. */
  readonly frame: Frame;
}

export type Frame = { readonly type: string } & Readonly<Record<string, unknown>>;

/**
 * What lies between one client and the scheduler: a TCP relay that can be cut, blocked, left half-open or made to swallow
 * what a client sends, and that keeps every frame that went through, whichever client and server stand at its ends.
 */
export class Cable {
  readonly seen: Seen[] = [];
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #connections: Connection[] = [];
  #isBlocked = false;
  /** From the first client frame that matches, nothing more of that connection reaches the server. */
  swallowFrom: ((frame: Frame) => boolean) | undefined;
  /** Frames of the server that never reach the client; all else does, its pings too. */
  keepBack: ((frame: Frame) => boolean) | undefined;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    server.on("connection", (socket) => this.#accept(socket));
  }

  static async lay(targetPort: number): Promise<Cable> {
    const server = createServer({ allowHalfOpen: true });
    const cable = new Cable(server, targetPort);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return cable;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the cable is not laid");
    return `ws://127.0.0.1:${address.port}`;
  }

  get connectionCount(): number {
    return this.#connections.length;
  }

  /** Frames of one type in the order they went through. */
  of(type: string, connection?: number): readonly Seen[] {
    return this.seen.filter((one) => one.frame.type === type && (connection ?? one.connection) === one.connection);
  }

  /** Breaks the connections there are; new ones may be made. */
  cut(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  /** Breaks the connections there are and lets no new one through. */
  block(): void {
    this.#isBlocked = true;
    this.cut();
  }

  unblock(): void {
    this.#isBlocked = false;
  }

  /** The client loses the connection and the server does not notice. The result breaks the server's side, too. */
  leaveHalfOpen(): () => void {
    const connection = this.#connections.at(-1);
    if (connection === undefined) throw new Error("nothing is connected");
    connection.loseClient();
    return () => connection.destroy();
  }

  async close(): Promise<void> {
    this.block();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(socket: Socket): void {
    if (this.#isBlocked) {
      socket.on("error", () => {});
      socket.destroy();
      return;
    }
    const index = this.#connections.length;
    const connection: Connection = new Connection(
      socket,
      connect({ port: this.#targetPort, host: "127.0.0.1", allowHalfOpen: true }),
      {
        seen: (from, frame, delivered) =>
          void this.seen.push({ connection: index, from, at: performance.now(), delivered, frame }),
        swallows: (frame) => this.swallowFrom?.(frame) === true,
        keepsBack: (frame) => this.keepBack?.(frame) === true,
      },
    );
    this.#connections.push(connection);
  }
}

interface Tap {
  seen(from: Seen["from"], frame: Frame, delivered: boolean): void;
  swallows(frame: Frame): boolean;
  keepsBack(frame: Frame): boolean;
}

class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #tap: Tap;
  #isSwallowing = false;
  #isHalfOpen = false;

  constructor(client: Socket, server: Socket, tap: Tap) {
    this.#client = client;
    this.#server = server;
    this.#tap = tap;
    const toServer = afterHead(
      (head) => void server.write(head),
      (frames) => this.#passOn(frames),
    );
    const toClient = afterHead(
      (head) => void client.write(head),
      (frames) => this.#passBack(frames),
    );
    client.setNoDelay(true);
    server.setNoDelay(true);
    client.on("data", toServer);
    server.on("data", toClient);
    client.on("end", () => !this.#isHalfOpen && server.end());
    server.on("end", () => client.end());
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("close", () => !this.#isHalfOpen && server.destroy());
    server.on("close", () => client.destroy());
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  loseClient(): void {
    this.#isHalfOpen = true;
    this.#client.destroy();
  }

  #passOn(frames: readonly WireFrame[]): void {
    for (const frame of frames) {
      const json = readJson(frame);
      this.#isSwallowing ||= json !== undefined && this.#tap.swallows(json);
      this.#note("client", frame, !this.#isSwallowing);
      if (this.#isSwallowing || !this.#server.writable) continue;
      this.#server.write(writeFrame(frame.opcode, frame.payload, { fin: frame.fin, mask: NO_MASK }));
    }
  }

  #passBack(frames: readonly WireFrame[]): void {
    for (const frame of frames) {
      const json = readJson(frame);
      const isKept = json !== undefined && this.#tap.keepsBack(json);
      this.#note("server", frame, !isKept);
      if (!isKept && this.#client.writable) {
        this.#client.write(writeFrame(frame.opcode, frame.payload, { fin: frame.fin }));
      }
    }
  }

  #note(from: Seen["from"], frame: WireFrame, delivered: boolean): void {
    const json = frame.opcode === OPCODE.close ? { type: "close", ...readClose(frame.payload) } : readJson(frame);
    if (json !== undefined) this.#tap.seen(from, json, delivered);
  }
}

const NO_MASK = Buffer.alloc(4);

function readJson({ opcode, payload }: WireFrame): Frame | undefined {
  return opcode === OPCODE.text ? (JSON.parse(payload.toString("utf8")) as Frame) : undefined;
}

/** Splits a stream into its HTTP head, passed on as it is, and the frames after it. An answer that is no upgrade has none. */
function afterHead(passHead: (bytes: Buffer) => void, passFrames: (frames: readonly WireFrame[]) => void) {
  const reader = new FrameReader();
  let head = Buffer.alloc(0);
  let stage: "head" | "frames" | "body" = "head";
  return (chunk: Buffer): void => {
    if (stage === "body") return passHead(chunk);
    if (stage === "frames") return passFrames(reader.read(chunk));
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    const isUpgrade = /^(GET |HTTP\/1\.1 101 )/.test(head.toString("latin1", 0, 16));
    stage = isUpgrade ? "frames" : "body";
    if (!isUpgrade) return passHead(head);
    passHead(head.subarray(0, end + 4));
    passFrames(reader.read(head.subarray(end + 4)));
  };
}
