import type { Grant, Handoff, Revoke, TableFacts } from "../model/grant.ts";
import type { Epoch, TableName } from "../model/ids.ts";
import type { Push } from "../protocol/paging.ts";
import { CutWatch } from "./cut-watch.ts";
import {
  byPlace,
  type Handle,
  type HandleBirth,
  type HandleFailure,
  isCoveredBy,
  isOverdue,
  lowestEpochOf,
  newHandle,
  type OpenHandle,
} from "./handle.ts";
import { type Reading, tightenLimit } from "./lease.ts";
import { type Place, Places } from "./places.ts";
import { type Keys, keysOf, listingOf } from "./push-index.ts";
import { type Owed, ReportBuilder } from "./reports.ts";

/** What the owner's code is to do, in this order. The lists are ascending by table, then partition. */
export interface Steps {
  /** To unload; each then has the state `stopping`. */
  readonly stop: readonly Handle[];
  /** Out of time: served no more, and not waited for. They were told to stop before. */
  readonly cut: readonly Handle[];
  /** To load; each then has the state `loading`. */
  readonly start: readonly Handle[];
  /** To be told to the scheduler. */
  readonly owed: Owed;
}

/** The members of a push that say what is held. */
export type HoldingsPush = Pick<Push, "base" | "grant" | "prepare" | "revoke" | "tables" | "keys">;

/** What one call changes, gathered on the way. */
interface Draft {
  readonly at: Reading;
  readonly stop: Handle[];
  readonly cut: Handle[];
  readonly start: Handle[];
  readonly report: ReportBuilder;
}

/**
 * What this process holds, per table and partition, by the rules of PROTOCOL §2.3: pure bookkeeping, without clock or I/O.
 *
 * Whoever calls carries out the steps, reports `owed` and tells by `loaded`, `fail` and `ended` how the owner's code got on.
 */
export class Holdings {
  readonly #places = new Places();
  /** What was told to stop, and is still waited for. */
  readonly #ending = new Set<OpenHandle>();
  readonly #watch = new CutWatch();
  #owned = 0;
  #ready = 0;
  readonly #patienceMs: number;
  #asked: readonly Revoke[] = [];

  /** `patienceMs`: how long a handle that was stopped without a limit is waited for before the partition starts anew. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Applies a push: revoke before prepare before grant; what a push with `base: null` does not list is stopped first. */
  apply(push: HoldingsPush, at: Reading): Steps {
    const draft = newDraft(at);
    const facts = new Map(push.tables.map((table) => [table.table, table]));
    if (push.base === null) this.#stopUnlisted(push, draft);
    for (const revoke of push.revoke) this.#revoke(revoke, draft);
    const keys = keysOf(push);
    for (const prepare of push.prepare) this.#prepare(prepare, facts, keys, draft);
    for (const grant of push.grant) this.#grant(grant, facts, keys, draft);
    this.#asked = push.revoke;
    this.#oweAllReleased(draft.report);
    return finish(draft);
  }

  /** Stops all there is, revoked or not: nothing is served from here on. What was asked back is forgotten, too. */
  stopEverything(at: Reading): Steps {
    const draft = newDraft(at);
    for (const place of this.#places) {
      if (place.current !== undefined) this.#stop(place, place.current, draft);
      for (const handle of place.ending) this.#withdraw(handle, at);
      this.#places.drop(place);
    }
    this.#asked = [];
    return finish(draft);
  }

  /** The owner's code has loaded them. */
  loaded(handles: readonly Handle[], at: Reading): Steps {
    const draft = newDraft(at);
    for (const handle of handles) {
      const open = this.#places.open(handle)?.open;
      if (open?.state !== "loading") continue;
      this.#count(open, -1);
      open.state = "loaded";
      open.resident = true;
      this.#count(open, 1);
      draft.report.addHandle(open);
    }
    return finish(draft);
  }

  /** The owner's code could not load it, or gives it up after it had loaded it. */
  fail(handle: Handle, failure: HandleFailure, at: Reading): Steps {
    const draft = newDraft(at);
    const open = this.#places.open(handle)?.open;
    if (open?.state === "loading" || open?.state === "loaded") {
      this.#count(open, -1);
      open.state = "failed";
      open.failure = failure;
      draft.report.addHandle(open);
    }
    return finish(draft);
  }

