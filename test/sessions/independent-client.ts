import { randomUUID } from "node:crypto";
import { Backoff } from "./independent/backoff.ts";
import { type Holding, Holdings, type Owed } from "./independent/holdings.ts";
import { Lease, type Moment, readMoment } from "./independent/lease.ts";
import { type LeaseAnswer, Pages, type Push, type Refused, readMessage, type Welcome } from "./independent/messages.ts";
import { type End, WebSocketClient } from "./independent/websocket.ts";

/**
 * An executor written from the wire document alone, down to the frames of RFC 6455: it shares no code with src. What it can
 * do, a client in any language can; what it cannot is missing in the document. Exclusive tables only, as §15 says.
 */

export interface IndependentOptions {
  /** Address of a scheduler, such as `ws://127.0.0.1:7420`. */
  readonly url: string;
  readonly executor: string;
  /** Made anew for each start unless given. */
  readonly instance?: string;
  /** Any of the optional members of hello that describe this executor. */
  readonly traits?: Readonly<Record<string, unknown>>;
  readonly load: (holding: Holding) => Promise<void>;
  readonly unload: (holding: Holding) => Promise<void>;
  /** Something else may be served than before. */
  readonly changed?: () => void;
}

/** How it ended for good: by a code of §11, an HTTP status of §1, or as its owner wished. */
export interface IndependentEnd {
  readonly reason: "left" | "closed" | "replaced" | "refused";
  readonly code?: number;
  readonly detail?: string;
}

/** §1: how long a hello may stay unanswered while no renew period is known. */
const FIRST_ANSWER_MS = 4_000;
/** Reports of partitions that get ready one after the other go together, to stay far from the limit of frames. */
const GATHER_MS = 10;
/** Ranges in one entry of a report, so that a frame stays far below its limit. */
const MAX_RANGES = 5_000;

/** §11: closes after which nothing may be served and nothing is tried again. */
const FINAL_CODES: ReadonlySet<number> = new Set([1003, 1007, 1009, 4400, 4401, 4403, 4409]);
/** §1: answers to an upgrade that no repetition makes better; this client has no other token to show. */
const FINAL_STATUSES: ReadonlySet<number> = new Set([401, 403]);
/** §1: the same, for who was never welcomed. */
const MISTAKES: ReadonlySet<number> = new Set([400, 404, 405, 426, 431]);

type Stage =
  | { readonly at: "waiting"; readonly until: number }
  | { readonly at: "opening"; readonly until: number }
  | { readonly at: "greeting"; readonly sentAt: Moment; readonly until: number }
  | { readonly at: "welcomed"; readonly session: Session }
  | { readonly at: "over" };

interface Session {
  readonly id: string;
  readonly since: number;
  readonly pages: Pages;
  status: "pending" | "assigned";
  waitingFor: string | undefined;
  n: number;
  sentAt: Moment;
  isAnswered: boolean;
  leaveAt: number;
  reportAt: number;
}

export class IndependentClient {
  readonly executor: string;
  readonly instance: string;
  readonly ended: Promise<IndependentEnd>;
  readonly #options: IndependentOptions;
  readonly #holdings: Holdings;
  readonly #lease = new Lease();
  readonly #backoff = new Backoff();
  #resolveEnded: (end: IndependentEnd) => void = () => {};
  #socket: WebSocketClient | undefined;
  #stage: Stage = { at: "waiting", until: 0 };
  #timer: NodeJS.Timeout | undefined;
  #attempt = 0;
  #stamp: string | undefined;
  #store: { readonly cluster: string; readonly incarnation: string; readonly term: number } | undefined;
  #revision: number | undefined;
  #renewMs = FIRST_ANSWER_MS;
  #durationMs = 0;
  #leaving: "move" | "restart" | undefined;
  #refused: Refused | undefined;

  constructor(options: IndependentOptions) {
    this.#options = options;
    this.executor = options.executor;
    this.instance = options.instance ?? randomUUID();
    this.#holdings = new Holdings({ ...options, changed: () => this.#changed() });
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#dial();
  }

