import { readCell } from "../../src/ledger/chunks.ts";
import { executorRecords, holdersInOrder, STATE_OWNED, tableStates } from "../../src/ledger/state.ts";
import { stretched } from "../../src/model/settings.ts";
import { FIXED, type PlanInput, UNOWNED } from "../../src/plan/types.ts";
import { type Bounds, referenceBounds } from "../plan/reference.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** Looks at a world after everything works again: it must come to rest, in time, with everything in its place. */

/** How often it is looked at while it is waited for. */
const LOOK_EVERY_MS = 250;

/** Longest wait of the core for an executor that left acks out (src/core/delivery.ts). */
const OVERDUE_WAIT_MS = 60_000;

/** Longest addition to a hold after a stall (src/core/step.ts). */
const STALL_CREDIT_MS = 10_000;

/** Longest time that a process waits for handlers which do not end. */
const LONGEST_PATIENCE_MS = 30_000;

/** Everything works from here on; whoever is alive stays. */
export function heal(world: World): void {
  world.disk.setMode("quick");
  for (const process of world.processes) {
    process.path.blockedUntil = { up: 0, down: 0 };
    process.path.refusesUntil = 0;
    process.habits = { loadMs: 50, unloadMs: 50, failing: 0, failingForGood: 0, hanging: 0 };
  }
  if (world.scheduler?.isRetiring === true) world.killScheduler(0, () => 0);
  world.endDisturbances();
  if (world.scheduler?.state.ledger.tables.size === 0) world.put("t0", 5);
}

/** Longest time in which it must have come to rest: every wait there is, once or twice. */
function restWithinMs({ settings }: World): number {
  const { lease, loss, drain, rejection, formation, join, delivery } = settings;
  const leaseMs = stretched(lease.durationMs, lease);
  const stopMs = stretched(10_000, lease);
  const waits =
    LONGEST_PATIENCE_MS +
    loss.waitMs +
    loss.returnMs +
    drain.deadlineMs +
    rejection.maxBackoffMs +
    delivery.ackTimeoutMs;
  return 2 * (leaseMs + waits + stopMs + STALL_CREDIT_MS) + formation.maxMs + join.maxMs + OVERDUE_WAIT_MS;
}

/** Waits until it is at rest, and stays so until whatever was under way has come up. Gives how long it took; throws if too long. */
export async function awaitRest(world: World): Promise<number> {
  const { renewMs } = world.settings.lease;
  // Who is gone is found out by its silence at the latest.
  const steadyMs = 2.5 * renewMs + 4 * world.climate.latencyMs;
  const since = world.timeline.now;
  const until = since + restWithinMs(world);
  let restingSince = Number.POSITIVE_INFINITY;
  while (true) {
    const unrest = unrestOf(world);
    const { now } = world.timeline;
    restingSince = unrest.length === 0 ? Math.min(restingSince, now) : Number.POSITIVE_INFINITY;
    if (now - restingSince >= steadyMs) return restingSince - since;
    if (now > until) throw new Error(`not at rest after all is well: ${unrest.join("; ")}`);
    await world.advance(LOOK_EVERY_MS);
  }
}

/** What keeps the world from being at rest, in words. */
function unrestOf(world: World): string[] {
  const { scheduler, alive } = world;
  if (scheduler === undefined) return ["no scheduler"];
  if (!scheduler.isAtRest) return ["the scheduler is busy"];
  if (scheduler.state.holdUntil > scheduler.machine.now()) return ["no expiry counts after a stall"];
  const { waitingFor } = scheduler.status;
  // With nobody there, everything stays unowned; but nothing may be waited for that cannot come.
  if (alive.length === 0)
    return waitingFor.filter((reason) => /suspect|given back|committed|acknowledged|reserved/.test(reason));
  const reasons = waitingFor.filter((reason) => !(reason.includes("unowned: backoff") && isRefusedForGood(world)));
  const now = scheduler.machine.now();
  for (const { until, executor } of scheduler.state.backoffs.values())
    if (now <= until && until !== Number.POSITIVE_INFINITY) reasons.push(`${executor} backs off`);
  for (const process of alive) {
    const { state, ready, owned } = process.executor.status();
    if (process.isLeaving) reasons.push(`${process.name} has not left`);
    if (state !== "assigned") reasons.push(`${process.name} is ${state}`);
    if (ready < owned) reasons.push(`${process.name} is not ready`);
  }
  return reasons;
}

/** True if, of each partition that is backed off, someone who is there has said that it will never take it: the rest may be full. */
function isRefusedForGood({ scheduler, alive }: World): boolean {
  if (scheduler === undefined) return false;
  const { ledger, backoffs } = scheduler.state;
  const refused = new Set(
    [...backoffs.values()]
      .filter(
        ({ until, instance }) =>
          until === Number.POSITIVE_INFINITY && alive.some((p) => p.options.instance === instance),
      )
      .map(({ table, partition }) => `${table}/${partition}`),
  );
  return tableStates(ledger).every(({ record: { table }, unowned }) =>
    unowned
      .filter(({ reason }) => reason === "backoff")
      .every(({ partitions }) => [...partitions].every((partition) => refused.has(`${table}/${partition}`))),
  );
}

/** Everything owned as the ledger says, by a process that says so; shares as even as they can be. */
export function checkOwnership(world: World): void {
  const { scheduler } = world;
  if (scheduler === undefined) return;
  const { ledger } = scheduler.state;
  const served = world.ask();
  let owned = 0;
  for (const { record, chunks } of tableStates(ledger)) {
    for (let partition = 0; partition < record.count; partition++) {
      const cell = readCell(chunks, partition);
      if (cell.state !== STATE_OWNED) continue;
      owned++;
      const holder = ledger.holders[cell.holder];
      const process = served.get(`${record.table}/${partition}`);
      const { executor, instance } = process?.options ?? {};
      if (executor !== holder?.executor || instance !== holder?.instance)
        throw new Error(`${record.table}/${partition} is ${holder?.executor}'s and served by ${process?.name}`);
    }
  }
  if (served.size !== owned) throw new Error(`${served.size} partitions are served, ${owned} are owned`);
  checkShares(world);
}

