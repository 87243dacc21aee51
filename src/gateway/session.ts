import type { RawData, WebSocket } from "ws";
import type { Clock, LogPort, Refused, SessionEffect, SessionHost, Stamps, Timer } from "../driver/ports.ts";
import type { ExecutorId, SessionId } from "../model/ids.ts";
import { CLOSE, closeReason } from "../protocol/close-codes.ts";
import { decodeClientFrame } from "../protocol/codec.ts";
import type { ClientFrame, HelloFrame } from "../protocol/frames.ts";
import { HELLO_TIMEOUT_MS } from "../protocol/limits.ts";
import { frameEvent, helloEvent } from "./frame-events.ts";
import { Heartbeat } from "./heartbeat.ts";
import { CLOSE_DEADLINE_MS, type GatewayLimits, TOO_MANY_RETRY_MS } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { RateLimit } from "./rate-limit.ts";

export interface SessionOptions {
  readonly id: SessionId;
  readonly socket: WebSocket;
  readonly host: SessionHost;
  readonly stamps: Stamps;
  readonly clock: Clock;
  readonly log: LogPort;
  readonly limits: GatewayLimits;
  /** In [0, 1): where in its interval the first ping falls. */
  readonly phase: number;
  /** Called once, at the hello. */
  readonly onHello: () => void;
  /** Called once, when the socket is gone. */
  readonly onGone: () => void;
}

type Phase =
  | { readonly kind: "greeting"; readonly timer: Timer }
  | { readonly kind: "open"; readonly executor: ExecutorId; readonly heartbeat: Heartbeat }
  /** Nothing is heard or sent any more; the socket may still be there. */
  | { readonly kind: "ended" };

/**
 * One WebSocket connection: from its frames come events, from effects its frames. What the peer does wrong ends this
 * session and nothing else.
 *
 * Checked here, since it needs nothing but the session: hello first and only once, `n` rising, rate, silence. Whether an
 * ack is ahead of what was sent, the core knows.
 */
export class Session {
  readonly id: SessionId;
  readonly #options: SessionOptions;
  readonly #outbox: Outbox;
  readonly #rate: RateLimit;
  #phase: Phase;
  #lastN = 0;
  #closing: Timer | undefined;

