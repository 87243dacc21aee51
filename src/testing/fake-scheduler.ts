import type { ClientSocket, Dial, SocketEnd, SocketHandlers } from "../client/ports.ts";
import type { Grant, Handoff, Revoke, TableFacts } from "../model/grant.ts";
import { tableName } from "../model/ids.ts";
import { PartitionSet } from "../model/partition-set.ts";
import { decodeClientFrame, encodeFrame } from "../protocol/codec.ts";
import type { ClientFrame, ExecutorHelloFrame, ServerFrame, WelcomeFrame } from "../protocol/frames.ts";
import { pagePush } from "../protocol/paging.ts";

/** Partitions of a push in brief: table, set as text, and the epoch, by default the push's revision. */
export type GrantText = readonly [table: string, partitions: string, epoch?: number];
/** The same with its stop limit. */
export type RevokeText = readonly [table: string, partitions: string, epoch: number, stopMs: number];

/** A push in brief. Tables that are not given facts are exclusive, of 1,024 partitions, made by revision 1. */
export interface PushText {
  readonly revision: number;
  readonly base: number | null;
  readonly grant?: readonly GrantText[];
  readonly prepare?: readonly GrantText[];
  readonly revoke?: readonly RevokeText[];
  readonly tables?: readonly { readonly table: string; readonly created?: number; readonly handoff?: Handoff }[];
  readonly keys?: readonly { readonly table: string; readonly partition: number; readonly key: string }[];
  /** Largest page; default: that of the protocol. */
  readonly pageBytes?: number;
}

/** What every welcome of a fake scheduler says. */
export interface FakeTerms {
  cluster: string;
  incarnation: string;
  term: number;
  lease: { durationMs: number; renewMs: number; clientMarginMs: number };
}

/**
 * A scheduler made of a script: it keeps what a client sent and sends what the test says, without sockets. Give `dial` to
 * the connection under test.
 *
 * By itself it does nothing; with `automatic` it opens sockets, welcomes hellos as pending and answers renews, each in a
 * microtask of its own.
 */
export class FakeScheduler {
  /** Every socket that was dialled, oldest first. */
  readonly sessions: FakeSession[] = [];
  readonly terms: FakeTerms = {
    cluster: "demo",
    incarnation: "first",
    term: 1,
    lease: { durationMs: 10_000, renewMs: 1_000, clientMarginMs: 1_000 },
  };
  automatic: boolean;

  constructor({ automatic = false }: { readonly automatic?: boolean } = {}) {
    this.automatic = automatic;
  }

  readonly dial: Dial = (url, handlers) => {
    const session = new FakeSession(this, url, handlers, this.sessions.length + 1);
    this.sessions.push(session);
    if (this.automatic) queueMicrotask(() => session.open());
    return session.socket;
  };

  /** The newest socket. */
  get session(): FakeSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error("nothing has been dialled");
    return session;
  }
}

/** One socket, seen from the scheduler. What it sends after the client closed reaches the client all the same, as frames on their way do. */
export class FakeSession {
  readonly socket: ClientSocket;
  /** Every frame of the client, oldest first. */
  readonly received: ClientFrame[] = [];
  /** The client's close. */
  closed: { readonly code: number; readonly reason: string } | undefined;
  /** False: renews stay unanswered although the scheduler is automatic. */
  answersRenews = true;
  readonly #handlers: SocketHandlers;
  #taken = 0;

  constructor(
    readonly scheduler: FakeScheduler,
    readonly url: string,
    handlers: SocketHandlers,
    readonly number: number,
  ) {
    this.#handlers = handlers;
    this.socket = {
      send: (text) => this.#receive(text),
      close: (code, reason) => {
        this.closed ??= { code, reason };
      },
    };
  }

  /** Completes the upgrade. */
  open(): void {
    this.#handlers.opened();
  }

