import type { ExecutorTraits } from "../model/change.ts";
import { encodeFrame } from "../protocol/codec.ts";
import type { ClientFrame, LeaseFrame, PushFrame, ServerFrame, WelcomeFrame } from "../protocol/frames.ts";
import { PushAssembler } from "../protocol/paging.ts";
import type { LeaveMode } from "./connection-state.ts";
import type { Reading } from "./lease.ts";
import type { Share } from "./share.ts";

/** Reports are gathered this long, so that thousands of partitions becoming ready stay far below the message limit. */
const REPORT_GAP_MS = 20;

/** Renewing faster than this serves nobody; it bounds what a mistaken answer can make of this client. */
const MIN_RENEW_MS = 10;

/** How a session goes on after a frame or a wake-up. */
export type Outcome =
  | { readonly next: "go-on" }
  /** The scheduler broke the protocol. */
  | { readonly next: "breach"; readonly problem: string }
  /** Leave this socket and say hello with what is held. */
  | { readonly next: "resume"; readonly problem: string }
  /** The scheduler asked to be left, and the time has come. */
  | { readonly next: "move-on" }
  /** Nothing is owned any more. */
  | { readonly next: "left" };

const GO_ON: Outcome = { next: "go-on" };

/** What a session works on. */
export interface SessionPorts {
  readonly share: Share;
  send(text: string): void;
  stampedWith(stamp: string | undefined): void;
}

/** One welcomed session: renews, applies pushes, reports. It dies with its socket, and unfinished pages with it. */
export class Session {
  readonly id: string;
  /** Monotonic time of the welcome. */
  readonly since: number;
  status: "pending" | "assigned";
  waitingFor: string | undefined;
  readonly #ports: SessionPorts;
  readonly #pushes = new PushAssembler();
  #durationMs: number;
  #renewMs: number;
  #goawayAt = Number.POSITIVE_INFINITY;
  #flushAt = Number.POSITIVE_INFINITY;
  /** Of the last renew; 0 stands for the hello, which the welcome has answered. */
  #n = 0;
  #sentAt: Reading;
  #answered = true;

  constructor(
    { session, status, waitingFor }: WelcomeFrame,
    lease: NonNullable<WelcomeFrame["lease"]>,
    helloSentAt: Reading,
    at: Reading,
    ports: SessionPorts,
  ) {
    this.id = session;
    this.since = at.now;
    this.status = status;
    this.waitingFor = waitingFor;
    this.#ports = ports;
    this.#sentAt = helloSentAt;
    this.#durationMs = lease.durationMs;
    this.#renewMs = Math.max(MIN_RENEW_MS, lease.renewMs);
    ports.share.setMargin(lease.clientMarginMs);
    ports.share.extend(helloSentAt, lease, at);
  }

  /** Length of the lease by the last answer. */
  get durationMs(): number {
    return this.#durationMs;
  }

  /** How often to renew, by the last answer. */
  get renewMs(): number {
    return this.#renewMs;
  }

  /** When anything is due; the lease and the limits apart. */
  get dueAt(): number {
    return Math.min(this.#sentAt.now + this.#renewMs, this.#goawayAt, this.#flushAt);
  }

  /** What is said after every welcome: what is ready, failed and released, traits that hello had not, the wish to leave. */
  repeat(told: ExecutorTraits, traits: ExecutorTraits, leaving: LeaveMode | undefined): void {
    this.#ports.share.oweEverything();
    this.#flush();
    if (traits !== told) {
      const { zone: _zone, slot: _slot, ...changeable } = traits;
      this.send({ type: "update", ...changeable });
    }
    if (leaving) this.send({ type: "leave", mode: leaving });
  }

  receive(frame: ServerFrame, at: Reading): Outcome {
    switch (frame.type) {
      case "push":
        return this.#push(frame, at);
      case "lease":
        return this.#lease(frame, at);
      case "goaway":
        this.#goawayAt = Math.min(this.#goawayAt, at.now + frame.afterMs);
        return GO_ON;
      case "left":
        return { next: "left" };
      case "welcome":
        return { next: "breach", problem: "a second welcome" };
      default:
        // The rest are frames for observers, which no scheduler sends to an executor.
        return GO_ON;
    }
  }

  doWhatIsDue(at: Reading): Outcome {
    if (at.now >= this.#goawayAt) return { next: "move-on" };
    if (at.now >= this.#flushAt) this.#flush();
    if (at.now < this.#sentAt.now + this.#renewMs) return GO_ON;
    if (!this.#answered) return { next: "resume", problem: "a renew stayed unanswered" };
    this.#n++;
    this.#sentAt = at;
    this.#answered = false;
    this.send({ type: "renew", n: this.#n });
    return GO_ON;
  }

  /** Sees to it that what is unsent goes out soon, together with what comes up meanwhile. */
  gather(at: Reading): void {
    if (this.#ports.share.hasUnsent) this.#flushAt = Math.min(this.#flushAt, at.now + REPORT_GAP_MS);
  }

  send(frame: ClientFrame): void {
    this.#ports.send(encodeFrame(frame));
  }

  #push(page: PushFrame, at: Reading): Outcome {
    const assembled = this.#pushes.add(page);
    if (assembled.type === "breach") return { next: "breach", problem: assembled.reason };
    if (assembled.type === "partial") return GO_ON;
    const { push } = assembled;
    const { share } = this.#ports;
    if (push.base !== null && push.base !== share.revision) {
      return { next: "resume", problem: `a push from revision ${push.base}, at ${share.revision ?? "none"}` };
    }
    this.status = "assigned";
    this.waitingFor = undefined;
    share.apply(push, at);
    // What is loaded already is told before the ack: by then the scheduler withdraws what it has not heard of.
    this.#flush();
    this.send({ type: "ack", revision: push.revision });
    return GO_ON;
  }

  #lease({ n, durationMs, renewMs, stamp }: LeaseFrame, at: Reading): Outcome {
    if (n > this.#n) return { next: "breach", problem: "a lease for a renew that was not sent" };
    if (n < this.#n || this.#answered) return GO_ON;
    this.#answered = true;
    this.#durationMs = durationMs;
    this.#renewMs = Math.max(MIN_RENEW_MS, renewMs);
    this.#ports.stampedWith(stamp);
    this.#ports.share.extend(this.#sentAt, { durationMs, renewMs }, at);
    return GO_ON;
  }

  #flush(): void {
    this.#flushAt = Number.POSITIVE_INFINITY;
    for (const report of this.#ports.share.takeReports()) this.#ports.send(report);
  }
}