  /** The owner's code has unloaded them, or had nothing to unload. */
  ended(handles: readonly Handle[], at: Reading): Steps {
    const draft = newDraft(at);
    for (const handle of handles) {
      const { place, open } = this.#places.open(handle) ?? {};
      if (open?.state !== "stopping" || place === undefined) continue;
      open.state = "ended";
      open.serving = false;
      place.ending = place.ending.filter((one) => one !== open);
      this.#ending.delete(open);
      this.#wentOn(handle, place, draft);
    }
    return finish(draft);
  }

  /** Cuts what is past its limit, or past the patience for a handle that has none. */
  cutOverdue(at: Reading, marginMs: number): Steps {
    const draft = newDraft(at);
    if (!this.#watch.mayBeDue(at, marginMs)) return finish(draft);
    this.#watch.clear();
    for (const handle of this.#ending) {
      if (!isOverdue(handle, at, marginMs)) {
        this.#watch.add(handle);
        continue;
      }
      this.#ending.delete(handle);
      handle.cut = true;
      handle.serving = false;
      draft.cut.push(handle);
      const place = this.#places.find(handle.table, handle.partition);
      if (place !== undefined) this.#wentOn(handle, place, draft);
    }
    return finish(draft);
  }

  /** When to look for handles to be cut by monotonic time, or earlier; Infinity if there are none. */
  nextCutAt(): number {
    return this.#watch.at;
  }

  /** Epoch under which the partition may be served at this moment, the lease apart. From the grant on, loaded or not. */
  epochServed(table: TableName, partition: number, at: Reading, marginMs: number): Epoch | undefined {
    const place = this.#places.find(table, partition);
    if (place === undefined) return undefined;
    const { current, ending } = place;
    if (current?.granted !== undefined && current.state !== "failed") return current.granted;
    for (const handle of ending) if (handle.serving && !isOverdue(handle, at, marginMs)) return handle.granted;
    return undefined;
  }

  /** The handle that a grant or preparation of this partition is answered for. */
  current(table: TableName, partition: number): Handle | undefined {
    return this.#places.find(table, partition)?.current;
  }

  /** Everything there is to say, for after a welcome: ready, failed, and released for what the last push asked back. */
  owed(): Owed {
    const report = new ReportBuilder();
    for (const { current } of this.#places) if (current !== undefined) report.addHandle(current);
    this.#oweAllReleased(report);
    return report.build();
  }

  /** Partitions granted and not given up, and those of them that are loaded. */
  counts(): { readonly owned: number; readonly ready: number } {
    return { owned: this.#owned, ready: this.#ready };
  }

  /** Counts a current handle in after a change, or out before one. */
  #count({ granted, state }: Handle, by: 1 | -1): void {
    if (granted === undefined || state === "failed") return;
    this.#owned += by;
    if (state === "loaded") this.#ready += by;
  }

  #stopUnlisted(push: HoldingsPush, draft: Draft): void {
    const listed = listingOf(push);
    for (const place of this.#places) {
      for (const handle of [place.current, ...place.ending]) {
        if (handle === undefined) continue;
        if (listed(handle)) continue;
        if (handle === place.current) this.#stop(place, handle, draft);
        else this.#withdraw(handle, draft.at);
      }
      this.#places.drop(place);
    }
  }

  #revoke(revoke: Revoke, draft: Draft): void {
    const first = tightenLimit(undefined, draft.at, revoke.stopMs);
    for (const partition of revoke.partitions) {
      const place = this.#places.find(revoke.table, partition);
      if (place === undefined) continue;
      const { current } = place;
      if (current !== undefined && lowestEpochOf(current) <= revoke.epoch) {
        this.#revokeCurrent(place, current, revoke, draft);
      }
      for (const handle of place.ending) {
        if (!isCoveredBy(handle, revoke.epoch)) continue;
        handle.limit = handle.limit === undefined ? first : tightenLimit(handle.limit, draft.at, revoke.stopMs);
        if (!handle.cut) this.#watch.add(handle);
      }
      this.#places.drop(place);
    }
  }

