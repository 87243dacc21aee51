import { Connection } from "../../src/client/connection.ts";
import { epochOf, type Handle } from "../../src/client/handle.ts";
import type { ClientLog, Closing, ConnectionOwner, StopReason } from "../../src/client/ports.ts";
import { executorId, instanceId, tableName } from "../../src/model/ids.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { FakeScheduler, type FakeSession } from "../../src/testing/fake-scheduler.ts";

/** `trips/3@7`: a partition under an epoch. */
export function nameOf(handle: Handle): string {
  return `${handle.table}/${handle.partition}@${epochOf(handle)}`;
}

/** Keeps what it is told, as lines such as `start trips/3@7` or `stop trips/3@7 revoked`. */
export class RecordingOwner implements ConnectionOwner {
  readonly lines: string[] = [];
  readonly handles = new Map<string, Handle>();
  closing: Closing | undefined;
  /** Called before a stop is recorded, as an abort listener of the owner's code would be. */
  onStop: (() => void) | undefined;
  /** Called when the lease was extended. */
  onLeased: (() => void) | undefined;

  stop(handles: readonly Handle[], reason: StopReason): void {
    this.onStop?.();
    for (const handle of handles) this.lines.push(`stop ${nameOf(handle)} ${reason}`);
  }

  cut(handles: readonly Handle[]): void {
    for (const handle of handles) this.lines.push(`cut ${nameOf(handle)}`);
  }

  start(handles: readonly Handle[]): void {
    for (const handle of handles) {
      this.handles.set(nameOf(handle), handle);
      this.lines.push(`start ${nameOf(handle)}`);
    }
  }

  changed(): void {}

  leased(): void {
    this.onLeased?.();
  }

  finished(closing: Closing): void {
    this.closing = closing;
    this.lines.push(`finished ${closing.kind}`);
  }

  /** The lines since this was last called. */
  take(): readonly string[] {
    return this.lines.splice(0);
  }
}

const SILENT: ClientLog = { log() {} };

export interface FixtureOptions {
  readonly urls?: readonly string[];
  readonly random?: () => number;
  readonly canRenewToken?: boolean;
  readonly automatic?: boolean;
  readonly patienceMs?: number;
}

/** A connection that has dialled a fake scheduler under a fake clock. Random is 0 unless given: every backoff is over at once. */
export class Fixture {
  readonly clock = new FakeClock();
  readonly scheduler: FakeScheduler;
  readonly owner = new RecordingOwner();
  readonly connection: Connection;

  constructor(options: FixtureOptions = {}) {
    this.scheduler = new FakeScheduler({ automatic: options.automatic ?? false });
    this.connection = new Connection(
      {
        urls: options.urls ?? ["ws://one:7420/v1/session"],
        executor: executorId("a"),
        instance: instanceId("a-1"),
        traits: { weight: 1 },
        canRenewToken: options.canRenewToken ?? false,
        patienceMs: options.patienceMs ?? 30_000,
      },
      { clock: this.clock, random: { next: options.random ?? (() => 0) }, dial: this.scheduler.dial, log: SILENT },
      this.owner,
    );
    this.connection.start();
  }

  /** A connection that was welcomed and granted `trips 0-1` at revision 5, both loaded and acked, nothing left to take. */
  static serving(options: FixtureOptions = {}): Fixture {
    const fixture = new Fixture(options);
    fixture.session.begin({ status: "assigned" });
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-1"]] });
    fixture.loaded("trips/0@5", "trips/1@5");
    fixture.clock.advance(20);
    fixture.session.take();
    fixture.owner.take();
    return fixture;
  }

  get session(): FakeSession {
    return this.scheduler.session;
  }

  get dialled(): number {
    return this.scheduler.sessions.length;
  }

  handle(name: string): Handle {
    const handle = this.owner.handles.get(name);
    if (handle === undefined) throw new Error(`${name} was never started; there are ${[...this.owner.handles.keys()]}`);
    return handle;
  }

  loaded(...names: string[]): void {
    for (const name of names) this.connection.loaded([this.handle(name)]);
  }

  unloaded(...names: string[]): void {
    for (const name of names) this.connection.unloaded([this.handle(name)]);
  }

  owns(partition: number, table = "trips"): number | undefined {
    return this.connection.owns(tableName(table), partition);
  }

  /** Lets `ms` pass and answers every renew at once. */
  advanceAnswering(ms: number): void {
    const until = this.clock.now() + ms;
    while (this.clock.now() < until) {
      const step = Math.min((this.clock.nextDue ?? until) - this.clock.now(), until - this.clock.now());
      this.clock.advance(Math.max(0, step));
      const renews = this.session.received.filter((frame) => frame.type === "renew").length;
      if (renews > 0 && this.session.closed === undefined) this.session.lease(renews);
    }
  }
}
