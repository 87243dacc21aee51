import type { Epoch, Revision, TableName } from "../model/ids.ts";
import { type Push, splitReport } from "../protocol/paging.ts";
import type { Handle, HandleFailure } from "./handle.ts";
import { Holdings, type Steps } from "./holdings.ts";
import { extendLease, hasLapsed, type Lease, lapseAt, type Reading } from "./lease.ts";
import type { ConnectionOwner, StopReason } from "./ports.ts";
import { ReportBuilder } from "./reports.ts";

/** σ until a welcome has told it: stop limits need it, and none can exist before. */
const FIRST_MARGIN_MS = 1_000;

/** What an answer says of the lease. */
export interface LeaseTerms {
  readonly durationMs: number;
  readonly renewMs: number;
}

/**
 * What this executor may serve, and until when: its holdings under its lease, at the revision of the last push. It tells
 * the owner what to do, and gathers what the scheduler is to be told.
 */
export class Share {
  readonly #owner: ConnectionOwner;
  readonly #holdings: Holdings;
  #lease: Lease | undefined;
  #marginMs = FIRST_MARGIN_MS;
  #revision: Revision | undefined;
  #unsent = new ReportBuilder();

  constructor(owner: ConnectionOwner, patienceMs: number) {
    this.#owner = owner;
    this.#holdings = new Holdings(patienceMs);
  }

  /** Revision of the last push applied; undefined when nothing is held from any. */
  get revision(): Revision | undefined {
    return this.#revision;
  }

  get holdsLease(): boolean {
    return this.#lease !== undefined;
  }

  get hasUnsent(): boolean {
    return !this.#unsent.isEmpty;
  }

  /** Takes σ from a welcome; it holds until the next one. */
  setMargin(marginMs: number): void {
    this.#marginMs = marginMs;
  }

  /** An answer to what was sent at `sentAt` gives a lease of `durationMs`, to be renewed every `renewMs`. */
  extend(sentAt: Reading, { durationMs, renewMs }: LeaseTerms, at: Reading): void {
    this.#lease = extendLease(this.#lease, sentAt, durationMs, this.#marginMs);
    this.#owner.leased({ leftMs: this.leaseLeftMs(at), renewMs, marginMs: this.#marginMs });
  }

  /** True if there is a lease and its time is up. */
  hasLapsed(at: Reading): boolean {
    return this.#lease !== undefined && hasLapsed(this.#lease, at);
  }

  /** Monotonic time at which something of it runs out. */
  nextDueAt(): number {
    const lapse = this.#lease === undefined ? Number.POSITIVE_INFINITY : lapseAt(this.#lease);
    return Math.min(lapse, this.#holdings.nextCutAt());
  }

  leaseLeftMs(at: Reading): number {
    return this.#lease === undefined ? 0 : Math.max(0, lapseAt(this.#lease) - at.now);
  }

  /** Applies a push. What is stopped is no longer served when this returns, so the push may be acked. */
  apply(push: Push, at: Reading): void {
    const steps = this.#holdings.apply(push, at);
    this.#revision = push.revision;
    this.#carryOut(steps, "dropped");
  }

  /** Stops everything and holds nothing any more: neither lease nor revision. */
  drop(reason: StopReason, at: Reading): void {
    this.#lease = undefined;
    this.#revision = undefined;
    const steps = this.#holdings.stopEverything(at);
    this.#unsent = new ReportBuilder();
    this.#carryOut(steps, reason);
  }

  loaded(handles: readonly Handle[], at: Reading): void {
    this.#carryOut(this.#holdings.loaded(handles, at), "dropped");
  }

  fail(handle: Handle, failure: HandleFailure, at: Reading): void {
    this.#carryOut(this.#holdings.fail(handle, failure, at), "dropped");
  }

  ended(handles: readonly Handle[], at: Reading): void {
    this.#carryOut(this.#holdings.ended(handles, at), "dropped");
  }

  cutOverdue(at: Reading): void {
    this.#carryOut(this.#holdings.cutOverdue(at, this.#marginMs), "dropped");
  }

  /** Reports that are due, as frames; they count as sent. */
  takeReports(): readonly string[] {
    if (this.#unsent.isEmpty) return [];
    const owed = this.#unsent.build();
    this.#unsent = new ReportBuilder();
    return splitReport(owed);
  }

  /** After a welcome everything is told again, whatever was sent before. */
  oweEverything(): void {
    this.#unsent = new ReportBuilder();
    this.#unsent.addOwed(this.#holdings.owed());
  }

  /** Judges the stop limit by the reading; whether the lease has lapsed was asked before. */
  epochServed(table: TableName, partition: number, at: Reading): Epoch | undefined {
    if (this.#lease === undefined) return undefined;
    return this.#holdings.epochServed(table, partition, at, this.#marginMs);
  }

  current(table: TableName, partition: number): Handle | undefined {
    return this.#holdings.current(table, partition);
  }

  counts(): { readonly owned: number; readonly ready: number } {
    return this.#holdings.counts();
  }

  #carryOut(steps: Steps, reason: StopReason): void {
    this.#unsent.addOwed(steps.owed);
    // Only a revoke gives a limit to what had none.
    const revoked = steps.stop.filter((handle) => handle.limit !== undefined);
    const rest = steps.stop.filter((handle) => handle.limit === undefined);
    if (revoked.length > 0) this.#owner.stop(revoked, "revoked");
    if (rest.length > 0) this.#owner.stop(rest, reason);
    if (steps.cut.length > 0) this.#owner.cut(steps.cut);
    if (steps.start.length > 0) this.#owner.start(steps.start);
  }
}
