import type { WelcomeFrame } from "../protocol/frames.ts";
import { PushAssembler } from "../protocol/paging.ts";
import type { Reading } from "./lease.ts";

/** Reports are gathered this long, so that thousands of partitions becoming ready stay far below the message limit. */
const REPORT_GAP_MS = 20;

/** What there is to know of one welcomed session: it dies with its socket. */
export class Session {
  readonly id: string;
  /** Monotonic time of the welcome. */
  readonly since: number;
  readonly pushes = new PushAssembler();
  status: "pending" | "assigned";
  waitingFor: string | undefined;
  goawayAt = Number.POSITIVE_INFINITY;
  /** When the reports gathered are to be sent. */
  flushAt = Number.POSITIVE_INFINITY;
  /** Of the last renew; 0 stands for the hello, which the welcome has answered. */
  #n = 0;
  #sentAt: Reading;
  #answered = true;

  constructor(welcome: WelcomeFrame, helloSentAt: Reading, at: Reading) {
    this.id = welcome.session;
    this.since = at.now;
    this.status = welcome.status;
    this.waitingFor = welcome.waitingFor;
    this.#sentAt = helloSentAt;
  }

  /** True while a renew is out. */
  get isUnanswered(): boolean {
    return !this.#answered;
  }

  /** When the next renew is to be sent, and the last one must have been answered. */
  renewDueAt(renewMs: number): number {
    return this.#sentAt.now + renewMs;
  }

  /** When anything is due. */
  dueAt(renewMs: number): number {
    return Math.min(this.renewDueAt(renewMs), this.goawayAt, this.flushAt);
  }

  /** Number of the renew that is sent now. */
  nextRenew(at: Reading): number {
    this.#n++;
    this.#sentAt = at;
    this.#answered = false;
    return this.#n;
  }

  /** When what is answered was sent; undefined for an answer that came before; `breach` for one to a renew never sent. */
  answer(n: number): Reading | "breach" | undefined {
    if (n > this.#n) return "breach";
    if (n < this.#n || this.#answered) return undefined;
    this.#answered = true;
    return this.#sentAt;
  }

  /** When what is unsent is to go out: soon, together with what comes up meanwhile. */
  gather(at: Reading): number {
    this.flushAt = Math.min(this.flushAt, at.now + REPORT_GAP_MS);
    return this.flushAt;
  }
}
