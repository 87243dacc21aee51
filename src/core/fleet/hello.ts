import { executorRecord } from "../../ledger/state.ts";
import { type ExecutorRecord, type ExecutorTraits, MAX_REPLACED } from "../../model/change.ts";
import type { InstanceId } from "../../model/ids.ts";
import { acknowledge } from "../delivery.ts";
import type { HelloReceived } from "../events.ts";
import { forgetInstance } from "../handoff.ts";
import { noteReturn } from "../recovery.ts";
import { instanceState, isRegistered, ROLLED_BACK, recordUnderWay, registration } from "../state.ts";
import { closeSession, log, type Turn } from "../turn.ts";
import { isAssigned, waitingFor } from "./assigned.ts";
import { handLease } from "./lease.ts";
import { type Member, newDelivery } from "./member.ts";
import { doubtReadiness, noReadiness } from "./readiness.ts";
import { detachSession, hear } from "./suspicion.ts";
import { noteHello, openWindow } from "./windows.ts";

/** Takes an executor in: refuses who may not come, lets a new process wait for its commit, welcomes the rest at once. */
export function handleHello(turn: Turn, hello: HelloReceived): void {
  const { state } = turn;
  const member = state.members.get(hello.executor);
  const record = executorRecord(state.ledger, hello.executor);
  if (provesRollback(turn, hello)) {
    refuse(turn, hello, 4503, "the store was rolled back; an operator has to restore it", state.settings.lease.renewMs);
  } else if (state.stopping !== undefined) {
    refuse(turn, hello, 4503, "the scheduler is shutting down");
  } else if (isReplaced(turn, hello, member, record)) {
    refuse(turn, hello, 4409, "this instance was replaced by a newer one of the same executor");
  } else if (state.replacements.has(hello.executor) && record?.instance === hello.instance) {
    // It may be told that it is replaced only once that is durable.
    refuse(turn, hello, 4503, "a newer instance is being registered", state.settings.lease.renewMs);
  } else if (isOlderAttempt(turn, hello, member)) {
    refuse(turn, hello, 4408, "attempt is not higher than an earlier one of this instance");
  } else if (member?.delivery.refused === true && member.instance === hello.instance) {
    const retryAfterMs = state.settings.lease.renewMs;
    refuse(turn, hello, 4503, "a revoke stayed unacknowledged; refused until its grants have ended", retryAfterMs);
  } else if (
    [record, recordUnderWay(state, hello.executor)].some(
      (known) => isRegistered(known) && known.instance !== hello.instance,
    )
  ) {
    awaitReplacement(turn, hello);
  } else {
    welcome(turn, hello, enrol(turn, hello, member, record));
  }
}

/**
 * A valid stamp from beyond the ledger proves that changes were lost which somebody was told of. From then on nothing is
 * decided and nobody is given anything back, so that what was granted by those changes runs out with its leases.
 */
function provesRollback(turn: Turn, { executor, proof }: HelloReceived): boolean {
  const { alarms, ledger, term } = turn.state;
  if (proof !== undefined && (proof.revision > ledger.revision || proof.term > term) && !alarms.has(ROLLED_BACK)) {
    const told = `${executor} was told of revision ${proof.revision} in term ${proof.term}, the store ends at ${ledger.revision}`;
    alarms.set(ROLLED_BACK, `the store was rolled back: ${told}; nothing is decided until \`evenkeel store restore\``);
    log(turn, "error", "store.rolled-back", { executor, ...proof, ledger: ledger.revision });
  }
  return alarms.has(ROLLED_BACK);
}

/** Puts the welcome of a new instance through, once the ledger names it. */
export function welcomeReplacement(turn: Turn, hello: HelloReceived): void {
  const { state } = turn;
  const before = state.members.get(hello.executor);
  if (before?.session !== undefined) {
    closeSession(turn, before.session, 4409, "replaced by a newer instance of this executor");
  }
  const record = executorRecord(state.ledger, hello.executor);
  const member = enrol(turn, hello, undefined, record);
  // A new process does not inherit a leave, but overdue acks of the id do not end by a restart of its process.
  if (before !== undefined) member.delivery.overdue = before.delivery.overdue;
  log(turn, "info", "executor.replaced", {
    executor: hello.executor,
    instance: hello.instance,
    previous: before?.instance,
  });
  if (state.sessions.has(hello.session)) welcome(turn, hello, member);
  else detachSession(turn, member);
}

function isReplaced(
  turn: Turn,
  hello: HelloReceived,
  member: Member | undefined,
  record: ExecutorRecord | undefined,
): boolean {
  const pending = turn.state.replacements.get(hello.executor);
  return [record?.replaced, member?.replaced, pending?.older].some((list) => list?.includes(hello.instance) === true);
}

function isOlderAttempt(turn: Turn, hello: HelloReceived, member: Member | undefined): boolean {
  const pending = turn.state.replacements.get(hello.executor)?.hello;
  const known = [member, pending].find((candidate) => candidate?.instance === hello.instance);
  return known !== undefined && hello.attempt <= known.attempt;
}

function refuse(turn: Turn, hello: HelloReceived, code: number, reason: string, retryAfterMs?: number): void {
  closeSession(turn, hello.session, code, reason, retryAfterMs === undefined ? {} : { retryAfterMs });
  log(turn, code === 4409 ? "warn" : "info", "executor.refused", {
    executor: hello.executor,
    instance: hello.instance,
    code,
    reason,
  });
}

