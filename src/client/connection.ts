import type { ExecutorTraits } from "../model/change.ts";
import type { Epoch, TableName } from "../model/ids.ts";
import { CLOSE } from "../protocol/close-codes.ts";
import { decodeServerFrame, encodeFrame } from "../protocol/codec.ts";
import type {
  ClientFrame,
  LeaseFrame,
  PushFrame,
  RefusedFrame,
  ServerFrame,
  WelcomeFrame,
} from "../protocol/frames.ts";
import { FIRST_ANSWER_TIMEOUT_MS } from "../protocol/limits.ts";
import type { ChangeableTraits, ConnectionOptions, ConnectionStatus, LeaveMode } from "./connection-state.ts";
import { Following } from "./following.ts";
import type { Handle, HandleFailure } from "./handle.ts";
import type { Reading } from "./lease.ts";
import { Link, readClock } from "./link.ts";
import type { ClientLogLevel, Closing, ConnectionOwner, ConnectionPorts, SocketEnd, StopReason } from "./ports.ts";
import { Session } from "./session.ts";
import { Share } from "./share.ts";
import { judgeEnd, problemOf, type Verdict } from "./socket-end.ts";
import { WakeTimer } from "./wake-timer.ts";

/** Renewing faster than this serves nobody; it bounds what a mistaken answer can make of this client. */
const MIN_RENEW_MS = 10;

/** How far an open socket has come. */
type Stage =
  | { readonly at: "none" }
  | { readonly at: "greeting"; readonly sentAt: Reading; readonly traits: ExecutorTraits; readonly dueAt: number }
  | { readonly at: "welcomed"; readonly session: Session };

/** Why and how a socket is left for another. `holding`: something may still be served, so waits stay short. */
interface Redial {
  readonly problem: string;
  readonly holding: boolean;
  readonly afterMs?: number;
  readonly code?: number;
}