  /** The client's hello; throws if it has not said it. */
  get hello(): ExecutorHelloFrame {
    const [hello] = this.received;
    if (hello?.type !== "hello" || hello.role !== "executor") throw new Error("the client has not said hello");
    return hello;
  }

  /** The frames that came since they were last taken. */
  take(): readonly ClientFrame[] {
    const frames = this.received.slice(this.#taken);
    this.#taken = this.received.length;
    return frames;
  }

  /** Types of the frames that came since they were last taken. */
  takeTypes(): readonly string[] {
    return this.take().map((frame) => frame.type);
  }

  send(frame: ServerFrame): void {
    this.sendText(encodeFrame(frame));
  }

  sendText(text: string): void {
    this.#handlers.received(text);
  }

  welcome(change: Partial<Omit<WelcomeFrame, "type">> = {}): void {
    const { cluster, incarnation, term, lease } = this.scheduler.terms;
    const session = `s${this.number}`;
    const stamp = `stamp-${this.number}`;
    const terms = {
      cluster,
      incarnation,
      term,
      session,
      resumed: false,
      status: "pending" as const,
      lease: { ...lease },
    };
    this.send({ type: "welcome", ...terms, stamp, ...change });
  }

  /** Opens the socket and answers the hello that follows. */
  begin(change: Partial<Omit<WelcomeFrame, "type">> = {}): void {
    this.open();
    this.welcome(change);
  }

  /** Answers a renew, by default the last one. */
  lease(n = this.received.filter((frame) => frame.type === "renew").length): void {
    const { durationMs, renewMs } = this.scheduler.terms.lease;
    this.send({ type: "lease", n, durationMs, renewMs });
  }

  push(text: PushText): void {
    for (const page of pagePush(readPush(text), text.pageBytes)) this.sendText(page);
  }

  refuse(code: number, reason: string, more: { readonly retryAfterMs?: number; readonly leader?: string } = {}): void {
    this.send({ type: "refused", code, reason, ...more });
  }

  /** Ends the socket by a close frame. */
  end(code: number, reason = ""): void {
    this.endWith({ kind: "closed", code, reason });
  }

  endWith(end: SocketEnd): void {
    this.#handlers.ended(end);
  }

  #receive(text: string): void {
    const decoded = decodeClientFrame(text);
    if (!decoded.ok) throw new Error(`the client broke the protocol: ${decoded.close.reason} in ${text}`);
    const { frame } = decoded;
    this.received.push(frame);
    if (!this.scheduler.automatic) return;
    if (frame.type === "hello") queueMicrotask(() => this.welcome());
    if (frame.type === "renew" && this.answersRenews) queueMicrotask(() => this.lease(frame.n));
  }
}

function readPush(text: PushText): Parameters<typeof pagePush>[0] {
  const { revision, base } = text;
  const grantOf = ([table, partitions, epoch = revision]: GrantText): Grant => ({
    table: tableName(table),
    partitions: PartitionSet.parse(partitions),
    epoch,
  });
  const revokeOf = ([table, partitions, epoch, stopMs]: RevokeText): Revoke => ({
    ...grantOf([table, partitions, epoch]),
    stopMs,
  });
  const grant = (text.grant ?? []).map(grantOf);
  const prepare = (text.prepare ?? []).map(grantOf);
  const revoke = (text.revoke ?? []).map(revokeOf);
  const tables = factsFor(text, [...grant, ...prepare, ...revoke]);
  const keys = (text.keys ?? []).map(({ table, partition, key }) => ({ table: tableName(table), partition, key }));
  return { revision, base, grant, prepare, revoke, tables, keys, cause: [] };
}

function factsFor(text: PushText, named: readonly Grant[]): readonly TableFacts[] {
  const given = new Map(text.tables?.map((table) => [table.table, table]));
  const names = [...new Set([...given.keys(), ...named.map(({ table }) => table as string)])].sort();
  return names.map((name) => {
    const { created = 1, handoff = "exclusive" } = given.get(name) ?? {};
    return { table: tableName(name), count: 1_024, created, handoff };
  });
}