/** The newest instance that asks wins; the others count as replaced from here on. */
function awaitReplacement(turn: Turn, hello: HelloReceived): void {
  const { state } = turn;
  const pending = state.replacements.get(hello.executor);
  const older = [...(pending?.older ?? [])];
  if (pending !== undefined) {
    const same = pending.hello.instance === hello.instance;
    const reason = same ? "taken over by a later attempt" : "replaced by a newer instance of this executor";
    closeSession(turn, pending.hello.session, same ? 4408 : 4409, reason);
    if (!same) older.push(pending.hello.instance);
  }
  state.sessions.set(hello.session, hello.executor);
  state.replacements.set(hello.executor, { hello, older });
  state.stale = true;
}

/** Makes or renews the member for this hello. */
function enrol(
  turn: Turn,
  hello: HelloReceived,
  member: Member | undefined,
  record: ExecutorRecord | undefined,
): Member {
  const { state, now } = turn;
  if (member !== undefined && member.instance === hello.instance) {
    if (member.session !== undefined)
      closeSession(turn, member.session, 4408, "taken over by a later attempt of this instance");
    member.session = hello.session;
    member.attempt = hello.attempt;
    const traits = traitsOf(hello);
    if (JSON.stringify(traits) !== JSON.stringify(member.traits)) state.stale = true;
    member.traits = traits;
    // A leave that came to its end is over; one under way goes on until it does.
    if (registration(state, member) === undefined) member.leaving = undefined;
    state.sessions.set(hello.session, hello.executor);
    return member;
  }
  if (member?.session !== undefined)
    closeSession(turn, member.session, 4409, "replaced by a newer instance of this executor");
  const former = [...(record?.replaced ?? []), ...(member?.replaced ?? []), ...formerInstances(hello, member, record)];
  const fresh: Member = {
    executor: hello.executor,
    instance: hello.instance,
    attempt: hello.attempt,
    traits: traitsOf(hello),
    session: hello.session,
    heardAt: now,
    suspectAt: undefined,
    admitted: undefined,
    lost: false,
    leaving: undefined,
    replaced: [...new Set(former)].filter((instance) => instance !== hello.instance).slice(-MAX_REPLACED),
    delivery: newDelivery(),
    ready: noReadiness(),
  };
  state.members.set(hello.executor, fresh);
  state.sessions.set(hello.session, hello.executor);
  if (member !== undefined) forgetInstance(state, instanceState(state, hello.executor, member.instance));
  return fresh;
}

function formerInstances(
  hello: HelloReceived,
  member: Member | undefined,
  record: ExecutorRecord | undefined,
): InstanceId[] {
  return [record?.instance, member?.instance].filter(
    (instance) => instance !== undefined && instance !== hello.instance,
  ) as InstanceId[];
}

function welcome(turn: Turn, hello: HelloReceived, member: Member): void {
  const { state } = turn;
  const resumed = tryResume(turn, hello, member);
  hear(turn, member);
  const lease = handLease(turn, member);
  if (registration(state, member) !== undefined) noteReturn(turn, member.executor);
  noteHello(turn, member);
  if (state.append === undefined) openWindow(turn);
  state.undelivered.add(member.executor);
  const assigned = isAssigned(state, member);
  const waiting = assigned ? undefined : waitingFor(state, member, turn.now);
  turn.effects.push({
    type: "session.welcome",
    session: hello.session,
    cluster: state.settings.cluster,
    incarnation: state.ledger.incarnation,
    term: state.term,
    revision: state.ledger.revision,
    resumed,
    status: assigned ? "assigned" : "pending",
    ...(waiting === undefined ? {} : { waitingFor: waiting }),
    lease: { ...lease, clientMarginMs: state.settings.lease.clientMarginMs },
  });
  const { executor, instance } = member;
  log(turn, "info", "executor.joined", {
    executor,
    instance,
    session: hello.session,
    attempt: hello.attempt,
    resumed,
    registered: registration(state, member) !== undefined,
  });
}

/**
 * A resume counts only at a revision that this session's executor was told and whose lease never counted as ended. Who is
 * not counted yet has nothing to resume, and gets a push when it is, though it be empty.
 */
function tryResume(turn: Turn, hello: HelloReceived, member: Member): boolean {
  const { state, now } = turn;
  const { delivery } = member;
  const { leaseEndsAt } = instanceState(state, member.executor, member.instance);
  const { resume } = hello;
  const usable =
    resume !== undefined &&
    resume.incarnation === state.ledger.incarnation &&
    now < leaseEndsAt &&
    !member.lost &&
    isAssigned(state, member);
  const view = usable
    ? [delivery.unacked, delivery.acked].find((known) => known?.revision === resume.revision)
    : undefined;
  if (view !== undefined) {
    if (view === delivery.unacked) acknowledge(turn, member);
    delivery.unacked = undefined;
    return true;
  }
  delivery.acked = undefined;
  delivery.unacked = undefined;
  if (resume === undefined) member.ready = noReadiness();
  else doubtReadiness(member);
  return false;
}

function traitsOf(hello: HelloReceived): ExecutorTraits {
  const { address, zone, slot, labels, weight, capacity } = hello;
  return {
    weight,
    ...(address === undefined ? {} : { address }),
    ...(zone === undefined ? {} : { zone }),
    ...(slot === undefined ? {} : { slot }),
    ...(labels === undefined ? {} : { labels }),
    ...(capacity === undefined ? {} : { capacity }),
  };
}
