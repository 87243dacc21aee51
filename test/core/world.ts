import { describe } from "../../src/core/describe.ts";
import type { Effect, SessionEffect } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { createState } from "../../src/core/start.ts";
import type { CoreState } from "../../src/core/state.ts";
import { step } from "../../src/core/step.ts";
import { type LedgerCheckpoint, toCheckpoint } from "../../src/ledger/checkpoint.ts";
import { readCell } from "../../src/ledger/chunks.ts";
import { fold } from "../../src/ledger/fold.ts";
import { executorRecord, STATE_OWNED } from "../../src/ledger/state.ts";
import type { Change, TableSpec } from "../../src/model/change.ts";
import { type SessionId, sessionId, tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";
import type { SimExecutor } from "./sim-executor.ts";

/** The numbers of the scenarios: formation quiet = max = 5 s, lease 10 s, renew 1 s, loss wait 10 s. */
export const SCENARIO_SETTINGS: Settings = {
  ...DEFAULT_SETTINGS,
  lease: { durationMs: 10_000, renewMs: 1_000, clientMarginMs: 1_000, serverMarginMs: 1_000, driftRate: 0.01 },
  formation: { quietMs: 5_000, maxMs: 5_000 },
};

export interface WorldOptions {
  readonly settings?: Partial<Settings>;
  /** How long an append takes. Default: the next turn. */
  readonly commitMs?: number;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * The core with a fake clock, a store in memory and simulated executors. Time moves only in `advance`; after each turn every
 * invariant is checked, among them that no partition may be served by two processes.
 */
export class World {
  now = 0;
  state: CoreState;
  /** What the store knows of leases. */
  maxLeaseMs: number;
  commitMs: number;
  /** "fail": every append is answered by append.failed. */
  store: "ok" | "fail" | "hang" = "ok";
  readonly changes: Change[] = [];
  readonly transcript: string[] = [];
  readonly logs: { at: number; event: string; fields: Readonly<Record<string, unknown>> }[] = [];
  readonly answers = new Map<number, Extract<Effect, { type: "request.answered" }>["answer"]>();
  readonly executors: SimExecutor[] = [];
  finished = false;
  readonly #sessions = new Map<SessionId, SimExecutor>();
  readonly #epochs = new Map<string, number>();
  #inbox: Event[] = [];
  #timers: Timer[] = [];
  #order = 0;
  #wakeAt = 0;
  #sessionCount = 0;
  #requests = 0;
  #settling = false;

  /** True while the scheduler is not there. */
  down = false;
  #life = 0;

  constructor(options: WorldOptions = {}) {
    this.commitMs = options.commitMs ?? 0;
    const settings = { ...SCENARIO_SETTINGS, ...options.settings };
    this.maxLeaseMs = settings.lease.durationMs;
    this.state = createState({ settings, incarnation: "life", term: 1, floor: 0, now: 0 });
  }

  get settings(): Settings {
    return this.state.settings;
  }

  get status() {
    return describe(this.state, this.now);
  }

  post(event: Event): void {
    if (this.down) return;
    this.#inbox.push(event);
  }

  after(delayMs: number, run: () => void): void {
    this.#timers.push({ at: this.now + delayMs, order: this.#order++, run });
  }

  /** Opens a session for a simulated executor, which then speaks by `post`. */
  open(executor: SimExecutor): SessionId {
    const session = sessionId(`s${++this.#sessionCount}`);
    this.#sessions.set(session, executor);
    return session;
  }

  /** The executor's side of the socket is gone; the scheduler hears of it after `delayMs`. */
  close(session: SessionId, delayMs = 0): void {
    this.#sessions.delete(session);
    this.after(delayMs, () => this.post({ type: "session.closed", session, code: 1006 }));
  }

  /**
   * The scheduler is killed, and started again after `downMs` from what its store has: a change under way is lost, unless
   * `landed`, then it is durable although nobody was told.
   */
  restart(
    downMs: number,
    options: { landed?: boolean; settings?: Partial<Settings>; quarantineMs?: number } = {},
  ): void {
    const { state, now } = this;
    this.#life++;
    this.down = true;
    this.#inbox = [];
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#sessions.clear();
    this.transcript.push(`${(now / 1000).toFixed(3)} ! the scheduler is killed`);
    const underWay = state.append?.change;
    const ledger = options.landed === true && underWay !== undefined ? fold(state.ledger, underWay) : state.ledger;
    if (ledger !== state.ledger && underWay !== undefined) this.changes.push(underWay);
    for (const executor of this.executors) executor.broken();
    this.after(downMs, () => {
      const settings = { ...state.settings, ...options.settings };
      const checkpoint = JSON.parse(JSON.stringify(toCheckpoint(ledger))) as LedgerCheckpoint;
      const { quarantineMs = 0 } = options;
      const maxLeaseMs = this.maxLeaseMs;
      this.maxLeaseMs = Math.max(maxLeaseMs, settings.lease.durationMs);
      const incarnation = quarantineMs > 0 ? `${ledger.incarnation}-restored` : ledger.incarnation;
      const start = { settings, incarnation, term: state.term + 1, floor: 0, checkpoint, maxLeaseMs, quarantineMs };
      this.state = createState({ ...start, now: this.now });
      this.down = false;
      this.#wakeAt = this.now;
      this.transcript.push(`${(this.now / 1000).toFixed(3)} ! the scheduler is started`);
    });
  }

  table(name: string, count: number, more: Partial<TableSpec> = {}): number {
    const request = ++this.#requests;
    const spec = {
      table: tableName(name),
      count,
      handoff: "exclusive",
      stopMs: 30_000,
      balance: "count",
      selector: {},
      ...more,
    } as const;
    this.post({ type: "table.put", request, spec, origin: "api" });
    this.run();
    return request;
  }

  deleteTable(name: string): number {
    const request = ++this.#requests;
    this.post({ type: "table.deleted", request, table: tableName(name) });
    this.run();
    return request;
  }

  declare(specs: readonly TableSpec[]): number {
    const request = ++this.#requests;
    this.post({ type: "tables.declared", request, specs });
    this.run();
    return request;
  }

  /** Lets time pass, turn by turn. */
  advance(durationMs: number): void {
    this.#settling = true;
    this.#advance(durationMs);
    this.#settling = false;
  }

  #advance(durationMs: number): void {
    const until = this.now + durationMs;
    this.run();
    while (true) {
      const next = Math.min(
        this.#wakeAt,
        this.#timers.reduce((at, timer) => Math.min(at, timer.at), Number.POSITIVE_INFINITY),
      );
      if (next > until) break;
      this.now = Math.max(this.now, next);
      const due = this.#timers.filter((timer) => timer.at <= this.now).sort((a, b) => a.at - b.at || a.order - b.order);
      this.#timers = this.#timers.filter((timer) => timer.at > this.now);
      for (const timer of due) timer.run();
      this.run();
    }
    this.now = until;
    this.run();
  }

  advanceTo(at: number): void {
    this.advance(at - this.now);
  }

  /** Does what is due at the present time, until nothing is. */
  settle(): void {
    if (!this.#settling) this.advance(0);
  }

  /** Runs turns at the present time until nothing happens any more. */
  run(): void {
    for (let turns = 0; this.#inbox.length > 0 || this.#wakeAt <= this.now; turns++) {
      if (turns > 10_000) throw new Error(`turns without end at ${this.now}`);
      const events = this.#inbox;
      this.#inbox = [];
      const result = step(this.state, events, this.now);
      this.state = result.state;
      this.#wakeAt = result.wakeAt;
      for (const effect of result.effects) this.#carryOut(effect);
      this.check();
    }
  }

  /** Everything that must hold after every step of every scenario. */
  check(): void {
    checkInvariants(this.state);
    const serving = new Map<string, SimExecutor>();
    for (const executor of this.executors) {
      for (const partition of executor.serving()) {
        const other = serving.get(partition);
        if (other !== undefined)
          throw new Error(`${partition} is served by ${other.name} and ${executor.name} at ${this.now}`);
        serving.set(partition, executor);
      }
    }
  }

  /** Owner of each partition as text: "A A B -". */
  owners(name: string): string[] {
    const table = this.state.ledger.tables.get(tableName(name));
    if (table === undefined) return [];
    return Array.from({ length: table.record.count }, (_, partition) => {
      const cell = readCell(table.chunks, partition);
      return cell.state === STATE_OWNED ? (this.state.ledger.holders[cell.holder]?.executor ?? "?") : "-";
    });
  }

  epochs(name: string): number[] {
    const table = this.state.ledger.tables.get(tableName(name));
    return Array.from(
      { length: table?.record.count ?? 0 },
      (_, partition) => readCell(table?.chunks ?? [], partition).epoch,
    );
  }

  /** How many partitions each executor owns in a table, or in all. */
  loads(name?: string): Record<string, number> {
    const loads: Record<string, number> = {};
    const names = name === undefined ? [...this.state.ledger.tables.keys()] : [name];
    for (const owner of names.flatMap((table) => this.owners(table)))
      if (owner !== "-") loads[owner] = (loads[owner] ?? 0) + 1;
    return loads;
  }

  /** Partitions that were taken from a living owner: asked back although it neither leaves nor is lost nor was replaced. */
  moves(since = 0): number {
    return this.changes
      .filter((change) => change.revision > since)
      .reduce((sum, change) => sum + voluntaryMoves(change, this.state), 0);
  }

  /** Times at which an event was logged. */
  loggedAt(event: string): number[] {
    return this.logs.filter((line) => line.event === event).map((line) => line.at);
  }

  get revision(): number {
    return this.state.ledger.revision;
  }

  #carryOut(effect: Effect): void {
    switch (effect.type) {
      case "store.append":
        return this.#append(effect.change);
      case "request.answered":
        this.answers.set(effect.request, effect.answer);
        return;
      case "log":
        this.logs.push({ at: this.now, event: effect.event, fields: effect.fields });
        return;
      case "shutdown.finished":
        this.finished = true;
        return;
      default:
        return this.#deliver(effect);
    }
  }

  #append(change: Change): void {
    if (change.cause.length === 0) throw new Error(`change ${change.revision} has no cause`);
    if (this.store === "hang") return;
    if (this.store === "fail") {
      const life = this.#life;
      this.after(
        this.commitMs,
        () =>
          life === this.#life && this.post({ type: "append.failed", revision: change.revision, error: "disk full" }),
      );
      return;
    }
    // What a store keeps is text: the change must survive that.
    const life = this.#life;
    this.after(this.commitMs, () => {
      if (life !== this.#life) return;
      this.changes.push(change);
      this.transcript.push(`${(this.now / 1000).toFixed(3)} = ${describeChange(change)}`);
      this.#checkEpochs(change);
      this.post({ type: "change.committed", change });
    });
    if (this.commitMs === 0) this.#runDue();
  }

  #runDue(): void {
    const due = this.#timers.filter((timer) => timer.at <= this.now);
    this.#timers = this.#timers.filter((timer) => timer.at > this.now);
    for (const timer of due) timer.run();
  }

  #checkEpochs(change: Change): void {
    for (const { table, partitions } of change.own) {
      for (const partition of partitions) {
        const key = `${table}/${partition}`;
        if ((this.#epochs.get(key) ?? 0) >= change.revision) throw new Error(`epoch of ${key} does not rise`);
        this.#epochs.set(key, change.revision);
      }
    }
  }

  #deliver(effect: SessionEffect): void {
    const executor = this.#sessions.get(effect.session);
    this.transcript.push(`${(this.now / 1000).toFixed(3)} > ${describeEffect(effect, executor?.name)}`);
    if (effect.type === "session.close") this.#sessions.delete(effect.session);
    executor?.receive(effect);
    if (effect.type === "session.close")
      this.post({ type: "session.closed", session: effect.session, code: effect.code });
  }
}

