import type { Cause } from "../model/change.ts";
import type { SessionId } from "../model/ids.ts";
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
  const merged = [...causes];
  for (const cause of added) {
    const at = merged.findIndex(
      (other) => other.kind === cause.kind && other.by === cause.by && other.note === cause.note,
    );
    const there = merged[at];
    const executors = union(there?.executors, cause.executors);
    const tables = union(there?.tables, cause.tables);
    const both = { ...cause, ...(executors && { executors }), ...(tables && { tables }) };
    if (there === undefined) merged.push(both);
    else merged[at] = both;
  }
  return merged;
}

function union<T extends string>(a: readonly T[] | undefined, b: readonly T[] | undefined): readonly T[] | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return [...new Set([...a, ...b])].sort();
}
