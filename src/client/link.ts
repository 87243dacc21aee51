import { closeReason } from "../protocol/close-codes.ts";
import { Addresses } from "./addresses.ts";
import { Backoff } from "./backoff.ts";
import type { Reading } from "./lease.ts";
import type { ClientSocket, ConnectionPorts, SocketEnd } from "./ports.ts";

/** One socket. What it says counts only while it is the link's present one. */
interface Wire {
  socket: ClientSocket | undefined;
}

type LinkState =
  | { readonly at: "idle" }
  | { readonly at: "dialing"; readonly wire: Wire; readonly dueAt: number }
  | { readonly at: "open"; readonly wire: Wire }
  | { readonly at: "waiting"; readonly dueAt: number }
  | { readonly at: "over" };

/** What the link hears, and only from its present socket. */
export interface LinkListener {
  /** Called first with the time of whatever is heard; false: it is not to be handled. */
  mayHear(at: Reading): boolean;
  opened(at: Reading): void;
  received(text: string, at: Reading): void;
  ended(end: SocketEnd, at: Reading): void;
}

/** One socket at a time, the addresses to try, and the waits between them. A new socket is opened only after the old was left. */
export class Link {
  readonly addresses: Addresses;
  readonly backoff: Backoff;
  readonly #ports: ConnectionPorts;
  readonly #listener: LinkListener;
  #state: LinkState = { at: "idle" };

  constructor(urls: readonly string[], ports: ConnectionPorts, listener: LinkListener) {
    this.#ports = ports;
    this.#listener = listener;
    this.addresses = new Addresses(urls);
    this.backoff = new Backoff(ports.random);
  }

  get state(): LinkState["at"] {
    return this.#state.at;
  }

  /** True while there is a socket, open or not. */
  get hasSocket(): boolean {
    return this.#state.at === "dialing" || this.#state.at === "open";
  }

  /** When a socket must be open, or the next be dialled. */
  get dueAt(): number {
    return "dueAt" in this.#state ? this.#state.dueAt : Number.POSITIVE_INFINITY;
  }

  /** Dials the present address. The socket must be open within `patienceMs`. */
  dial(at: Reading, patienceMs: number): void {
    const wire: Wire = { socket: undefined };
    this.#state = { at: "dialing", wire, dueAt: at.now + patienceMs };
    wire.socket = this.#ports.dial(this.addresses.current(), {
      opened: () =>
        this.#hear(wire, (now) => {
          this.#state = { at: "open", wire };
          this.#listener.opened(now);
        }),
      received: (text) => this.#hear(wire, (now) => this.#listener.received(text, now)),
      ended: (end) => this.#hear(wire, (now) => this.#listener.ended(end, now)),
    });
  }

  send(text: string): void {
    if (this.#state.at === "open") this.#state.wire.socket?.send(text);
  }

  /** Leaves the socket: nothing that it still says is heard. */
  leave(code: number, reason: string): void {
    const state = this.#state;
    if (state.at === "over") return;
    this.#state = { at: "idle" };
    if (state.at === "dialing" || state.at === "open") state.wire.socket?.close(code, closeReason(reason));
  }

  /** Waits before the next dial, at least `atLeastMs` and then a jitter of at most `capMs`. */
  wait(at: Reading, atLeastMs: number, capMs?: number): void {
    if (this.#state.at === "over") return;
    this.#state = { at: "waiting", dueAt: at.now + atLeastMs + this.backoff.nextMs(capMs) };
  }

  /** No socket is opened after this. */
  end(): void {
    this.#state = { at: "over" };
  }

  #hear(wire: Wire, handle: (at: Reading) => void): void {
    if (!("wire" in this.#state) || this.#state.wire !== wire) return;
    const at = readClock(this.#ports.clock);
    if (this.#listener.mayHear(at)) handle(at);
  }
}

export function readClock(clock: ConnectionPorts["clock"]): Reading {
  return { now: clock.now(), wall: clock.wall() };
}
