import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type {
  Access,
  Clock,
  LogPort,
  Random,
  SessionEffect,
  SessionHost,
  SessionPort,
  Stamps,
} from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { type SessionId, sessionId } from "../model/ids.ts";
import { CLOSE } from "../protocol/close-codes.ts";
import { MAX_FRAME_BYTES, SUBPROTOCOL } from "../protocol/limits.ts";
import { CLOSE_DEADLINE_MS, GATEWAY_LIMITS, type GatewayLimits, MAX_BUFFERED_CHUNKS, MAX_FRAGMENTS } from "./limits.ts";
import { brokenRequest, refuse } from "./refusal.ts";
import { Session } from "./session.ts";
import { judgeUpgrade, type Refusal } from "./upgrade.ts";

const SOCKET_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_FRAME_BYTES,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_BUFFERED_CHUNKS,
  // For closes that the peer began, or that ws made on a broken frame.
  closeTimeout: CLOSE_DEADLINE_MS,
  handleProtocols: () => SUBPROTOCOL,
};

export interface GatewayOptions {
  readonly host: SessionHost;
  readonly stamps: Stamps;
  readonly access: Access;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: LogPort;
  readonly limits?: Partial<GatewayLimits>;
}

/** All sessions of a scheduler: takes upgrades of an HTTP server and carries the core's session effects out. */
export class Gateway implements SessionPort {
  readonly #options: GatewayOptions;
  readonly #limits: GatewayLimits;
  readonly #sockets: WebSocketServer;
  /** Until their sockets are gone. */
  readonly #sessions = new Map<SessionId, Session>();
  readonly #greeting = new Set<SessionId>();
  #isClosed = false;
  #onEmpty: () => void = () => {};

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#limits = { ...GATEWAY_LIMITS, ...options.limits };
    this.#sockets = new WebSocketServer(SOCKET_OPTIONS);
    this.#sockets.on("wsClientError", (_error, socket) => {
      this.#refuse(socket, { error: new EvenkeelError("invalid", "the WebSocket headers are not valid") });
    });
  }

  /** Sessions whose sockets are there. */
  get sessionCount(): number {
    return this.#sessions.size;
  }

  /** Listener for `upgrade` of an HTTP server. */
  readonly handleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const gate = { access: this.#options.access, closedBecause: () => this.#closedBecause() };
    const refusal = judgeUpgrade(request, gate);
    if (refusal !== undefined) this.#refuse(socket, refusal);
    else this.#sockets.handleUpgrade(request, socket, head, (webSocket) => this.#open(webSocket));
  };

  /** Listener for `connect` of an HTTP server: nothing is reached through this one. */
  readonly handleConnect = (_request: IncomingMessage, socket: Duplex): void => {
    const error = new EvenkeelError("method-not-allowed", "this server is no proxy");
    this.#refuse(socket, { error, headers: { allow: "" } });
  };

  /** Listener for `clientError` of an HTTP server: requests that are not HTTP, too large or too slow. */
  readonly handleClientError = (error: NodeJS.ErrnoException, socket: Duplex): void => {
    this.#refuse(socket, brokenRequest(error));
  };

  deliver(effect: SessionEffect): void {
    this.#sessions.get(effect.session)?.deliver(effect);
  }

  /** Takes no more sessions and ends those that are there. Resolves when their sockets are gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#sessions.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const session of this.#sessions.values()) session.close(CLOSE.goingAway, "the scheduler is shutting down");
    await empty;
  }

  #closedBecause(): string | undefined {
    if (this.#isClosed || !this.#options.host.ready()) return "no sessions are taken at the moment";
    if (this.#sessions.size >= this.#limits.maxSessions)
      return `there are ${this.#limits.maxSessions} sessions already`;
    if (this.#greeting.size >= this.#limits.maxPendingHellos) return "too many sessions have not said hello yet";
    return undefined;
  }

  #open(socket: WebSocket): void {
    const { host, stamps, clock, random, log } = this.#options;
    const id = sessionId(random.id());
    const session = new Session({
      id,
      socket,
      host,
      stamps,
      clock,
      log,
      limits: this.#limits,
      phase: random.next(),
      onHello: () => this.#greeting.delete(id),
      onGone: () => this.#forget(id),
    });
    this.#sessions.set(id, session);
    this.#greeting.add(id);
    log.log("debug", "session.opened", { session: id });
  }

  #forget(id: SessionId): void {
    this.#sessions.delete(id);
    this.#greeting.delete(id);
    if (this.#sessions.size === 0) this.#onEmpty();
  }

  #refuse(socket: Duplex, refusal: Refusal): void {
    const { code, detail } = refusal.error;
    this.#options.log.log("debug", "upgrade.refused", { code, detail });
    refuse(socket, refusal, this.#options.clock);
  }
}
