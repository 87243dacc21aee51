import { epochOf, type Handle } from "../../src/client/handle.ts";
import { Holdings, type HoldingsPush, type Steps } from "../../src/client/holdings.ts";
import type { Reading } from "../../src/client/lease.ts";
import type { Owed } from "../../src/client/reports.ts";
import type { Handoff } from "../../src/model/grant.ts";
import { tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";

export type Entry = readonly [partitions: string, epoch: number];

export interface Brief {
  readonly base?: number | null;
  readonly grant?: readonly Entry[];
  readonly prepare?: readonly Entry[];
  readonly revoke?: readonly (readonly [partitions: string, epoch: number, stopMs?: number])[];
  readonly handoff?: Handoff;
  readonly created?: number;
}

export const T = tableName("t");
export const MARGIN = 1_000;
export const STOP = 5_000;
export const PATIENCE = 30_000;

/** A push about the table `t`; base null unless given. */
export function push({ base = null, grant, prepare, revoke, handoff = "exclusive", created = 1 }: Brief): HoldingsPush {
  const entry = ([partitions, epoch]: Entry) => ({ table: T, partitions: PartitionSet.parse(partitions), epoch });
  return {
    base,
    grant: (grant ?? []).map(entry),
    prepare: (prepare ?? []).map(entry),
    revoke: (revoke ?? []).map(([set, epoch, stopMs = STOP]) => ({ ...entry([set, epoch]), stopMs })),
    tables: [{ table: T, count: 64, created, handoff }],
    keys: [],
  };
}

/** Holdings of the table `t`, with the clock they are judged by and what they asked of the owner's code. */
export class Subject {
  readonly holdings = new Holdings(PATIENCE);
  now = 0;
  slept = 0;
  readonly handles = new Map<string, Handle>();

  get at(): Reading {
    return { now: this.now, wall: 1_000_000 + this.now + this.slept };
  }

  apply(brief: Brief): Summary {
    return this.#summary(this.holdings.apply(push(brief), this.at));
  }

  loaded(name: string): Summary {
    return this.#summary(this.holdings.loaded([this.handle(name)], this.at));
  }

  fail(name: string, reason = "no room", retryable = true): Summary {
    return this.#summary(this.holdings.fail(this.handle(name), { reason, retryable }, this.at));
  }

  ended(name: string): Summary {
    return this.#summary(this.holdings.ended([this.handle(name)], this.at));
  }

  stopEverything(): Summary {
    return this.#summary(this.holdings.stopEverything(this.at));
  }

  cutOverdue(): Summary {
    return this.#summary(this.holdings.cutOverdue(this.at, MARGIN));
  }

  serves(partition: number): number | undefined {
    return this.holdings.epochServed(T, partition, this.at, MARGIN);
  }

  owed(): readonly string[] {
    return owedLines(this.holdings.owed());
  }

  handle(name: string): Handle {
    const handle = this.handles.get(name);
    if (handle === undefined) throw new Error(`${name} was never started`);
    return handle;
  }

  #summary(steps: Steps): Summary {
    const names = (handles: readonly Handle[]) => handles.map((handle) => `${handle.partition}@${epochOf(handle)}`);
    for (const handle of steps.start) this.handles.set(`${handle.partition}@${epochOf(handle)}`, handle);
    const all = {
      stop: names(steps.stop),
      cut: names(steps.cut),
      start: names(steps.start),
      owed: owedLines(steps.owed),
    };
    return Object.fromEntries(Object.entries(all).filter(([, list]) => list.length > 0));
  }
}

/** What a call asked for; what is empty is left out. */
export type Summary = { readonly [list: string]: readonly string[] };

export function owedLines({ ready, released, failed }: Owed): readonly string[] {
  return [
    ...ready.map(({ partitions, epoch }) => `ready ${partitions}@${epoch}`),
    ...released.map(({ partitions, epoch }) => `released ${partitions}@${epoch}`),
    ...failed.map(({ partitions, epoch, reason, retryable }) => `failed ${partitions}@${epoch} ${reason} ${retryable}`),
  ];
}
