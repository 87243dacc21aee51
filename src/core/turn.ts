import type { Cause } from "../model/change.ts";
import type { ExecutorId, SessionId, TableName } from "../model/ids.ts";
import type { Effect, LogLevel, Refused } from "./effects.ts";
import type { CoreState } from "./state.ts";

/** One run of `step`: the state it works on, the time it counts by, and what it wants done so far, in order. */
export interface Turn {
  readonly state: CoreState;
  readonly now: number;
  readonly effects: Effect[];
}

export function log(turn: Turn, level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>): void {
  turn.effects.push({ type: "log", level, event, fields });
}

/** Ends a session. The core forgets it here; the socket's own end follows as an event that finds nothing. */
export function closeSession(turn: Turn, session: SessionId, code: number, reason: string, refused?: Refused): void {
  turn.state.sessions.delete(session);
  turn.effects.push({
    type: "session.close",
    session,
    code,
    reason,
    ...(refused === undefined ? {} : { refused }),
  });
}

/** Adds causes to a list: those of one kind, actor and note are one, with the union of whom and what they concern. */
export function mergeCauses(causes: readonly Cause[], added: readonly Cause[]): readonly Cause[] {
  // The usual case, for each of many executors: one change, whose causes are merged and can be shared by all of them.
  if (causes.length === 0) return added;
  const merged = new Map<string, Merged>();
  for (const cause of [...causes, ...added]) {
    const key = JSON.stringify([cause.kind, cause.by, cause.note]);
    const one = merged.get(key) ?? { cause, executors: new Set(), tables: new Set() };
    merged.set(key, one);
    for (const executor of cause.executors ?? []) one.executors.add(executor);
    for (const table of cause.tables ?? []) one.tables.add(table);
  }
  return [...merged.values()].map(({ cause, executors, tables }) => ({
    ...cause,
    ...(executors.size === 0 ? {} : { executors: [...executors].sort() }),
    ...(tables.size === 0 ? {} : { tables: [...tables].sort() }),
  }));
}

interface Merged {
  readonly cause: Cause;
  readonly executors: Set<ExecutorId>;
  readonly tables: Set<TableName>;
}
