import { type End, WebSocketClient } from "../independent/websocket.ts";
import type { Frame } from "./cable.ts";
import { until } from "./until.ts";

/** One end of a socket that says whatever a test lets it say, by hand, down to the bytes. */
export class Peer {
  readonly frames: Frame[] = [];
  readonly socket: WebSocketClient;
  readonly executor: string;
  readonly instance: string;
  end: End | undefined;
  #isOpen = false;
  #renewing: NodeJS.Timeout | undefined;

  private constructor(url: string, executor: string, instance: string) {
    this.executor = executor;
    this.instance = instance;
    this.socket = new WebSocketClient(url, {
      opened: () => {
        this.#isOpen = true;
      },
      text: (text) => void this.frames.push(JSON.parse(text) as Frame),
      ended: (end) => {
        this.end = end;
        this.stopRenewing();
      },
    });
  }

  /** Resolves when the upgrade is done. */
  static async connect(url: string, executor: string, instance = `${executor}-1`): Promise<Peer> {
    const peer = new Peer(url, executor, instance);
    await until(`the upgrade of ${executor}`, () => peer.#isOpen || peer.end !== undefined);
    return peer;
  }

  /** A peer that was welcomed. It takes no partition, unless told otherwise, so that it concerns nobody else. */
  static async join(url: string, executor: string, hello: object = {}): Promise<Peer> {
    const peer = await Peer.connect(url, executor);
    peer.hello(hello);
    await until(`the welcome of ${executor}`, () => peer.of("welcome").length > 0);
    return peer;
  }

  send(frame: object | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  hello(more: object = {}): void {
    const { executor, instance } = this;
    this.send({ type: "hello", role: "executor", executor, instance, attempt: 1, capacity: 0, ...more });
  }

  /** Renews as an executor must, from now until the end. */
  keepRenewing(everyMs: number): void {
    let n = 0;
    this.#renewing = setInterval(() => this.send({ type: "renew", n: ++n }), everyMs);
  }

  stopRenewing(): void {
    clearInterval(this.#renewing);
  }

  of(type: string): readonly Frame[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  /** Code and reason of the close that ends it. */
  async closed(withinMs?: number): Promise<{ readonly code: number; readonly reason: string }> {
    const end = await until(`the end of ${this.executor}`, () => this.end, withinMs === undefined ? {} : { withinMs });
    if (end.kind !== "closed") throw new Error(`${this.executor} ended by ${JSON.stringify(end)}`);
    return end;
  }

  leave(): void {
    this.stopRenewing();
    this.socket.destroy();
  }
}
