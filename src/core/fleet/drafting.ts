import { executorRecord, findHolder, type Holder } from "../../ledger/state.ts";
import { type ExecutorRecord, type ExecutorState, MAX_REPLACED } from "../../model/change.ts";
import { byId } from "../../model/ids.ts";
import type { Draft } from "../draft.ts";
import { awaited } from "../handoff.ts";
import { type CoreState, isRegistered, membersInOrder, registration } from "../state.ts";
import type { Member } from "./member.ts";

/** What the fleet has to say in the next change: who came, was replaced, leaves, was lost, changed or is forgotten. */
export function draftFleet(state: CoreState, draft: Draft): void {
  draftReplacements(state, draft);
  for (const member of membersInOrder(state)) {
    if (!state.replacements.has(member.executor)) draftMember(state, draft, member);
  }
  for (const executor of [...state.forgettable].sort(byId)) {
    draft.putExecutor({ executor, removed: true }, { kind: "executor", executors: [executor], note: "forgotten" });
  }
}

/** A new process takes the id over; what the old one owns is asked back and kept for the new one. */
function draftReplacements(state: CoreState, draft: Draft): void {
  for (const [executor, { hello, older }] of [...state.replacements].sort(([a], [b]) => byId(a, b))) {
    const record = executorRecord(draft.ledger, executor);
    if (record === undefined) continue;
    const replaced = [...record.replaced, record.instance, ...older].slice(-MAX_REPLACED);
    const { instance, address, zone, slot, labels, weight, capacity } = hello;
    const traits = { address, zone, slot, labels, capacity };
    draft.putExecutor(
      { executor, instance, state: "live", replaced, weight, ...withoutUndefined(traits) },
      { kind: "replacement", executors: [executor] },
    );
    draft.releaseAll(findHolder(draft.ledger, executor, record.instance), executor);
  }
}

function draftMember(state: CoreState, draft: Draft, member: Member): void {
  const { executor } = member;
  const record = executorRecord(draft.ledger, executor);
  if (member.lost) {
    if (!isRegistered(record)) return;
    draft.putExecutor({ ...record, state: "lost" }, { kind: "loss", executors: [executor] });
    draft.releaseAll(findHolder(draft.ledger, executor, member.instance), undefined);
  } else if (registration(state, member) === undefined) {
    if (member.admitted === undefined || member.session === undefined) return;
    draft.putExecutor(recordOf(member, "live"), { kind: member.admitted, executors: [executor] });
  } else if (record !== undefined) {
    draftRegistered(state, draft, member, record);
  }
}

function draftRegistered(state: CoreState, draft: Draft, member: Member, record: ExecutorRecord): void {
  const { executor, leaving } = member;
  const holder = findHolder(draft.ledger, executor, member.instance);
  const standing = leaving === undefined ? record.state : isEmptied(state, holder) ? "left" : "draining";
  const next = { ...recordOf(member, standing), replaced: record.replaced };
  if (!sameRecord(record, next)) {
    const kind = standing === record.state ? "executor" : leaving?.mode === "restart" ? "restart" : "leave";
    draft.putExecutor(next, { kind, executors: [executor] });
  }
  if (leaving?.mode === "restart") draft.releaseAll(holder, executor);
}

/** Nothing owned, and nothing awaited: it may go. */
function isEmptied(state: CoreState, holder: Holder | undefined): boolean {
  return (holder?.ownedCount ?? 0) === 0 && awaited(state, holder).length === 0;
}

function recordOf(member: Member, state: ExecutorState): ExecutorRecord {
  const { executor, instance, traits, replaced } = member;
  return { executor, instance, state, replaced, ...traits };
}

function sameRecord(a: ExecutorRecord, b: ExecutorRecord): boolean {
  const scalars = ["instance", "state", "address", "zone", "slot", "weight", "capacity"] as const;
  return (
    scalars.every((name) => a[name] === b[name]) &&
    sameList(a.replaced, b.replaced) &&
    (a.labels === b.labels || sameList(labelText(a), labelText(b)))
  );
}

function labelText({ labels = {} }: ExecutorRecord): readonly string[] {
  return Object.entries(labels)
    .map((pair) => JSON.stringify(pair))
    .sort();
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((item, at) => item === b[at]));
}

function withoutUndefined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
