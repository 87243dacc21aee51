import { WebSocket } from "ws";
import type { LogPort, Push, SessionEffect, Stamps, Welcome } from "../driver/ports.ts";
import type { Grant } from "../model/grant.ts";
import type { ExecutorId, Revision, SessionId } from "../model/ids.ts";
import { encodeFrame } from "../protocol/codec.ts";
import type { ServerFrame } from "../protocol/frames.ts";
import { MAX_FRAME_BYTES } from "../protocol/limits.ts";
import { pagePush } from "../protocol/paging.ts";
import { MAX_LOGGED_ENTRIES } from "./limits.ts";

/** What the outbox needs of a socket. */
export type OutboxSocket = Pick<WebSocket, "send" | "readyState" | "bufferedAmount">;

export interface OutboxOptions {
  readonly session: SessionId;
  readonly socket: OutboxSocket;
  readonly stamps: Stamps;
  readonly log: LogPort;
  readonly maxBufferedBytes: number;
  /** Called when the peer takes what is sent too slowly; nothing more is written then. */
  readonly onSlow: () => void;
}

/** All that ends in a frame; a close ends the session. */
export type OutboxEffect = Exclude<SessionEffect, { readonly type: "session.close" }>;

/** Writes the frames of one session. */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Revision of the last stamp that this peer was sent. */
  #stampedAt: Revision | undefined;
  #lastPushBytes = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  deliver(effect: OutboxEffect): void {
    switch (effect.type) {
      case "session.welcome":
        return this.#welcome(effect);
      case "session.push":
        return this.#push(effect.executor, effect);
      case "session.lease": {
        const { n, durationMs, renewMs, revision } = effect;
        const stamp = revision === this.#stampedAt ? {} : { stamp: this.#stamp(revision) };
        return this.send({ type: "lease", n, durationMs, renewMs, ...stamp });
      }
      case "session.goaway":
        return this.send({ type: "goaway", afterMs: effect.afterMs, reason: effect.reason });
      case "session.left":
        return this.send({ type: "left" });
      default:
        return effect satisfies never;
    }
  }

  send(frame: ServerFrame): void {
    if (this.#mayWrite()) this.#options.socket.send(encodeFrame(frame));
  }

  #welcome({ cluster, incarnation, term, revision, resumed, status, waitingFor, lease }: Welcome): void {
    const { durationMs, renewMs, clientMarginMs } = lease;
    this.send({
      type: "welcome",
      cluster,
      incarnation,
      term,
      session: this.#options.session,
      resumed,
      status,
      ...(waitingFor === undefined ? {} : { waitingFor }),
      lease: { durationMs, renewMs, clientMarginMs },
      stamp: this.#stamp(revision),
    });
  }

  #push(executor: ExecutorId, { revision, base, grant, prepare, revoke, tables, keys, cause }: Push): void {
    if (!this.#mayWrite()) return;
    const { session, socket, log } = this.#options;
    // Encoded here rather than by ws, so that the bytes are known without another pass.
    const pages = pagePush({ revision, base, grant, prepare, revoke, tables, keys, cause }, MAX_FRAME_BYTES).map(
      (page) => Buffer.from(page),
    );
    for (const page of pages) socket.send(page, { binary: false });
    const bytes = pages.reduce((sum, page) => sum + page.length, 0);
    this.#lastPushBytes = bytes;
    log.log("info", "push.sent", {
      executor,
      session,
      revision,
      base,
      grant: logged(grant),
      revoke: logged(revoke),
      prepare: logged(prepare),
      bytes,
      pages: pages.length,
      cause,
    });
  }

  #stamp(revision: Revision): string {
    this.#stampedAt = revision;
    return this.#options.stamps.mint(revision);
  }

  /** Asked before a frame or a whole push is written: the last push may still wait, whatever its size. */
  #mayWrite(): boolean {
    const { socket, maxBufferedBytes, onSlow } = this.#options;
    if (socket.readyState !== WebSocket.OPEN) return false;
    if (socket.bufferedAmount <= maxBufferedBytes + this.#lastPushBytes) return true;
    onSlow();
    return false;
  }
}

/** Entries with their count, and how many partitions stand in those that are left out. */
function logged(grants: readonly Grant[]): readonly object[] {
  const shown: object[] = grants
    .slice(0, MAX_LOGGED_ENTRIES)
    .map(({ table, partitions, epoch }) => ({ table, partitions, epoch, count: partitions.size }));
  const rest = grants.slice(MAX_LOGGED_ENTRIES);
  if (rest.length === 0) return shown;
  return [...shown, { more: rest.length, count: rest.reduce((sum, { partitions }) => sum + partitions.size, 0) }];
}