  /** Epoch under which the partition may be served at this moment. Judged by the clock at each call (§5, §6.7). */
  mayServe(table: string, partition: number): number | undefined {
    const now = readMoment();
    if (this.#checkLapse(now) || !this.#lease.isHeld) return undefined;
    return this.#holdings.epochServed(table, partition, now, this.#lease.marginMs);
  }

  get status() {
    const session = this.#stage.at === "welcomed" ? this.#stage.session : undefined;
    const state = this.#stage.at === "over" ? "closed" : (session?.status ?? "connecting");
    return { state, session: session?.id, waitingFor: session?.waitingFor, revision: this.#revision } as const;
  }

  leave(mode: "move" | "restart"): void {
    this.#leaving = mode;
    if (this.#stage.at === "welcomed") this.#send({ type: "leave", mode });
  }

  close(): void {
    this.#finish({ reason: "closed" });
  }

  #dial(): void {
    const socket = new WebSocketClient(this.#options.url, {
      opened: () => this.#hear(socket, () => this.#greet()),
      text: (text) => this.#hear(socket, (now) => this.#receive(text, now)),
      ended: (end) => this.#hear(socket, () => this.#lost(end)),
    });
    this.#socket = socket;
    this.#refused = undefined;
    this.#stage = { at: "opening", until: performance.now() + this.#renewMs };
    this.#arm();
  }

  /** §5.2: the lapse is judged before each frame. §8: an abandoned socket is not heard. */
  #hear(socket: WebSocketClient, handle: (now: Moment) => void): void {
    if (this.#socket !== socket) return;
    const now = readMoment();
    if (!this.#checkLapse(now)) handle(now);
    this.#arm();
  }

  #greet(): void {
    const { executor, instance } = this;
    const { traits = {} } = this.#options;
    const sentAt = readMoment();
    this.#attempt++;
    this.#stage = { at: "greeting", sentAt, until: sentAt.mono + this.#renewMs };
    const known = this.#store;
    const resume = known !== undefined && this.#revision !== undefined;
    this.#send({
      type: "hello",
      role: "executor",
      executor,
      instance,
      attempt: this.#attempt,
      ...(this.#stamp !== undefined && { stamp: this.#stamp }),
      ...(resume && { resume: { incarnation: known.incarnation, revision: this.#revision } }),
      ...traits,
    });
  }

  #receive(text: string, now: Moment): void {
    try {
      const message = readMessage(text);
      if (message === undefined) return;
      if (message.type === "welcome") return this.#welcome(message, now);
      if (message.type === "refused") {
        this.#refused = message;
        return;
      }
      if (this.#stage.at !== "welcomed") throw new Error(`${message.type} before welcome`);
      const { session } = this.#stage;
      if (message.type === "push") this.#push(message, session, now);
      else if (message.type === "lease") this.#extend(message, session);
      else if (message.type === "goaway") session.leaveAt = Math.min(session.leaveAt, now.mono + message.afterMs);
      else if (this.#leaving !== undefined) this.#finish({ reason: "left" });
    } catch {
      this.#redial(4400);
    }
  }

  #welcome(welcome: Welcome, now: Moment): void {
    if (this.#stage.at !== "greeting") throw new Error("a welcome that nobody asked for");
    const { sentAt } = this.#stage;
    const { cluster, incarnation, term, lease } = welcome;
    const known = this.#store;
    const isOther = known !== undefined && (known.cluster !== cluster || known.incarnation !== incarnation);
    if (!isOther && known !== undefined && term < known.term) return this.#redial();
    this.#store = { cluster, incarnation, term };
    this.#stamp = welcome.stamp;
    if (isOther) {
      this.#stamp = undefined;
      this.#stopEverything(now);
      return this.#redial();
    }
    this.#lease.marginMs = lease.clientMarginMs;
    this.#lease.extend(sentAt, lease.durationMs);
    this.#renewMs = lease.renewMs;
    this.#durationMs = lease.durationMs;
    const { session: id, status, waitingFor } = welcome;
    const fresh = { n: 0, sentAt, isAnswered: true, leaveAt: Infinity, reportAt: Infinity, pages: new Pages() };
    this.#stage = { at: "welcomed", session: { id, since: now.mono, status, waitingFor, ...fresh } };
    this.#holdings.oweEverything();
    this.#report();
    if (this.#leaving !== undefined) this.#send({ type: "leave", mode: this.#leaving });
  }

  #push(page: Push, session: Session, now: Moment): void {
    const push = session.pages.add(page);
    if (push === undefined) return;
    if (push.base !== null && push.base !== this.#revision) return this.#redial();
    session.status = "assigned";
    session.waitingFor = undefined;
    this.#holdings.apply(push, now);
    this.#revision = push.revision;
    this.#report();
    this.#send({ type: "ack", revision: push.revision });
    this.#options.changed?.();
  }

  #extend({ n, durationMs, renewMs, stamp }: LeaseAnswer, session: Session): void {
    if (n !== session.n || session.isAnswered) return;
    session.isAnswered = true;
    this.#lease.extend(session.sentAt, durationMs);
    this.#renewMs = renewMs;
    this.#durationMs = durationMs;
    this.#stamp = stamp ?? this.#stamp;
  }

  #renew(session: Session): void {
    if (!session.isAnswered) return this.#redial();
    session.n++;
    session.isAnswered = false;
    session.sentAt = readMoment();
    this.#send({ type: "renew", n: session.n });
  }

  #changed(): void {
    this.#options.changed?.();
    if (this.#stage.at !== "welcomed") return;
    const { session } = this.#stage;
    session.reportAt = Math.min(session.reportAt, performance.now() + GATHER_MS);
    this.#arm();
  }

  #report(): void {
    if (this.#stage.at === "welcomed") this.#stage.session.reportAt = Infinity;
    for (const report of reportsOf(this.#holdings.takeOwed())) this.#send({ type: "report", ...report });
  }

  /** The socket is gone, and §11 says how to go on. */
  #lost(end: End): void {
    this.#socket = undefined;
    if (end.kind === "failed") return this.#redial();
    if (end.kind === "refused") {
      const { status, retryAfterMs } = end;
      const isFinal = FINAL_STATUSES.has(status) || (this.#store === undefined && MISTAKES.has(status));
      return isFinal ? this.#finish({ reason: "refused", code: status }) : this.#redial(1000, retryAfterMs);
    }
    const { code, reason: detail } = end;
    if (FINAL_CODES.has(code)) {
      return this.#finish({ reason: code === 4409 ? "replaced" : "refused", code, detail });
    }
    if (code === 4410) this.#stopEverything(readMoment());
    this.#redial(1000, this.#refused?.code === code ? this.#refused.retryAfterMs : undefined);
  }

  /** Leaves the socket, if there is one, and dials again after a while. */
  #redial(code = 1000, atLeastMs = 0): void {
    const now = performance.now();
    if (this.#stage.at === "welcomed" && now - this.#stage.session.since > this.#durationMs) this.#backoff.reset();
    this.#socket?.close(code);
    this.#socket = undefined;
    const waitMs = atLeastMs + this.#backoff.nextMs(this.#lease.isHeld ? this.#renewMs : undefined);
    this.#stage = { at: "waiting", until: now + waitMs };
    this.#arm();
  }

  /** §5.4: a lapsed client stops everything, leaves, and says hello without `resume`. */
  #checkLapse(now: Moment): boolean {
    if (!this.#lease.hasLapsed(now)) return false;
    this.#stopEverything(now);
    if (this.#socket !== undefined) this.#redial();
    return true;
  }

  #stopEverything(now: Moment): void {
    this.#lease.drop();
    this.#revision = undefined;
    this.#holdings.stopEverything(now);
  }

  #finish(end: IndependentEnd): void {
    if (this.#stage.at === "over") return;
    this.#socket?.close();
    this.#socket = undefined;
    this.#stage = { at: "over" };
    clearTimeout(this.#timer);
    this.#stopEverything(readMoment());
    this.#resolveEnded(end);
  }

  #send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #dueAt(): number {
    if (this.#stage.at === "over") return Infinity;
    if (this.#stage.at !== "welcomed") return this.#stage.until;
    const { sentAt, leaveAt, reportAt } = this.#stage.session;
    return Math.min(sentAt.mono + this.#renewMs, leaveAt, reportAt);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#stage.at === "over") return;
    const next = Math.min(this.#dueAt(), this.#lease.lapsesAt, this.#holdings.nextCutAt());
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, Math.ceil(next - performance.now())));
  }

  #wake(): void {
    const now = readMoment();
    this.#checkLapse(now);
    this.#holdings.cutOverdue(now, this.#lease.marginMs);
    if (now.mono >= this.#dueAt()) this.#doWhatIsDue(now.mono);
    this.#arm();
  }

  #doWhatIsDue(now: number): void {
    const stage = this.#stage;
    if (stage.at === "waiting") return this.#dial();
    if (stage.at !== "welcomed") return this.#redial();
    const { session } = stage;
    if (now >= session.leaveAt) return this.#redial();
    if (now >= session.reportAt) this.#report();
    if (now >= session.sentAt.mono + this.#renewMs) this.#renew(session);
  }
}

/** Reports of bounded size; each counts by itself. */
function reportsOf(owed: Owed): readonly object[] {
  const parts = Object.entries(owed).flatMap(([list, entries]: [string, Owed["ready"]]) =>
    entries.flatMap((entry) => splitEntry(entry).map((part) => ({ list, part }))),
  );
  if (parts.length === 0) return [];
  const isSmall = parts.reduce((sum, { part }) => sum + part.partitions.length, 0) < MAX_RANGES;
  if (!isSmall || parts.length > 100) return parts.map(({ list, part }) => ({ [list]: [part] }));
  const report: Record<string, object[]> = {};
  for (const { list, part } of parts) report[list] = [...(report[list] ?? []), part];
  return [report];
}

function splitEntry<E extends { readonly partitions: string }>(entry: E): readonly E[] {
  const ranges = entry.partitions.split(",");
  const count = Math.ceil(ranges.length / MAX_RANGES);
  return Array.from({ length: count }, (_, index) => ({
    ...entry,
    partitions: ranges.slice(index * MAX_RANGES, (index + 1) * MAX_RANGES).join(","),
  }));
}