function checkShares(world: World): void {
  const { scheduler } = world;
  const live = world.alive.sort((a, b) => (a.options.executor < b.options.executor ? -1 : 1));
  if (scheduler === undefined || live.length === 0) return;
  // What an executor may not have, for now or for good, is not spread evenly.
  if (scheduler.state.backoffs.size > 0) return;
  const input = planInput(world, live);
  const { totals, cells } = referenceBounds(input);
  const count = (owner: Int32Array, at: number) => owner.reduce((sum, value) => sum + (value === at ? 1 : 0), 0);
  live.forEach(({ name }, at) => {
    const ofTables = input.tables.map(({ owner }) => count(owner, at));
    within(
      totals[at],
      ofTables.reduce((sum, size) => sum + size, 0),
      `${name} owns`,
    );
    ofTables.forEach((size, row) => {
      within(cells[row]?.[at], size, `${name} owns in ${input.tables[row]?.table}`);
    });
  });
}

/** The world as a question to the planner, owners as the ledger has them. */
function planInput(world: World, live: readonly Process[]): PlanInput {
  const state = world.scheduler?.state;
  if (state === undefined) return { executors: [], tables: [] };
  const index = new Map(live.map((process, at) => [process.options.executor, at]));
  return {
    executors: live.map(({ options: { executor } }) => {
      const member = state.members.get(executor as never);
      const { weight = 1, capacity } = member?.traits ?? {};
      return { executor: executor as never, weight, ...(capacity === undefined ? {} : { capacity }) };
    }),
    tables: tableStates(state.ledger).map(({ record, chunks }) => {
      const owner = new Int32Array(record.count).fill(UNOWNED);
      for (let partition = 0; partition < record.count; partition++) {
        const cell = readCell(chunks, partition);
        if (record.retired?.has(partition) === true) owner[partition] = FIXED;
        else if (cell.state === STATE_OWNED) {
          owner[partition] = index.get(state.ledger.holders[cell.holder]?.executor ?? "") ?? UNOWNED;
        }
      }
      return { table: record.table, owner };
    }),
  };
}

function within(bounds: Bounds | undefined, size: number, what: string): void {
  if (bounds !== undefined && size >= bounds.low && size <= bounds.high) return;
  throw new Error(`${what} ${size}, not ${bounds?.low} to ${bounds?.high}`);
}

/** At rest nothing works in circles: turns and timers follow the renews, and no change is made. */
export async function checkRest(world: World, forMs = 10_000): Promise<void> {
  const { scheduler, disk } = world;
  if (scheduler === undefined) return;
  const before = { turns: scheduler.turns, changes: disk.changes.length };
  const fired = world.alive.map((process) => process.machine.fired);
  await world.advance(forMs);
  const seconds = forMs / 1000;
  const renews = (1000 / world.settings.lease.renewMs) * seconds;
  const atMost = (3 * world.alive.length + 8) * renews + 20;
  const turns = scheduler.turns - before.turns;
  if (turns > atMost) throw new Error(`${turns} turns in ${seconds} s at rest, at most ${atMost}`);
  world.alive.forEach((process, at) => {
    const count = process.machine.fired - (fired[at] ?? 0);
    if (count > 6 * renews + 20) throw new Error(`${count} timers of ${process.name} fired in ${seconds} s at rest`);
  });
  const made = disk.changes.slice(before.changes);
  const needless = made.filter(({ cause }) => cause.some(({ note }) => note !== "forgotten"));
  if (needless.length > 0) throw new Error(`changes at rest: ${JSON.stringify(needless)}`);
}

/** What the core remembers is bounded by what there is, not by what there was. */
export async function checkMemory(world: World): Promise<void> {
  // Some sessions are still believed in; what is remembered of an executor is so for a while after its last one.
  for (const wire of world.scheduler?.wires.values() ?? []) wire.notice();
  await world.advance(2 * world.settings.executors.forgetMs + 1_000);
  const { scheduler } = world;
  if (scheduler === undefined) return;
  const { state } = scheduler;
  const live = world.alive.length;
  const sizes = {
    members: state.members.size,
    sessions: state.sessions.size,
    instances: state.instances.size,
    executors: executorRecords(state.ledger).length,
    holders: holdersInOrder(state.ledger).length,
    newcomers: state.newcomers.size,
    replacements: state.replacements.size,
    reservations: state.reservations.size,
    former: state.former.size,
    wires: scheduler.wires.size,
  };
  for (const [what, size] of Object.entries(sizes)) {
    // Beside the process that is there, the one that the ledger names may be known.
    if (size > (what === "instances" ? 2 * live : live))
      throw new Error(`${size} ${what} are remembered with ${live} processes: ${JSON.stringify(sizes)}`);
  }
  for (const { executor } of state.backoffs.values())
    if (!state.members.has(executor)) throw new Error(`a failure of ${executor}, which is gone, is remembered`);
  for (const member of state.members.values()) {
    const stops = [...state.instances.values()].flatMap(({ stops }) => stops).length;
    if (stops > 0) throw new Error(`${stops} stop limits are remembered at rest`);
    if (member.delivery.unacked !== undefined)
      throw new Error(`a push to ${member.executor} is unacknowledged at rest`);
  }
  if (state.ended.size > 0 || state.stopFloors.size > 0) throw new Error("ends of grants are remembered at rest");
}
