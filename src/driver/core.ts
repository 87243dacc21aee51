import type { Effect } from "../core/effects.ts";
import type { Event } from "../core/events.ts";
import type { Change, TableRecord } from "../model/change.ts";
import type { Revision } from "../model/ids.ts";
import type { Settings } from "../model/settings.ts";
import type { Status } from "../model/status.ts";
import type { Checkpoint } from "./ports.ts";

/**
 * The pure part that the driver turns, as the driver sees it. Everything here is synchronous and depends on its arguments
 * alone. Tests turn a scripted one in its place.
 */
export interface Core<State> {
  createState(options: CoreStart): State;
  /** Consumes `state`: only the returned one may be used afterwards. */
  step(state: State, events: readonly Event[], now: number): CoreTurn<State>;
  describe(state: State, now: number): Status;
  listTables(state: State): readonly TableRecord[];
  currentRevision(state: State): Revision;
  /** The state's ledger as plain JSON data. */
  toCheckpoint(state: State): Checkpoint;
}

/** What the store had at the start of a reign. */
export interface CoreStart {
  readonly settings: Settings;
  readonly incarnation: string;
  readonly term: number;
  readonly floor: Revision;
  readonly checkpoint?: unknown;
  readonly changes: readonly Change[];
  /** The largest lease that earlier reigns may have issued, in ms. */
  readonly maxLeaseMs: number;
  /** After a restore: nothing is granted until a lease of this length has run out, in ms. */
  readonly quarantineMs?: number;
  readonly now: number;
}

export interface CoreTurn<State> {
  readonly state: State;
  readonly effects: readonly Effect[];
  /** When to turn again even if nothing happens; Infinity: never. */
  readonly wakeAt: number;
}