  #revokeCurrent(place: Place, current: OpenHandle, revoke: Revoke, draft: Draft): void {
    if (isCoveredBy(current, revoke.epoch)) {
      const serving = current.granted !== undefined && current.state !== "failed";
      this.#stop(place, current, draft);
      if (current.state !== "stopping") return;
      current.serving = serving;
      current.patienceEndsAt = undefined;
    } else if (current.granted !== undefined && current.granted <= revoke.epoch) {
      // An overlap partition that this executor is to get back: the load stays, for the preparation.
      this.#count(current, -1);
      current.granted = undefined;
    } else {
      current.prepared = undefined;
    }
  }

  #prepare(prepare: Grant, facts: ReadonlyMap<TableName, TableFacts>, keys: Keys, draft: Draft): void {
    const { table, epoch } = prepare;
    const created = facts.get(table)?.created ?? 0;
    for (const partition of prepare.partitions) {
      const place = this.#places.at(table, partition);
      if (place.current !== undefined && place.current.created !== created) this.#stop(place, place.current, draft);
      if (place.current === undefined) {
        const key = keys.get(table)?.get(partition);
        const birth = { table, partition, key, created, handoff: "overlap", prepared: epoch } as const;
        this.#begin(place, birth, draft);
      } else {
        place.current.prepared = epoch;
        draft.report.addHandle(place.current);
      }
    }
  }

  #grant(grant: Grant, facts: ReadonlyMap<TableName, TableFacts>, keys: Keys, draft: Draft): void {
    const { table, epoch } = grant;
    const { created = 0, handoff = "exclusive" as Handoff } = facts.get(table) ?? {};
    for (const partition of grant.partitions) {
      const place = this.#places.at(table, partition);
      const { current } = place;
      const sameLife = current?.created === created;
      if (current !== undefined && sameLife && (handoff === "overlap" || current.granted === epoch)) {
        this.#count(current, -1);
        current.granted = epoch;
        this.#count(current, 1);
        if (current.prepared !== undefined && current.prepared <= epoch) current.prepared = undefined;
        draft.report.addHandle(current);
        continue;
      }
      if (current !== undefined) this.#stop(place, current, draft);
      const key = keys.get(table)?.get(partition);
      this.#begin(place, { table, partition, key, created, handoff, granted: epoch }, draft);
    }
  }

  #begin(place: Place, birth: HandleBirth, draft: Draft): void {
    place.current = newHandle(birth);
    this.#count(place.current, 1);
    this.#startIfFree(place, draft);
  }

  #startIfFree(place: Place, draft: Draft): void {
    const { current, ending } = place;
    if (current?.state !== "waiting" || ending.some((handle) => !handle.cut)) return;
    current.state = "loading";
    draft.start.push(current);
  }

  /** Takes the current handle out of service at once. What never started, or failed to load, has nothing to unload. */
  #stop(place: Place, handle: OpenHandle, draft: Draft): void {
    place.current = undefined;
    this.#count(handle, -1);
    if (handle.state === "waiting" || (handle.state === "failed" && !handle.resident)) {
      handle.state = "ended";
      return;
    }
    handle.state = "stopping";
    handle.patienceEndsAt = draft.at.now + this.#patienceMs;
    place.ending = [...place.ending, handle];
    this.#ending.add(handle);
    this.#watch.add(handle);
    draft.stop.push(handle);
  }

  /** Ends the serving of a handle that was revoked before; it goes on unloading. */
  #withdraw(handle: OpenHandle, at: Reading): void {
    handle.serving = false;
    handle.patienceEndsAt ??= at.now + this.#patienceMs;
    if (!handle.cut) this.#watch.add(handle);
  }

  /** After a handle ended or was cut: the next may start, and releases may be owed. */
  #wentOn(handle: Handle, place: Place, draft: Draft): void {
    this.#startIfFree(place, draft);
    for (const revoke of this.#asked) {
      if (revoke.table === handle.table && revoke.partitions.has(handle.partition)) {
        this.#oweReleased(revoke, handle.partition, draft.report);
      }
    }
    this.#places.drop(place);
  }

  #oweAllReleased(report: ReportBuilder): void {
    for (const revoke of this.#asked) {
      for (const partition of revoke.partitions) this.#oweReleased(revoke, partition, report);
    }
  }

  /**
   * Owes `released` if nothing of the partition is left under that or any earlier epoch. A handle that was cut is not
   * served, but `released` for its own epoch waits until the owner's code has ended: the scheduler counts its limit itself.
   */
  #oweReleased({ table, epoch }: Revoke, partition: number, report: ReportBuilder): void {
    const held = this.#places.find(table, partition)?.ending.some((handle) => {
      const lowest = lowestEpochOf(handle);
      return lowest <= epoch && !(handle.cut && lowest < epoch);
    });
    if (held !== true) report.addReleased(table, epoch, partition);
  }
}

function newDraft(at: Reading): Draft {
  return { at, stop: [], cut: [], start: [], report: new ReportBuilder() };
}

function finish({ stop, cut, start, report }: Draft): Steps {
  return { stop: stop.sort(byPlace), cut: cut.sort(byPlace), start: start.sort(byPlace), owed: report.build() };
}
