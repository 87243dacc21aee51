import { fromCheckpoint, type LedgerCheckpoint } from "../ledger/checkpoint.ts";
import { fold } from "../ledger/fold.ts";
import { emptyLedger, holderKey, holdersInOrder, type LedgerState } from "../ledger/state.ts";
import type { Change } from "../model/change.ts";
import type { Revision } from "../model/ids.ts";
import { type Settings, stretched } from "../model/settings.ts";
import { Deadlines } from "./fleet/deadlines.ts";
import { armLease } from "./fleet/lease.ts";
import type { InstanceState } from "./fleet/member.ts";
import { beginRecovery } from "./recovery.ts";
import { type CoreState, sumTotals } from "./state.ts";

export interface CoreOptions {
  readonly settings: Settings;
  readonly incarnation: string;
  readonly term: number;
  /** Revision that the first change of an empty store follows. */
  readonly floor: Revision;
  readonly checkpoint?: LedgerCheckpoint;
  readonly changes?: readonly Change[];
  /** The largest lease that earlier reigns may have issued, in ms. Default 0: none. */
  readonly maxLeaseMs?: number;
  /** After a restore: nothing is granted until a lease of this length has run out. Default 0. */
  readonly quarantineMs?: number;
  readonly now: number;
}

/** The state at a start: the ledger as the store has it, and nobody heard yet. */
export function createState(options: CoreOptions): CoreState {
  const { settings, term, now } = options;
  const start =
    options.checkpoint === undefined
      ? emptyLedger(options.incarnation, options.floor)
      : fromCheckpoint(options.checkpoint);
  const ledger = (options.changes ?? []).reduce(fold, start);
  const { maxLeaseMs = 0, quarantineMs = 0 } = options;
  const leaseFloor = outlasting(Math.max(maxLeaseMs, quarantineMs), settings, now);
  const state: CoreState = {
    settings,
    term,
    ledger,
    totals: sumTotals(ledger),
    members: new Map(),
    sessions: new Map(),
    instances: loadedInstances(ledger, leaseFloor),
    replacements: new Map(),
    deadlines: new Deadlines(),
    ended: new Map(),
    reservations: new Map(),
    forgettable: new Set(),
    former: new Map(),
    backoffs: new Map(),
    failures: [],
    newcomers: new Set(),
    window: undefined,
    recovery: undefined,
    leaseFloor,
    grantsFrom: outlasting(quarantineMs, settings, now),
    formed: false,
    causes: [],
    commands: [],
    append: undefined,
    appendAt: Number.NEGATIVE_INFINITY,
    stale: true,
    undelivered: new Set(),
    holdUntil: Number.NEGATIVE_INFINITY,
    stopFloors: new Map(),
    stopping: undefined,
    alarms: new Map(),
  };
  for (const track of state.instances.values()) armLease(state, track);
  beginRecovery(state, now);
  return state;
}

/** When a lease of this length that was handed out until now has run out everywhere. */
function outlasting(durationMs: number, { lease }: Settings, now: number): number {
  return durationMs === 0 ? Number.NEGATIVE_INFINITY : now + stretched(durationMs, lease);
}

/** After a start every epoch of the ledger counts as sent, and no grant ends by lease before the longest one is out. */
function loadedInstances(ledger: LedgerState, leaseEndsAt: number): Map<string, InstanceState> {
  return new Map(
    holdersInOrder(ledger).map(({ executor, instance }) => [
      holderKey(executor, instance),
      { executor, instance, leaseEndsAt, sentRevision: ledger.revision, stops: [] },
    ]),
  );
}
