import { type Deadline, hasPassed, type Moment } from "./lease.ts";
import { readSet, writeSet } from "./sets.ts";

/** PROTOCOL §6 and §7 for exclusive tables: what a process holds, and what it owes the scheduler about that. */

export interface Entry {
  readonly table: string;
  readonly partitions: string;
  readonly epoch: number;
}

export interface RevokeEntry extends Entry {
  readonly stopMs: number;
}

/** A push whose pages have been put together. */
export interface WholePush {
  readonly revision: number;
  readonly base: number | null;
  readonly grant: readonly Entry[];
  readonly revoke: readonly RevokeEntry[];
}

/** One partition under one epoch, from its grant to the end of its unload. */
export interface Holding {
  readonly table: string;
  readonly partition: number;
  readonly epoch: number;
}

export interface Work {
  /** Rejects if the partition cannot be loaded. */
  load(holding: Holding): Promise<void>;
  unload(holding: Holding): Promise<void>;
  /** Something is to be reported, or something else may be served than before. */
  changed(): void;
}

export interface Owed {
  readonly ready: readonly Entry[];
  readonly failed: readonly (Entry & { readonly reason: string })[];
  readonly released: readonly Entry[];
}

interface Handle extends Holding {
  phase: "waiting" | "loading" | "ready" | "failed" | "ending" | "gone";
  /** May be served, as far as lease and limit allow. */
  serving: boolean;
  /** Its time to end is up, and nothing waits for it any more. */
  cut: boolean;
  limit: Deadline | undefined;
  reason: string;
  /** Comes to whether there is something to unload. */
  loading: Promise<boolean>;
}

interface Ask {
  readonly table: string;
  readonly epoch: number;
  readonly partitions: ReadonlySet<number>;
}

/** How long a partition that was stopped without a limit is waited for before it is loaded anew. */
const PATIENCE_MS = 30_000;

export class Holdings {
  /** By table and number, which a slash cannot confuse: ids have none. Oldest first. */
  readonly #places = new Map<string, Handle[]>();
  readonly #work: Work;
  #asked: readonly Ask[] = [];
  /** What became known since the last report. */
  #news: { ready: Set<Handle>; failed: Set<Handle>; released: Set<string> } = noNews();

  constructor(work: Work) {
    this.#work = work;
  }

