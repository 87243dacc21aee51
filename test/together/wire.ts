import type { Chance } from "./chance.ts";
import type { Timeline } from "./timeline.ts";

/** The way between one process and the scheduler, shared by all its connections. */
export class Path {
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  /** Nothing gets through before these moments; it waits. */
  blockedUntil = { up: 0, down: 0 };
  /** Nobody can connect before this moment. */
  refusesUntil = 0;
  /** Longest time that a frame takes. */
  latencyMs: number;

  constructor(timeline: Timeline, chance: Chance, latencyMs: number) {
    this.#timeline = timeline;
    this.#chance = chance;
    this.latencyMs = latencyMs;
  }

  block(lanes: Lanes, until: number): void {
    const { up, down } = this.blockedUntil;
    this.blockedUntil = {
      up: lanes === "down" ? up : Math.max(up, until),
      down: lanes === "up" ? down : Math.max(down, until),
    };
  }

  arrival(): number {
    return this.#timeline.now + this.#chance.between(0.1, this.latencyMs);
  }
}

/** Directions of a connection: from the process up to the scheduler, and down again. */
export type Lanes = "both" | "up" | "down";

/** What goes over a wire: a frame, or the end of all frames. */
export type Parcel =
  | { readonly kind: "open" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** How often a blocked direction looks whether it still is. */
const LOOK_AGAIN_MS = 25;

/** One direction of a connection: first in, first out, each after its time. */
class Lane {
  readonly #timeline: Timeline;
  readonly #path: Path;
  readonly #direction: "up" | "down";
  readonly #deliver: (parcel: Parcel) => void;
  readonly #queue: { readonly parcel: Parcel; readonly at: number }[] = [];
  #lastAt = 0;
  #isCut = false;

  constructor(timeline: Timeline, path: Path, direction: "up" | "down", deliver: (parcel: Parcel) => void) {
    this.#timeline = timeline;
    this.#path = path;
    this.#direction = direction;
    this.#deliver = deliver;
  }

  send(parcel: Parcel): void {
    if (this.#isCut) return;
    this.#lastAt = Math.max(this.#lastAt, this.#path.arrival());
    this.#queue.push({ parcel, at: this.#lastAt });
    if (this.#queue.length === 1) this.#await();
  }

  /** What is under way is lost, and so is all that is still sent. */
  cut(): void {
    this.#isCut = true;
    this.#queue.length = 0;
  }

  #await(): void {
    const next = this.#queue[0];
    if (next === undefined) return;
    const { now } = this.#timeline;
    const isBlocked = next.at < this.#path.blockedUntil[this.#direction];
    // A block may be lifted before its time.
    this.#timeline.at(isBlocked ? now + LOOK_AGAIN_MS : next.at, () => {
      if (this.#queue[0] !== next) return;
      if (this.#path.blockedUntil[this.#direction] > this.#timeline.now) return this.#await();
      this.#queue.shift();
      this.#deliver(next.parcel);
      this.#await();
    });
  }
}

/** How one side of a connection hears. */
export interface Side {
  heard(parcel: Parcel): void;
  /** The connection is gone without a close. */
  lost(): void;
}

/** A connection between two sides. Broken, each side notices at its own time, or goes on believing in it until then. */
export class Wire {
  readonly #timeline: Timeline;
  readonly #up: Lane;
  readonly #down: Lane;
  #client: Side | undefined;
  #server: Side | undefined;
  #isBroken = false;

  constructor(timeline: Timeline, path: Path, client: Side) {
    this.#timeline = timeline;
    this.#client = client;
    this.#up = new Lane(timeline, path, "up", (parcel) => this.#server?.heard(parcel));
    this.#down = new Lane(timeline, path, "down", (parcel) => this.#client?.heard(parcel));
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** The scheduler's side takes the connection. */
  attach(server: Side): void {
    this.#server = server;
  }

  sendUp(parcel: Parcel): void {
    this.#up.send(parcel);
    if (parcel.kind === "close") this.#client = undefined;
  }

  sendDown(parcel: Parcel): void {
    this.#down.send(parcel);
    if (parcel.kind === "close") this.#server = undefined;
  }

  /** Nothing gets through any more; the sides notice after so long. */
  break(clientMs: number, serverMs: number): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#up.cut();
    this.#down.cut();
    this.#timeline.after(clientMs, () => this.#client?.lost());
    this.#timeline.after(serverMs, () => this.#server?.lost());
  }
  /** If it is broken, both sides notice now. */
  notice(): void {
    if (!this.#isBroken) return;
    this.#client?.lost();
    this.#server?.lost();
  }
}
