import type { SessionEffect } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import type { Stamps } from "../../src/driver/ports.ts";
import { frameEvent, helloEvent } from "../../src/gateway/frame-events.ts";
import type { SessionId } from "../../src/model/ids.ts";
import { CLOSE, closeReason } from "../../src/protocol/close-codes.ts";
import { decodeClientFrame, encodeFrame } from "../../src/protocol/codec.ts";
import type { ClientFrame, ServerFrame } from "../../src/protocol/frames.ts";
import { HELLO_TIMEOUT_MS, MAX_FRAME_BYTES } from "../../src/protocol/limits.ts";
import { pagePush } from "../../src/protocol/paging.ts";
import type { Machine } from "./machine.ts";
import type { Parcel, Side, Wire } from "./wire.ts";

/** Pages so small that a push of a few tables takes several. */
export const TINY_PAGE_BYTES = 360;

export interface GateOptions {
  readonly id: SessionId;
  readonly wire: Wire;
  readonly machine: Machine;
  readonly stamps: Stamps;
  readonly tinyPages: boolean;
  post(event: Event): void;
  /** A peer that broke the protocol, which the SDK never may. */
  breach(reason: string): void;
  onGone(): void;
}

/** The scheduler's side of one connection, as src/gateway has it, without WebSockets: events from frames, frames from effects. */
export class GateSession implements Side {
  readonly #options: GateOptions;
  #phase: "greeting" | "open" | "ended" = "greeting";
  #lastN = 0;

  constructor(options: GateOptions) {
    this.#options = options;
    options.machine.setTimer(HELLO_TIMEOUT_MS, () => {
      if (this.#phase === "greeting") this.close(CLOSE.silent, "no hello in time");
    });
    options.wire.attach(this);
    options.wire.sendDown({ kind: "open" });
  }

  heard(parcel: Parcel): void {
    this.#options.machine.enter(() => this.#hear(parcel));
  }

  lost(): void {
    this.#options.machine.enter(() => this.#end(1006));
  }

  deliver(effect: SessionEffect): void {
    if (effect.type === "session.close") return this.close(effect.code, effect.reason, effect.refused);
    if (this.#phase !== "open") return;
    for (const text of this.#frames(effect)) this.#options.wire.sendDown({ kind: "text", text });
  }

  close(code: number, reason: string, refused?: object): void {
    if (this.#phase === "ended") return;
    if (refused !== undefined) this.#send({ type: "refused", code, reason, ...refused });
    this.#end(code);
    this.#options.wire.sendDown({ kind: "close", code, reason: closeReason(reason) });
  }

  #hear(parcel: Parcel): void {
    if (this.#phase === "ended" || parcel.kind === "open") return;
    if (parcel.kind === "close") return this.#end(parcel.code);
    const decoded = decodeClientFrame(parcel.text);
    if (!decoded.ok) return this.#options.breach(`${decoded.close.reason}: ${parcel.text}`);
    this.#accept(decoded.frame);
  }

  #accept(frame: ClientFrame): void {
    const { id, post, breach } = this.#options;
    if (frame.type === "hello") {
      if (this.#phase !== "greeting" || frame.role !== "executor") return breach("a second hello");
      this.#phase = "open";
      return post(helloEvent(id, frame, this.#options.stamps));
    }
    if (this.#phase !== "open") return breach(`${frame.type} before hello`);
    if (frame.type === "renew") {
      if (frame.n <= this.#lastN) return breach("renew.n does not rise");
      this.#lastN = frame.n;
    }
    post(frameEvent(id, frame));
  }

  #end(code: number): void {
    if (this.#phase === "ended") return;
    if (this.#phase === "open") this.#options.post({ type: "session.closed", session: this.#options.id, code });
    this.#phase = "ended";
    this.#options.onGone();
  }

  #send(frame: ServerFrame): void {
    this.#options.wire.sendDown({ kind: "text", text: encodeFrame(frame) });
  }

  #frames(effect: Exclude<SessionEffect, { type: "session.close" }>): readonly string[] {
    switch (effect.type) {
      case "session.welcome": {
        const { type: _type, revision, ...rest } = effect;
        return [encodeFrame({ type: "welcome", ...rest, stamp: this.#options.stamps.mint(revision) })];
      }
      case "session.push": {
        const { revision, base, grant, prepare, revoke, tables, keys, cause } = effect;
        const lists = { revision, base, grant, prepare, revoke, tables, keys };
        if (!this.#options.tinyPages) return pagePush({ ...lists, cause }, MAX_FRAME_BYTES);
        return pagePush({ ...lists, cause: cause.slice(0, 1).map(({ kind }) => ({ kind })) }, TINY_PAGE_BYTES);
      }
      case "session.lease": {
        const { n, durationMs, renewMs, revision } = effect;
        return [encodeFrame({ type: "lease", n, durationMs, renewMs, stamp: this.#options.stamps.mint(revision) })];
      }
      case "session.goaway":
        return [encodeFrame({ type: "goaway", afterMs: effect.afterMs, reason: effect.reason })];
      case "session.left":
        return [encodeFrame({ type: "left" })];
      default:
        return effect satisfies never;
    }
  }
}
