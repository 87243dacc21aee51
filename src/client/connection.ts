import type { ExecutorTraits } from "../model/change.ts";
import type { Epoch, TableName } from "../model/ids.ts";
import { CLOSE } from "../protocol/close-codes.ts";
import { decodeServerFrame, encodeFrame } from "../protocol/codec.ts";
import type { RefusedFrame, WelcomeFrame } from "../protocol/frames.ts";
import { FIRST_ANSWER_TIMEOUT_MS } from "../protocol/limits.ts";
import type { ChangeableTraits, ConnectionOptions, ConnectionStatus, LeaveMode } from "./connection-state.ts";
import { Following } from "./following.ts";
import type { Handle, HandleFailure } from "./handle.ts";
import type { Reading } from "./lease.ts";
import { Link, readClock } from "./link.ts";
import type { ClientLogLevel, Closing, ConnectionOwner, ConnectionPorts, SocketEnd, StopReason } from "./ports.ts";
import { type Outcome, Session } from "./session.ts";
import { Share } from "./share.ts";
import { judgeEnd, problemOf, type Verdict } from "./socket-end.ts";
import { WakeTimer } from "./wake-timer.ts";

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
  readonly #following = new Following();
  readonly #timer: WakeTimer;
  #stage: Stage = { at: "none" };
  #traits: ExecutorTraits;
  #attempt = 0;
  /** Of the last answer: what an answer is waited for, and what a session must outlast to count as a good one. */
  #terms = { renewMs: FIRST_ANSWER_TIMEOUT_MS, durationMs: 0 };
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

  loaded(handles: readonly Handle[]): void {
    this.#progress((at) => this.#share.loaded(handles, at));
  }

  failed(handle: Handle, failure: HandleFailure): void {
    this.#progress((at) => this.#share.fail(handle, failure, at));
  }

  unloaded(handles: readonly Handle[]): void {
    this.#progress((at) => this.#share.ended(handles, at));
  }

  /**
   * Asks to leave, now and after each welcome, until the scheduler says `left`. Who leaves for a restart does not wait for
   * that longer than its lease: then it holds nothing, which the scheduler finds out by itself.
   */
  leave(mode: LeaveMode): void {
    this.#leaving = mode;
    if (mode === "restart" && !this.#share.holdsLease) return this.#finish({ kind: "lapsed" }, "lapsed", this.#read());
    if (this.#stage.at === "welcomed") this.#stage.session.send({ type: "leave", mode });
    this.#owner.changed();
  }

  /** Changes what hello says; told at once if there is a session. */
  update(traits: ChangeableTraits): void {
    this.#traits = { ...this.#traits, ...traits };
    if (this.#stage.at === "welcomed") this.#stage.session.send({ type: "update", ...traits });
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
      state: this.#link.state === "over" ? "closed" : (session?.status ?? "connecting"),
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
    if (this.#leaving === "restart") {
      this.#finish({ kind: "lapsed" }, "lapsed", at);
      return true;
    }
    if (this.#link.hasSocket) this.#redial(at, { problem: "the lease lapsed", holding: false });
    this.#share.drop("lapsed", at);
    this.#owner.changed();
    return true;
  }

  #progress(change: (at: Reading) => void): void {
    const at = this.#read();
    this.#checkLapse(at);
    change(at);
    if (this.#stage.at === "welcomed") {
      this.#stage.session.gather(at);
      this.#wakeBy(this.#stage.session.dueAt);
    }
    this.#owner.changed();
  }

  #dial(at: Reading): void {
    this.#log("debug", "connection.dialing", { url: this.#link.addresses.current() });
    this.#link.dial(at, this.#terms.renewMs);
    this.#wakeBy(this.#link.dueAt);
    this.#owner.changed();
  }

  #greet(at: Reading): void {
    const { executor, instance } = this.#options;
    const traits = this.#traits;
    const claim = this.#following.claim(this.#share.revision);
    const dueAt = at.now + this.#terms.renewMs;
    this.#attempt++;
    this.#stage = { at: "greeting", sentAt: at, traits, dueAt };
    this.#wakeBy(dueAt);
    const who = { executor, instance, attempt: this.#attempt };
    this.#link.send(encodeFrame({ type: "hello", role: "executor", ...who, ...claim, ...traits }));
  }

  #receive(text: string, at: Reading): void {
    const decoded = decodeServerFrame(text);
    if (!decoded.ok) return this.#breach(decoded.close.reason, at);
    const { frame } = decoded;
    if (frame === undefined) return;
    if (frame.type === "refused") {
      // It is the last frame before the close that it announces, so it stands for it.
      return this.#ended({ kind: "closed", code: frame.code, reason: frame.reason }, frame, at);
    }
    if (this.#stage.at === "welcomed") return this.#heed(this.#stage.session.receive(frame, at), at);
    if (frame.type !== "welcome") return this.#breach(`${frame.type} before welcome`, at);
    this.#welcome(frame, at);
  }

  #welcome(frame: WelcomeFrame, at: Reading): void {
    if (this.#stage.at !== "greeting") return this.#breach("welcome before hello", at);
    const { sentAt, traits } = this.#stage;
    const { lease, term, resumed, status } = frame;
    if (lease === undefined) return this.#breach("welcome without a lease", at);
    const judged = this.#following.judge(frame);
    if (judged === "other-store") {
      return this.#startAfresh("incarnation", `another store: incarnation ${frame.incarnation}`, at);
    }
    if (judged === "deposed") {
      this.#link.addresses.next();
      return this.#redial(at, { problem: `a scheduler of term ${term}, which is over`, holding: true });
    }
    this.#link.addresses.arrived();
    this.#lastProblem = undefined;
    const session = new Session(frame, lease, sentAt, at, {
      share: this.#share,
      send: (text) => this.#link.send(text),
      stampedWith: (stamp) => this.#following.stampedWith(stamp),
    });
    // The owner was told of the lease, and may have closed the connection.
    if (this.#link.state !== "open") return;
    this.#stage = { at: "welcomed", session };
    this.#log("info", "connection.welcomed", { session: session.id, term, resumed, status });
    session.repeat(traits, this.#traits, this.#leaving);
    this.#heed({ next: "go-on" }, at);
  }

  /** Does what the session came to, and sees to the next wake-up. */
  #heed(outcome: Outcome, at: Reading): void {
    if (this.#stage.at === "welcomed") {
      const { renewMs, durationMs, dueAt } = this.#stage.session;
      this.#terms = { renewMs, durationMs };
      this.#wakeBy(Math.min(dueAt, this.#share.nextDueAt()));
    }
    switch (outcome.next) {
      case "go-on":
        return this.#owner.changed();
      case "breach":
        return this.#breach(outcome.problem, at);
      case "resume":
        return this.#redial(at, { problem: outcome.problem, holding: true });
      case "move-on":
        this.#leaveSocket("going away as asked", at);
        this.#link.addresses.next();
        return this.#dial(at);
      case "left":
        if (this.#leaving) this.#finish({ kind: "left" }, "closed", at);
        return;
      default:
        return outcome satisfies never;
    }
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
    if (stage.at === "welcomed") return stage.session.dueAt;
    return stage.at === "greeting" ? stage.dueAt : this.#link.dueAt;
  }

  #doWhatIsDue(at: Reading): void {
    if (this.#link.state === "waiting") return this.#dial(at);
    if (this.#stage.at === "welcomed") return this.#heed(this.#stage.session.doWhatIsDue(at), at);
    this.#link.addresses.next();
    this.#redial(at, { problem: "no answer to the hello in time", holding: true });
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
    this.#link.wait(at, afterMs, holding && this.#share.holdsLease ? this.#terms.renewMs : undefined);
    this.#wakeBy(this.#link.dueAt);
    this.#owner.changed();
  }

  #leaveSocket(problem: string, at: Reading, code: number = CLOSE.normal): void {
    const stage = this.#stage;
    this.#stage = { at: "none" };
    this.#lastProblem = problem;
    // A session that outlasted a lease was a good one; only what fails at once is retried ever more slowly.
    if (stage.at === "welcomed" && at.now - stage.session.since > this.#terms.durationMs) this.#link.backoff.reset();
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

  #log(level: ClientLogLevel, event: string, fields: Readonly<Record<string, unknown>>): void {
    this.#ports.log.log(level, event, { executor: this.#options.executor, ...fields });
  }
}