  constructor(options: SessionOptions) {
    const { id, socket, clock, stamps, log, limits } = options;
    this.id = id;
    this.#options = options;
    this.#rate = new RateLimit(clock.now());
    const { maxBufferedBytes } = limits;
    this.#outbox = new Outbox({ session: id, socket, stamps, log, maxBufferedBytes, onSlow: () => this.#dropSlow() });
    const timer = clock.setTimer(HELLO_TIMEOUT_MS, () => this.close(CLOSE.silent, "no hello in time"));
    this.#phase = { kind: "greeting", timer };
    socket.on("message", (data, isBinary) => this.#guard(() => this.#receive(data, isBinary)));
    socket.on("ping", () => this.#guard(() => this.#spend()));
    // Counted although they cost little: nothing else bounds a flood of those that answer no ping.
    socket.on("pong", () => this.#guard(() => this.#answer()));
    // ws closes by itself what is not WebSocket; without a listener it would end the process.
    socket.on("error", (error) => this.#end(codeOfError(error), error.message));
    socket.on("close", (code) => {
      this.#end(code, "closed by the peer");
      this.#closing?.cancel();
      options.onGone();
    });
  }

  deliver(effect: SessionEffect): void {
    this.#guard(() => {
      if (effect.type === "session.close") this.close(effect.code, effect.reason, effect.refused);
      else if (this.#phase.kind === "open") this.#outbox.deliver(effect);
    });
  }

  /** Ends the session; with `refused`, that frame goes first. A peer that does not finish the handshake is cut off. */
  close(code: number, reason: string, refused?: Refused): void {
    if (this.#phase.kind === "ended") return;
    if (refused !== undefined) this.#outbox.send({ type: "refused", code, reason, ...refused });
    this.#end(code, reason);
    this.#options.socket.close(code, closeReason(reason));
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (!this.#spend()) return;
    if (isBinary) return this.close(CLOSE.binary, "binary frames are not taken; every frame is JSON text");
    const decoded = decodeClientFrame(data.toString());
    if (decoded.ok) this.#accept(decoded.frame);
    else this.close(decoded.close.code, decoded.close.reason);
  }

  #accept(frame: ClientFrame): void {
    if (frame.type === "hello") return this.#greet(frame);
    if (this.#phase.kind !== "open") return this.close(CLOSE.badMessage, `${frame.type}: a frame before hello`);
    if (frame.type === "renew") {
      if (frame.n <= this.#lastN) return this.close(CLOSE.badMessage, "renew.n: must rise within the session");
      this.#lastN = frame.n;
    }
    this.#options.host.post(frameEvent(this.id, frame));
  }

  #greet(hello: HelloFrame): void {
    const { host, clock, phase, socket, stamps, onHello } = this.#options;
    if (this.#phase.kind !== "greeting") return this.close(CLOSE.badMessage, "hello: a second one in this session");
    if (hello.role === "observer") return this.close(CLOSE.forbidden, "observers are not supported yet", {});
    this.#phase.timer.cancel();
    const onSilent = () => this.close(CLOSE.silent, "no ping was answered in time");
    const heartbeat = new Heartbeat({ clock, phase, ping: () => socket.ping(), onSilent });
    this.#phase = { kind: "open", executor: hello.executor, heartbeat };
    onHello();
    host.post(helloEvent(this.id, hello, stamps));
  }

  /** Counts a message; false if the session is over, be it by this one. */
  #spend(): boolean {
    if (this.#phase.kind === "ended") return false;
    if (this.#rate.take(this.#options.clock.now())) return true;
    this.close(CLOSE.tooMany, "too many messages", { retryAfterMs: TOO_MANY_RETRY_MS });
    return false;
  }

  #answer(): void {
    if (this.#spend() && this.#phase.kind === "open") this.#phase.heartbeat.answer();
  }

  /** What waits for a peer that does not read would only grow, and a close would wait behind it. */
  #dropSlow(): void {
    this.#end(ABNORMAL, "what was sent is read too slowly");
    this.#options.socket.terminate();
  }

  /** The one way into the last phase: from here on nothing is heard or sent, and the core is told if it knew the session. */
  #end(code: number, reason: string): void {
    const phase = this.#phase;
    if (phase.kind === "ended") return;
    this.#phase = { kind: "ended" };
    const { socket, clock, log, host } = this.#options;
    this.#closing = clock.setTimer(CLOSE_DEADLINE_MS, () => socket.terminate());
    if (phase.kind === "greeting") phase.timer.cancel();
    else {
      phase.heartbeat.stop();
      host.post({ type: "session.closed", session: this.id, code });
    }
    const executor = phase.kind === "open" ? { executor: phase.executor } : {};
    const level = BREACHES.has(code) ? "info" : "debug";
    log.log(level, "session.closed", { session: this.id, ...executor, code, reason });
  }

  /** A fault of ours in handling one session must not reach the others. */
  #guard(body: () => void): void {
    try {
      body();
    } catch (error) {
      const { log } = this.#options;
      log.log("error", "session.failed", { session: this.id, error, stack: (error as Error).stack });
      this.close(CLOSE.fault, "a fault of the scheduler");
    }
  }
}

/** The close code that ws answers a broken frame with. */
function codeOfError(error: Error & { readonly code?: string }): number {
  switch (error.code) {
    case "WS_ERR_INVALID_UTF8":
      return CLOSE.badUtf8;
    case "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH":
      return CLOSE.tooBig;
    case "WS_ERR_TOO_MANY_BUFFERED_PARTS":
      return TOO_MANY_PARTS;
    default:
      return PROTOCOL_ERROR;
  }
}

/** RFC 6455: not WebSocket, against the receiver's policy, and a socket that ended without a close frame. */
const PROTOCOL_ERROR = 1002;
const TOO_MANY_PARTS = 1008;
const ABNORMAL = 1006;

/** Ends that say that a peer is at fault. */
const BREACHES: ReadonlySet<number> = new Set([
  PROTOCOL_ERROR,
  TOO_MANY_PARTS,
  CLOSE.binary,
  CLOSE.badUtf8,
  CLOSE.tooBig,
  CLOSE.badMessage,
  CLOSE.tooMany,
]);
