import type { Effect } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import type { Core, CoreStart } from "../../src/driver/core.ts";
import { Driver } from "../../src/driver/driver.ts";
import {
  type Checkpoint,
  type Clock,
  type Loaded,
  type LogLevel,
  type Reign,
  type SessionEffect,
  type Store,
  StoreError,
} from "../../src/driver/ports.ts";
import { type Change, emptyChange } from "../../src/model/change.ts";
import { type Revision, sessionId, tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";
import { FakeClock, settle } from "../../src/testing/fake-clock.ts";

/** One call of `step`. */
export interface Turn {
  readonly events: readonly Event[];
  readonly now: number;
}

/** What the script answers a turn with. */
export interface Reply {
  readonly effects?: readonly Effect[];
  readonly wakeAt?: number;
}

export const FLOOR = 1_000;

/** A driver around a core that does what a test says. */
export class Rig {
  readonly clock = new FakeClock();
  readonly turns: Turn[] = [];
  readonly sent: SessionEffect[] = [];
  readonly logged: { level: LogLevel; event: string; fields: Readonly<Record<string, unknown>> }[] = [];
  readonly store = new ScriptedStore();
  readonly driver: Driver<{ revision: Revision }>;
  started: CoreStart | undefined;
  /** Answers each turn. By default nothing happens. */
  script: (turn: Turn) => Reply = () => ({});

  constructor(settings: Partial<Settings> = {}, clock: Clock = this.clock) {
    const log = {
      log: (level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>) =>
        void this.logged.push({ level, event, fields }),
    };
    const merged = { ...DEFAULT_SETTINGS, ...settings };
    this.driver = new Driver({ core: this.#core(), clock, store: this.store, settings: merged, log });
    this.driver.attachSessions({ deliver: (effect) => void this.sent.push(effect) });
  }

  #core(): Core<{ revision: Revision }> {
    return {
      createState: (start) => {
        this.started = start;
        return { revision: start.changes.at(-1)?.revision ?? start.floor };
      },
      step: (state, events, now) => {
        const turn = { events, now };
        this.turns.push(turn);
        const committed = events.findLast((event) => event.type === "change.committed");
        const revision = committed?.change.revision ?? state.revision;
        const { effects = [], wakeAt = Number.POSITIVE_INFINITY } = this.script(turn);
        return { state: { revision }, effects, wakeAt };
      },
      describe: (state) => ({ ...STATUS, revision: state.revision }),
      listTables: () => TABLES,
      currentRevision: (state) => state.revision,
      toCheckpoint: (state) => ({ revision: state.revision, state: { at: state.revision } }),
    };
  }

  /** Starts, and lets the first turn pass. */
  async start(): Promise<void> {
    await this.driver.start();
    await settle();
    this.turns.length = 0;
  }

  /** The types of all events that came in, turn by turn. */
  get seen(): readonly (readonly string[])[] {
    return this.turns.map((turn) => turn.events.map((event) => event.type));
  }

  get events(): readonly string[] {
    return this.logged.map(({ event }) => event);
  }
}

const STATUS = {
  cluster: "demo",
  incarnation: "inc",
  term: 1,
  role: "leader",
  state: "working",
  converged: true,
  waitingFor: [],
  windows: [],
  tables: [],
  executors: [],
  alarms: [],
} as const;

export const TRIPS = {
  table: tableName("trips"),
  count: 9,
  handoff: "exclusive",
  stopMs: 30_000,
  balance: "count",
  selector: {},
} as const;

const TABLES = [{ ...TRIPS, created: FLOOR + 1, origin: "api" }] as const;

export const renew = (n: number): Event => ({ type: "renew.received", session: sessionId("s1"), n });

export const lease = (n: number): Effect => ({
  type: "session.lease",
  session: sessionId("s1"),
  n,
  revision: FLOOR,
  durationMs: 15_000,
  renewMs: 4_000,
});

export const append = (revision: Revision): Effect => ({ type: "store.append", change: emptyChange(revision, 1) });

/** A store of which a test decides how each call ends. */
export class ScriptedStore implements Store {
  readonly appended: Change[] = [];
  readonly checkpoints: Checkpoint[] = [];
  loaded: Loaded = { changes: [], floor: FLOOR, maxLeaseMs: 0 };
  readonly leases: (number | "quarantine ended")[] = [];
  released = 0;
  reads = 0;
  lose: (reason: string) => void = () => {};
  onAppend: (change: Change) => Promise<void> = async () => {};
  onRead: (revision: Revision) => readonly Change[] = () => [];

  async acquire(): Promise<Reign> {
    const lost = new Promise<string>((resolve) => {
      this.lose = resolve;
    });
    return { term: 1, incarnation: "inc", stampKey: new Uint8Array(32), lost };
  }

  async load(): Promise<Loaded> {
    return this.loaded;
  }

  async append(_reign: Reign, change: Change): Promise<void> {
    this.appended.push(change);
    await this.onAppend(change);
  }

  async setMaxLease(_reign: Reign, durationMs: number): Promise<void> {
    this.leases.push(durationMs);
  }

  async endQuarantine(): Promise<void> {
    this.leases.push("quarantine ended");
  }

  async *read(from: Revision): AsyncIterable<Change> {
    this.reads++;
    yield* this.onRead(from);
  }

  follow(): AsyncIterable<Change> {
    throw new StoreError("gap", "nothing is followed here");
  }

  async checkpoint(_reign: Reign, checkpoint: Checkpoint): Promise<void> {
    this.checkpoints.push(checkpoint);
  }

  async release(): Promise<void> {
    this.released++;
  }
}
