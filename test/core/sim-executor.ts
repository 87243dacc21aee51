import type { SessionEffect } from "../../src/core/effects.ts";
import type { LeaveMode, StampProof } from "../../src/core/events.ts";
import type { Grant, Revoke } from "../../src/model/grant.ts";
import { executorId, instanceId, type SessionId, type TableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import type { World } from "./world.ts";

export interface SimOptions {
  readonly instance?: string;
  readonly capacity?: number;
  readonly weight?: number;
  /** From a revoke to its `released`; "never" does not stop at all. Default 0. */
  releaseMs?: number | "never";
  /** From a push to its ack. Default 0; "never" applies nothing, "lost" applies but its acks are lost. */
  ackMs?: number | "never" | "lost";
  readyMs?: number;
  /** Reconnects this long after its session was closed; undefined: never by itself. */
  reconnectMs?: number;
}

interface Held {
  readonly table: TableName;
  readonly partition: number;
  readonly epoch: number;
  /** Its stop limit, once it is asked back; until it has really stopped. */
  stopAt?: number;
  stopping?: boolean;
}

/**
 * An executor as PROTOCOL describes it, in its simplest form: it serves what it was granted while its lease lives by its own
 * clock, and stops what is asked back after `releaseMs`. It shares no code with the client library.
 */
export class SimExecutor {
  readonly name: string;
  readonly options: SimOptions;
  session: SessionId | undefined;
  resume: { incarnation: string; revision: number } | undefined;
  status: string | undefined;
  readonly held = new Map<string, Held>();
  readonly pushes: Extract<SessionEffect, { type: "session.push" }>[] = [];
  readonly closes: { at: number; code: number; reason: string }[] = [];
  readonly welcomes: { at: number; status: string; resumed: boolean; waitingFor: string | undefined }[] = [];
  leftAt: number | undefined;
  /** Told that a newer process has its id: it stops for good. */
  replaced = false;
  /** Its process does nothing at all: no renewals, no stopping, no lapsing by itself. */
  frozen = false;
  dead = false;
  #attempt = 0;
  #deadline = Number.NEGATIVE_INFINITY;
  #sentAt = new Map<number, number>();
  #n = 0;
  #incarnation: string | undefined;

  constructor(
    readonly world: World,
    id: string,
    options: SimOptions = {},
  ) {
    this.name = id;
    this.options = options;
    world.executors.push(this);
  }

  get id() {
    return executorId(this.name.split("#")[0] ?? this.name);
  }

  get instance() {
    return instanceId(this.options.instance ?? `${this.id}-1`);
  }

  /** Says hello on a new session; while the scheduler is not there, tries again. */
  connect(more: { resume?: boolean; proof?: StampProof } = {}): this {
    const { world } = this;
    this.#checkLapse();
    if (world.down) {
      world.after(
        this.options.reconnectMs ?? 500,
        () => this.session === undefined && !this.dead && this.connect(more),
      );
      return this;
    }
    if (this.session !== undefined) world.close(this.session);
    this.session = world.open(this);
    this.#n = 0;
    this.#sentAt = new Map([[0, world.now]]);
    const { capacity, weight } = this.options;
    const resume = more.resume === true ? this.resume : undefined;
    if (resume === undefined) this.#dropAll();
    world.transcript.push(
      `${(world.now / 1000).toFixed(3)} < hello ${this.name}${resume === undefined ? "" : ` resume=${resume.revision}`}`,
    );
    world.post({
      type: "hello.received",
      session: this.session,
      executor: this.id,
      instance: this.instance,
      attempt: ++this.#attempt,
      weight: weight ?? 1,
      ...(capacity === undefined ? {} : { capacity }),
      ...(resume === undefined ? {} : { resume }),
      ...(more.proof === undefined ? {} : { proof: more.proof }),
    });
    world.run();
    return this;
  }

  /** Its socket breaks; the process goes on. */
  drop(noticedAfterMs = 0): void {
    if (this.session === undefined) return;
    this.world.close(this.session, noticedAfterMs);
    this.session = undefined;
    this.world.settle();
  }

  /** The scheduler's side of the socket is gone. */
  broken(): void {
    const { reconnectMs } = this.options;
    if (this.session === undefined) return;
    this.session = undefined;
    if (reconnectMs !== undefined)
      this.world.after(reconnectMs, () => this.session === undefined && !this.dead && this.connect({ resume: true }));
  }

  /** The process is gone. */
  kill(): void {
    this.dead = true;
    this.held.clear();
    this.drop();
  }

  leave(mode: LeaveMode = "move"): void {
    if (this.session === undefined) throw new Error(`${this.name} has no session`);
    this.world.transcript.push(`${(this.world.now / 1000).toFixed(3)} < leave ${this.name} ${mode}`);
    this.world.post({ type: "leave.received", session: this.session, mode });
    this.world.run();
  }

  report(kind: "ready" | "released", grants: readonly Grant[]): void {
    if (this.session === undefined) return;
    for (const { table, partitions } of kind === "released" ? grants : []) {
      for (const partition of partitions)
        if (this.held.get(`${table}/${partition}`)?.stopAt !== undefined) this.held.delete(`${table}/${partition}`);
    }
    this.world.post({
      type: "report.received",
      session: this.session,
      ready: [],
      released: [],
      failed: [],
      [kind]: grants,
    });
    this.world.run();
  }

  fail(table: string, partitions: string, retryable = true): void {
    if (this.session === undefined) return;
    const set = PartitionSet.parse(partitions);
    const epoch = Math.max(...[...set].map((partition) => this.held.get(`${table}/${partition}`)?.epoch ?? 0));
    const failed = [{ table: table as TableName, partitions: set, epoch, reason: "cannot load", retryable }];
    this.world.post({ type: "report.received", session: this.session, ready: [], released: [], failed });
    this.world.run();
  }

  /** What it may serve by its own clock: held, within lease, within the stop limit. */
  serving(): string[] {
    if (this.dead || this.world.now >= this.lapseAt) return [];
    return [...this.held]
      .filter(([, held]) => held.stopAt === undefined || this.world.now < held.stopAt)
      .map(([key]) => key);
  }

  /** It left, or was replaced: it does not come back by itself. */
  get finished(): boolean {
    return this.leftAt !== undefined || this.replaced;
  }

  get lapseAt(): number {
    return this.#deadline - this.world.settings.lease.clientMarginMs;
  }

  /** Partitions it holds, as numbers of one table. */
  holds(table: string): number[] {
    return [...this.held.values()]
      .filter((held) => held.table === table && held.stopAt === undefined)
      .map((held) => held.partition)
      .sort((a, b) => a - b);
  }

  receive(effect: SessionEffect): void {
    const { world } = this;
    if (this.dead || this.frozen || effect.session !== this.session) return;
    switch (effect.type) {
      case "session.welcome":
        return this.#welcomed(effect);
      case "session.lease":
        this.#deadline = Math.max(this.#deadline, (this.#sentAt.get(effect.n) ?? 0) + effect.durationMs);
        return;
      case "session.push":
        return this.#pushed(effect);
      case "session.left":
        this.leftAt = world.now;
        return;
      case "session.goaway":
        return;
      case "session.close":
        return this.#closed(effect.code, effect.reason);
      default:
        return effect satisfies never;
    }
  }

  #welcomed(effect: Extract<SessionEffect, { type: "session.welcome" }>): void {
    const { world } = this;
    this.#deadline = Math.max(this.#deadline, (this.#sentAt.get(0) ?? 0) + effect.lease.durationMs);
    this.welcomes.push({
      at: world.now,
      status: effect.status,
      resumed: effect.resumed,
      waitingFor: effect.waitingFor,
    });
    this.status = effect.status;
    this.#incarnation = effect.incarnation;
    this.#renewLater(effect.session, effect.lease.renewMs);
    // After every welcome it repeats what the last push asked back and has stopped, and what is loaded.
    this.#reportHeld();
  }

  #renewLater(session: SessionId, renewMs: number): void {
    this.world.after(renewMs, () => {
      if (this.session !== session || this.dead) return;
      if (!this.frozen) {
        if (this.#checkLapse()) return;
        const n = ++this.#n;
        this.#sentAt.set(n, this.world.now);
        this.world.post({ type: "renew.received", session, n });
      }
      this.#renewLater(session, renewMs);
    });
  }

  /** A lapsed executor stops everything and says hello afresh. */
  #checkLapse(): boolean {
    if (this.#deadline === Number.NEGATIVE_INFINITY || this.world.now < this.lapseAt) return false;
    this.#deadline = Number.NEGATIVE_INFINITY;
    this.#dropAll();
    this.drop();
    const { reconnectMs } = this.options;
    if (reconnectMs !== undefined)
      this.world.after(reconnectMs, () => this.session === undefined && !this.dead && this.connect());
    return true;
  }

  #dropAll(): void {
    this.held.clear();
    this.resume = undefined;
  }

  #pushed(push: Extract<SessionEffect, { type: "session.push" }>): void {
    const { ackMs = 0 } = this.options;
    this.pushes.push(push);
    if (ackMs === "never") return;
    if (push.base !== null && push.base !== this.resume?.revision)
      throw new Error(`${this.name} was pushed base ${push.base}, it is at ${this.resume?.revision}`);
    const apply = () => {
      if (this.session !== push.session || this.dead) return;
      this.#apply(push);
      if (ackMs !== "lost") this.world.post({ type: "ack.received", session: push.session, revision: push.revision });
    };
    if (typeof ackMs === "number" && ackMs > 0) this.world.after(ackMs, apply);
    else apply();
  }

  #apply(push: Extract<SessionEffect, { type: "session.push" }>): void {
    if (push.base === null) this.#keepOnly([...push.grant, ...push.revoke]);
    for (const revoke of push.revoke) this.#revoked(revoke);
    for (const { table, partitions, epoch } of push.grant) {
      for (const partition of partitions) this.held.set(`${table}/${partition}`, { table, partition, epoch });
    }
    this.resume = { incarnation: this.#incarnation ?? "", revision: push.revision };
    const { readyMs = 0 } = this.options;
    const { session } = push;
    if (readyMs === 0)
      this.world.post({ type: "report.received", session, ready: push.grant, released: [], failed: [] });
    else this.world.after(readyMs, () => this.session === session && this.report("ready", push.grant));
  }

  #keepOnly(named: readonly Grant[]): void {
    for (const [key, held] of this.held) {
      const kept = named.some(
        (grant) => grant.table === held.table && grant.epoch === held.epoch && grant.partitions.has(held.partition),
      );
      if (!kept) this.held.delete(key);
    }
  }

  #revoked(revoke: Revoke): void {
    const { releaseMs = 0 } = this.options;
    const stopAt = this.world.now + revoke.stopMs;
    for (const partition of revoke.partitions) {
      const held = this.held.get(`${revoke.table}/${partition}`);
      if (held !== undefined && held.epoch <= revoke.epoch) held.stopAt ??= stopAt;
    }
    if (releaseMs === "never") return;
    this.world.after(releaseMs, () => {
      if (this.dead || this.frozen) return;
      for (const partition of revoke.partitions) {
        const key = `${revoke.table}/${partition}`;
        if ((this.held.get(key)?.epoch ?? 0) <= revoke.epoch) this.held.delete(key);
      }
      this.report("released", [revoke]);
    });
  }

  #reportHeld(): void {
    const byTable = new Map<string, { table: TableName; epoch: number; partitions: number[] }>();
    for (const { table, partition, epoch, stopAt } of this.held.values()) {
      if (stopAt !== undefined) continue;
      const key = `${table} ${epoch}`;
      const entry = byTable.get(key) ?? { table, epoch, partitions: [] };
      entry.partitions.push(partition);
      byTable.set(key, entry);
    }
    const ready = [...byTable.values()].map(({ table, epoch, partitions }) => ({
      table,
      epoch,
      partitions: PartitionSet.of(partitions),
    }));
    if (ready.length > 0 && this.session !== undefined) {
      this.world.post({ type: "report.received", session: this.session, ready, released: [], failed: [] });
    }
  }

  #closed(code: number, reason: string): void {
    const { world } = this;
    this.closes.push({ at: world.now, code, reason });
    this.session = undefined;
    if (code === 4409) this.replaced = true;
    const stops = [4400, 4403, 4409, 4410].includes(code);
    if (stops) this.#dropAll();
    const { reconnectMs } = this.options;
    if (reconnectMs === undefined || code === 4409 || code === 4400) return;
    world.after(reconnectMs, () => this.session === undefined && !this.dead && this.connect({ resume: !stops }));
  }
}