  /** Epoch under which a partition may be served, the lease apart. */
  epochServed(table: string, partition: number, now: Moment, marginMs: number): number | undefined {
    const served = this.#at(table, partition).find(
      ({ serving, limit }) => serving && (limit === undefined || !hasPassed(limit, now, marginMs)),
    );
    return served?.epoch;
  }

  apply(push: WholePush, now: Moment): void {
    if (push.base === null) this.#stopUnlisted(push, now);
    for (const entry of push.revoke)
      for (const partition of readSet(entry.partitions)) this.#revoke(entry, partition, now);
    for (const { table, partitions, epoch } of push.grant) {
      for (const partition of readSet(partitions)) this.#grant({ table, partition, epoch }, now);
    }
    this.#asked = push.revoke.map(({ table, epoch, partitions }) => ({
      table,
      epoch,
      partitions: new Set(readSet(partitions)),
    }));
    this.#oweReleased();
  }

  /** Serves nothing from here on; what is loaded is unloaded. */
  stopEverything(now: Moment): void {
    for (const handle of this.#all()) this.#stop(handle, now);
    this.#asked = [];
    this.#news = noNews();
    this.#work.changed();
  }

  /** Cuts what is past its limit. */
  cutOverdue(now: Moment, marginMs: number): void {
    for (const handle of this.#all()) {
      if (handle.cut || handle.limit === undefined || !hasPassed(handle.limit, now, marginMs)) continue;
      handle.cut = true;
      handle.serving = false;
      this.#startNext(handle);
      this.#work.changed();
    }
  }

  nextCutAt(): number {
    return this.#all().reduce(
      (next, { cut, limit }) => (cut || limit === undefined ? next : Math.min(next, limit.at)),
      Number.POSITIVE_INFINITY,
    );
  }

  /** After a welcome all of it is said again. */
  oweEverything(): void {
    this.#news = noNews();
    for (const handle of this.#all()) this.#noteOutcome(handle);
    this.#oweReleased();
  }

  takeOwed(): Owed {
    const { ready, failed, released } = this.#news;
    this.#news = noNews();
    const reasons = new Map<string, Handle[]>();
    for (const handle of failed) reasons.set(handle.reason, [...(reasons.get(handle.reason) ?? []), handle]);
    const releases = [...released].map((text) => {
      const [table = "", partition, epoch] = text.split("/");
      return { table, partition: Number(partition), epoch: Number(epoch) };
    });
    return {
      ready: entriesOf([...ready].filter(({ phase }) => phase === "ready")),
      failed: [...reasons].flatMap(([reason, handles]) => entriesOf(handles).map((entry) => ({ ...entry, reason }))),
      released: entriesOf(releases),
    };
  }

  #stopUnlisted({ grant, revoke }: WholePush, now: Moment): void {
    const listed = new Set(
      [...grant, ...revoke].flatMap(({ table, partitions, epoch }) =>
        readSet(partitions).map((partition) => `${table}/${partition}/${epoch}`),
      ),
    );
    for (const handle of this.#all()) {
      if (!listed.has(`${handle.table}/${handle.partition}/${handle.epoch}`)) this.#stop(handle, now);
    }
  }

  /** Covers every earlier epoch of the partition; a repetition never extends the limit. */
  #revoke({ table, epoch, stopMs }: RevokeEntry, partition: number, now: Moment): void {
    for (const handle of this.#at(table, partition)) {
      if (handle.epoch > epoch) continue;
      const { limit } = handle;
      const at = now.mono + stopMs;
      handle.limit = { at: Math.min(at, limit?.at ?? at), since: limit?.since ?? now };
      this.#windDown(handle);
    }
  }

  #grant({ table, partition, epoch }: Holding, now: Moment): void {
    const current = this.#at(table, partition).find(({ phase }) => phase !== "ending");
    if (current?.epoch === epoch) return this.#noteOutcome(current);
    if (current !== undefined) this.#stop(current, now);
    const fresh: Handle = {
      table,
      partition,
      epoch,
      phase: "waiting",
      serving: false,
      cut: false,
      limit: undefined,
      reason: "",
      loading: Promise.resolve(false),
    };
    const key = `${table}/${partition}`;
    this.#places.set(key, [...this.#at(table, partition), fresh]);
    this.#startNext(fresh);
  }

  /** Loads what waits for a partition once all before it has ended or was cut. */
  #startNext({ table, partition }: Holding): void {
    const waiting = this.#at(table, partition).find(({ phase }) => phase === "waiting");
    if (waiting === undefined) return;
    if (this.#at(table, partition).some((handle) => handle !== waiting && !handle.cut)) return;
    waiting.phase = "loading";
    waiting.serving = true;
    waiting.loading = this.#load(waiting);
    this.#work.changed();
  }

  async #load(handle: Handle): Promise<boolean> {
    try {
      // In a later turn, when the whole push has been applied.
      await Promise.resolve();
      await this.#work.load(handle);
      if (handle.phase === "loading") handle.phase = "ready";
    } catch (error) {
      if (handle.phase === "loading") this.#fail(handle, String(error).slice(0, 200));
      return false;
    }
    this.#noteOutcome(handle);
    this.#work.changed();
    return true;
  }

  #fail(handle: Handle, reason: string): void {
    handle.phase = "failed";
    handle.serving = false;
    handle.reason = reason;
    this.#noteOutcome(handle);
    this.#work.changed();
  }

  /** Ends it at its own pace; it may be served until that is done. */
  #windDown(handle: Handle): void {
    if (handle.phase === "waiting" || handle.phase === "failed") return this.#gone(handle);
    if (handle.phase === "ending") return;
    handle.phase = "ending";
    void this.#unload(handle);
  }

  /** Serves it no longer, at once. */
  #stop(handle: Handle, now: Moment): void {
    handle.serving = false;
    handle.limit ??= { at: now.mono + PATIENCE_MS, since: now };
    this.#windDown(handle);
  }

  async #unload(handle: Handle): Promise<void> {
    try {
      if (await handle.loading) await this.#work.unload(handle);
    } catch {
      // Not known to have ended: it is cut when its time is up, and never reported as released.
      return;
    }
    this.#gone(handle);
    this.#work.changed();
  }

  #gone(handle: Handle): void {
    const { table, partition } = handle;
    handle.phase = "gone";
    handle.serving = false;
    const left = this.#at(table, partition).filter((other) => other !== handle);
    if (left.length === 0) this.#places.delete(`${table}/${partition}`);
    else this.#places.set(`${table}/${partition}`, left);
    this.#startNext(handle);
    this.#oweReleased(handle);
  }

  #noteOutcome(handle: Handle): void {
    if (handle.phase === "ready") this.#news.ready.add(handle);
    if (handle.phase === "failed") this.#news.failed.add(handle);
  }

  /** Owes `released` for what is asked back and of which nothing is left under that epoch or an earlier one. */
  #oweReleased(only?: Holding): void {
    for (const { table, epoch, partitions } of this.#asked) {
      const candidates = only === undefined ? partitions : only.table === table ? [only.partition] : [];
      for (const partition of candidates) {
        if (!partitions.has(partition)) continue;
        if (this.#at(table, partition).some((handle) => handle.epoch <= epoch)) continue;
        this.#news.released.add(`${table}/${partition}/${epoch}`);
      }
    }
  }

  #at(table: string, partition: number): readonly Handle[] {
    return this.#places.get(`${table}/${partition}`) ?? [];
  }

  #all(): readonly Handle[] {
    return [...this.#places.values()].flat();
  }
}

/** Groups single partitions to grant lists. */
function entriesOf(holdings: readonly Holding[]): readonly Entry[] {
  const groups = new Map<string, { readonly table: string; readonly epoch: number; readonly numbers: number[] }>();
  for (const { table, partition, epoch } of holdings) {
    const key = `${table}/${epoch}`;
    const group = groups.get(key) ?? { table, epoch, numbers: [] };
    group.numbers.push(partition);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ table, epoch, numbers }) => ({ table, partitions: writeSet(numbers), epoch }));
}

function noNews() {
  return { ready: new Set<Handle>(), failed: new Set<Handle>(), released: new Set<string>() };
}