function voluntaryMoves(change: Change, state: CoreState): number {
  const forced = new Set(
    change.cause
      .filter(({ kind }) => ["leave", "restart", "loss", "replacement"].includes(kind))
      .flatMap(({ executors }) => executors ?? []),
  );
  return change.release
    .filter(
      ({ executor, table }) =>
        !forced.has(executor) &&
        executorRecord(state.ledger, executor) !== undefined &&
        state.ledger.tables.get(table)?.record.removing === undefined,
    )
    .reduce((sum, entry) => sum + entry.partitions.size, 0);
}

/** Entries of a change as text, empty ones left out. */
function describeChange(change: Change): string {
  const parts = [
    ...change.executors.map(
      (entry) => `executor ${entry.executor} ${"removed" in entry ? "removed" : `${entry.instance} ${entry.state}`}`,
    ),
    ...change.tables.map(
      (entry) =>
        `table ${entry.table} ${"removed" in entry ? "removed" : `count=${entry.count}${entry.removing === true ? " removing" : ""}`}`,
    ),
    ...change.release.map(
      (entry) => `release ${entry.table}/${entry.partitions} ${entry.executor}->${entry.to ?? "?"}`,
    ),
    ...change.unown.map(
      (entry) =>
        `unown ${entry.table}/${entry.partitions} ${entry.reason}${entry.to === undefined ? "" : ` for ${entry.to}`}`,
    ),
    ...change.own.map((entry) => `own ${entry.table}/${entry.partitions} ${entry.executor}`),
  ];
  return `revision ${change.revision} (${change.cause.map(({ kind }) => kind).join(",")}): ${parts.join("; ")}`;
}

function describeEffect(effect: SessionEffect, name: string | undefined): string {
  const to = name ?? effect.session;
  const list = (grants: readonly { table: string; partitions: unknown; epoch: number }[]) =>
    grants.map((grant) => `${grant.table}/${grant.partitions}@${grant.epoch}`).join(" ") || "-";
  switch (effect.type) {
    case "session.welcome":
      return `welcome ${to} ${effect.status} resumed=${effect.resumed}${effect.waitingFor === undefined ? "" : ` (${effect.waitingFor})`}`;
    case "session.push":
      return `push ${to} revision=${effect.revision} base=${effect.base} grant=${list(effect.grant)} revoke=${list(effect.revoke)} cause=${effect.cause.map(({ kind }) => kind).join(",")}`;
    case "session.lease":
      return `lease ${to} n=${effect.n}`;
    case "session.goaway":
      return `goaway ${to} after=${effect.afterMs}`;
    case "session.left":
      return `left ${to}`;
    case "session.close":
      return `close ${to} ${effect.code} ${effect.reason}`;
    default:
      return effect satisfies never;
  }
}