/**
 * The connection of one executor: hello, lease, pushes and reports over one socket at a time, and what is held under the
 * lease. No I/O and no clock of its own; everything comes in through the ports and goes out to them and the owner.
 *
 * Whatever wakes it, a frame, a timer or a question, the clock is read first and the lease judged by it: a loop that was
 * blocked finds queued frames before the timers that were due. An owner may call back from any of its calls.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #ports: ConnectionPorts;
  readonly #owner: ConnectionOwner;
  readonly #link: Link;
  readonly #share: Share;
  readonly #timer: WakeTimer;
  readonly #following = new Following();
  #stage: Stage = { at: "none" };
  #traits: ExecutorTraits;
  #attempt = 0;
  /** Of the last answer. */
  #terms: { readonly durationMs: number; readonly renewMs: number } | undefined;
  #leaving: LeaveMode | undefined;
  #lastProblem: string | undefined;

  constructor(options: ConnectionOptions, ports: ConnectionPorts, owner: ConnectionOwner) {
    this.#options = options;
    this.#ports = ports;
    this.#owner = owner;
    this.#traits = options.traits;
    this.#share = new Share(owner, options.patienceMs);
    this.#timer = new WakeTimer(ports.clock, () => this.#wake());
    this.#link = new Link(options.urls, ports, {
      mayHear: (at) => !this.#checkLapse(at),
      opened: (at) => this.#greet(at),
      received: (text, at) => this.#receive(text, at),
      ended: (end, at) => this.#ended(end, undefined, at),
    });
  }

  /** Starts to connect. Called once. */
  start(): void {
    if (this.#link.state === "idle") this.#dial(this.#read());
  }

  /** Epoch under which the partition may be served now; judged by the clock at this call. */
  owns(table: TableName, partition: number): Epoch | undefined {
    const at = this.#read();
    return this.#checkLapse(at) ? undefined : this.#share.epochServed(table, partition, at);
  }

  /** The handle that is current for a partition, if any. */
  current(table: TableName, partition: number): Handle | undefined {
    return this.#share.current(table, partition);
  }

  loaded(handle: Handle): void {
    this.#progress((at) => this.#share.loaded(handle, at));
  }

  failed(handle: Handle, failure: HandleFailure): void {
    this.#progress((at) => this.#share.fail(handle, failure, at));
  }

  unloaded(handle: Handle): void {
    this.#progress((at) => this.#share.ended(handle, at));
  }

  /** Asks to leave, now and after each welcome, until the scheduler says `left`. */
  leave(mode: LeaveMode): void {
    this.#leaving = mode;
    if (this.#stage.at === "welcomed") this.#send({ type: "leave", mode });
    this.#owner.changed();
  }

  /** Changes what hello says; told at once if there is a session. */
  update(traits: ChangeableTraits): void {
    this.#traits = { ...this.#traits, ...traits };
    if (this.#stage.at === "welcomed") this.#send({ type: "update", ...traits });
  }

  /** Stops everything and ends the connection for good. */
  close(): void {
    this.#finish({ kind: "closed" }, "closed", this.#read());
  }

  status(): ConnectionStatus {
    const session = this.#stage.at === "welcomed" ? this.#stage.session : undefined;
    const { revision } = this.#share;
    const { incarnation } = this.#following;
    return {
      state: this.#link.state === "over" ? "finished" : (session?.status ?? "connecting"),
      url: this.#link.addresses.current(),
      ...(session && { session: session.id }),
      ...(session?.waitingFor !== undefined && { waitingFor: session.waitingFor }),
      ...(incarnation !== undefined && { incarnation }),
      ...(revision !== undefined && { revision }),
      ...(this.#leaving && { leaving: this.#leaving }),
      leaseLeftMs: this.#share.leaseLeftMs(this.#read()),
      ...this.#share.counts(),
      ...(this.#lastProblem !== undefined && { lastProblem: this.#lastProblem }),
    };
  }

  #read(): Reading {
    return readClock(this.#ports.clock);
  }

  /** Lapsed: everything stops, the socket goes and with it what it still has queued, and the next hello claims nothing. */
  #checkLapse(at: Reading): boolean {
    if (!this.#share.hasLapsed(at)) return false;
    this.#log("warn", "lease.lapsed", {});
    if (this.#link.hasSocket) this.#redial(at, { problem: "the lease lapsed", holding: false });
    this.#share.drop("lapsed", at);
    this.#owner.changed();
    return true;
  }

  #progress(change: (at: Reading) => void): void {
    const at = this.#read();
    this.#checkLapse(at);
    change(at);
    if (this.#share.hasUnsent && this.#stage.at === "welcomed") {
      this.#wakeBy(this.#stage.session.gather(at));
    }
    this.#owner.changed();
  }

  #dial(at: Reading): void {
    this.#log("debug", "connection.dialing", { url: this.#link.addresses.current() });
    this.#link.dial(at, this.#answerMs());
    this.#wakeBy(this.#link.dueAt);
    this.#owner.changed();
  }

  #greet(at: Reading): void {
    const { executor, instance } = this.#options;
    const traits = this.#traits;
    const dueAt = at.now + this.#answerMs();
    this.#attempt++;
    this.#stage = { at: "greeting", sentAt: at, traits, dueAt };
    this.#wakeBy(dueAt);
    this.#send({
      type: "hello",
      role: "executor",
      executor,
      instance,
      attempt: this.#attempt,
      ...this.#following.claim(this.#share.revision),
      ...traits,
    });
  }

  #receive(text: string, at: Reading): void {
    const decoded = decodeServerFrame(text);
    if (!decoded.ok) return this.#breach(decoded.close.reason, at);
    const { frame } = decoded;
    if (frame === undefined) return;
    // It is the last frame before the close that it announces, so it stands for it.
    if (frame.type === "refused")
      return this.#ended({ kind: "closed", code: frame.code, reason: frame.reason }, frame, at);
    if (this.#stage.at === "welcomed") return this.#inSession(this.#stage.session, frame, at);
    if (frame.type !== "welcome") return this.#breach(`${frame.type} before welcome`, at);
    this.#welcome(frame, at);
  }

  #welcome(frame: WelcomeFrame, at: Reading): void {
    if (this.#stage.at !== "greeting") return this.#breach("welcome before hello", at);
    const { sentAt, traits } = this.#stage;
    const { term, lease } = frame;
    if (lease === undefined) return this.#breach("welcome without a lease", at);
    const judged = this.#following.judge(frame);
    if (judged === "other-store") {
      return this.#startAfresh("incarnation", `another store: incarnation ${frame.incarnation}`, at);
    }
    if (judged === "deposed") {
      this.#link.addresses.next();
      return this.#redial(at, { problem: `a scheduler of term ${term}, which is over`, holding: true });
    }
    this.#lastProblem = undefined;
    this.#link.addresses.arrived();
    const session = new Session(frame, sentAt, at);
    this.#stage = { at: "welcomed", session };
    this.#share.setMargin(lease.clientMarginMs);
    this.#log("info", "connection.welcomed", {
      session: session.id,
      term,
      resumed: frame.resumed,
      status: frame.status,
    });
    this.#repeat(session, traits);
    this.#extend(session, sentAt, lease, at);
    this.#owner.changed();
  }

  /** After every welcome: what is ready, failed and released, changed traits, and the wish to leave. */
  #repeat(session: Session, told: ExecutorTraits): void {
    this.#share.oweEverything();
    this.#flush(session);
    if (this.#traits !== told) {
      const { zone: _zone, slot: _slot, ...changeable } = this.#traits;
      this.#send({ type: "update", ...changeable });
    }
    if (this.#leaving) this.#send({ type: "leave", mode: this.#leaving });
  }

  #inSession(session: Session, frame: ServerFrame, at: Reading): void {
    switch (frame.type) {
      case "push":
        return this.#push(session, frame, at);
      case "lease":
        return this.#lease(session, frame, at);
      case "goaway":
        session.goawayAt = Math.min(session.goawayAt, at.now + frame.afterMs);
        this.#wakeBy(session.goawayAt);
        return;
      case "left":
        if (this.#leaving) this.#finish({ kind: "left" }, "closed", at);
        return;
      case "welcome":
        return this.#breach("a second welcome", at);
      default:
        // The rest are frames for observers, which no scheduler sends to an executor.
        return;
    }
  }

  #push(session: Session, page: PushFrame, at: Reading): void {
    const assembled = session.pushes.add(page);
    if (assembled.type === "breach") return this.#breach(assembled.reason, at);
    if (assembled.type === "partial") return;
    const { push } = assembled;
    const { revision } = this.#share;
    if (push.base !== null && push.base !== revision) {
      return this.#redial(at, {
        problem: `a push from revision ${push.base}, at ${revision ?? "none"}`,
        holding: true,
      });
    }
    this.#share.apply(push, at);
    // An owner may have closed the connection while it was told.
    if (this.#stage.at !== "welcomed") return;
    session.status = "assigned";
    session.waitingFor = undefined;
    this.#flush(session);
    this.#send({ type: "ack", revision: push.revision });
    this.#wakeBy(this.#share.nextDueAt());
    this.#owner.changed();
  }

  #lease(session: Session, frame: LeaseFrame, at: Reading): void {
    const sentAt = session.answer(frame.n);
    if (sentAt === "breach") return this.#breach("a lease for a renew that was not sent", at);
    if (sentAt === undefined) return;
    this.#following.stampedWith(frame.stamp);
    this.#extend(session, sentAt, frame, at);
  }

  #extend(session: Session, sentAt: Reading, terms: { durationMs: number; renewMs: number }, at: Reading): void {
    const renewMs = Math.max(MIN_RENEW_MS, terms.renewMs);
    this.#terms = { durationMs: terms.durationMs, renewMs };
    this.#share.extend(sentAt, terms.durationMs, at);
    this.#wakeBy(Math.min(this.#share.nextDueAt(), session.renewDueAt(renewMs)));
  }

  #flush(session: Session): void {
    session.flushAt = Number.POSITIVE_INFINITY;
    for (const report of this.#share.takeReports()) this.#link.send(report);
  }

  /** How long an answer is waited for: one renew period. */
  #answerMs(): number {
    return this.#terms?.renewMs ?? FIRST_ANSWER_TIMEOUT_MS;
  }

  #wake(): void {
    if (this.#link.state === "over") return;
    const at = this.#read();
    this.#checkLapse(at);
    this.#share.cutOverdue(at);
    if (at.now >= this.#dueAt()) this.#doWhatIsDue(at);
    this.#wakeBy(Math.min(this.#share.nextDueAt(), this.#dueAt()));
  }

  #wakeBy(time: number): void {
    if (this.#link.state !== "over") this.#timer.by(time);
  }

  #dueAt(): number {
    const stage = this.#stage;
    if (stage.at === "welcomed") return stage.session.dueAt(this.#answerMs());
    return stage.at === "greeting" ? stage.dueAt : this.#link.dueAt;
  }

  #doWhatIsDue(at: Reading): void {
    if (this.#link.state === "waiting") return this.#dial(at);
    if (this.#stage.at === "welcomed") return this.#doWhatIsDueInSession(this.#stage.session, at);
    this.#link.addresses.next();
    this.#redial(at, { problem: "no answer to the hello in time", holding: true });
  }

  #doWhatIsDueInSession(session: Session, at: Reading): void {
    if (at.now >= session.goawayAt) {
      this.#leaveSocket("going away as asked", at);
      this.#link.addresses.next();
      return this.#dial(at);
    }
    if (at.now >= session.flushAt) this.#flush(session);
    if (at.now < session.renewDueAt(this.#answerMs())) return;
    if (session.isUnanswered) return this.#redial(at, { problem: "a renew stayed unanswered", holding: true });
    this.#send({ type: "renew", n: session.nextRenew(at) });
  }

  #ended(end: SocketEnd, refused: RefusedFrame | undefined, at: Reading): void {
    this.#obey(judgeEnd(end, refused, this.#following.isKnown), problemOf(end), at);
  }

  #breach(reason: string, at: Reading): void {
    this.#redial(at, { problem: `the scheduler broke the protocol: ${reason}`, holding: true, code: CLOSE.badMessage });
  }

  #obey(verdict: Verdict, problem: string, at: Reading): void {
    switch (verdict.next) {
      case "reconnect":
        if (verdict.address === "next") this.#link.addresses.next();
        return this.#redial(at, { problem, holding: true, ...verdict });
      case "hop":
        return this.#hop(verdict, problem, at);
      case "fresh":
        return this.#startAfresh("ended", problem, at);
      case "new-token":
        if (this.#options.canRenewToken) return this.#startAfresh("refused", problem, at);
        return this.#finish({ kind: "unauthenticated", detail: verdict.detail }, "refused", at);
      case "give-up":
        return this.#finish(verdict.closing, verdict.reason, at);
      default:
        return verdict satisfies never;
    }
  }

  #hop(verdict: Verdict & { readonly next: "hop" }, problem: string, at: Reading): void {
    const hopped = verdict.leader !== undefined && this.#link.addresses.hop(verdict.leader);
    if (!hopped) this.#link.addresses.next();
    if (!hopped || verdict.afterMs !== undefined) return this.#redial(at, { problem, holding: true, ...verdict });
    this.#leaveSocket(problem, at);
    this.#dial(at);
  }

  /** Stops everything, and says hello anew without a claim. */
  #startAfresh(reason: StopReason, problem: string, at: Reading): void {
    this.#redial(at, { problem, holding: false });
    this.#share.drop(reason, at);
    this.#owner.changed();
  }

  /** Leaves the socket and waits before the next. */
  #redial(at: Reading, { problem, holding, afterMs = 0, code = CLOSE.normal }: Redial): void {
    this.#leaveSocket(problem, at, code);
    this.#link.wait(at, afterMs, holding && this.#share.holdsLease ? this.#terms?.renewMs : undefined);
    this.#wakeBy(this.#link.dueAt);
    this.#owner.changed();
  }

  #leaveSocket(problem: string, at: Reading, code: number = CLOSE.normal): void {
    const stage = this.#stage;
    this.#stage = { at: "none" };
    this.#lastProblem = problem;
    // A session that outlasted a lease was a good one; only what fails at once is retried ever more slowly.
    if (stage.at === "welcomed" && at.now - stage.session.since > (this.#terms?.durationMs ?? 0)) {
      this.#link.backoff.reset();
    }
    this.#link.leave(code, problem);
    this.#log("info", "connection.left", { problem });
  }

  #finish(closing: Closing, reason: StopReason, at: Reading): void {
    if (this.#link.state === "over") return;
    this.#leaveSocket("detail" in closing ? closing.detail : closing.kind, at);
    this.#link.end();
    this.#timer.cancel();
    this.#share.drop(reason, at);
    this.#owner.finished(closing);
    this.#owner.changed();
  }

  #send(frame: ClientFrame): void {
    this.#link.send(encodeFrame(frame));
  }

  #log(level: ClientLogLevel, event: string, fields: Readonly<Record<string, unknown>>): void {
    this.#ports.log.log(level, event, { executor: this.#options.executor, ...fields });
  }
}
