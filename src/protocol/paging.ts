import type { Cause } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import type { Grant } from "../model/grant.ts";
import { encodeFrame } from "./codec.ts";
import type { PushFrame, ReportFrame } from "./frames.ts";
import { MAX_CAUSE_NAMES, MAX_CAUSES, MAX_FRAME_BYTES, MAX_REASON_CHARS } from "./limits.ts";
import { utf8Length } from "./utf8.ts";

/** A push as the core makes it and as a client applies it: whole. */
export type Push = Omit<PushFrame, "type" | "more" | "cause"> & { readonly cause: readonly Cause[] };

/** The lists of a report, all of them optional. */
export type Report = Partial<Omit<ReportFrame, "type">>;

/**
 * Encodes a push as one frame, or as pages of at most `maxBytes` each: all repeat type, revision and base, the first has
 * the cause, all but the last `more: true`. An entry whose set does not fit is split between two ranges.
 */
export function pagePush(push: Push, maxBytes = MAX_FRAME_BYTES): readonly string[] {
  const { revision, base, grant, prepare, revoke, tables, keys } = push;
  const cause = shortenCause(push.cause);
  const lists = { grant, prepare, revoke, tables, keys };
  const whole = encodeFrame({ type: "push", revision, base, cause, ...lists });
  if (fits(whole, maxBytes)) return [whole];
  const head = { type: "push", revision, base };
  const pages = writePages(lists, JSON.stringify({ ...head, cause }), JSON.stringify(head), maxBytes - MORE.length);
  return pages.map((page, index) => `${page}${index < pages.length - 1 ? MORE : ""}}`);
}

/**
 * Encodes a report as one frame, or as several reports of at most `maxBytes` each. A report is not paged: each part of it
 * counts by itself.
 */
export function splitReport(report: Report, maxBytes = MAX_FRAME_BYTES): readonly string[] {
  const { ready = [], released = [], failed = [], load = [] } = report;
  const lists = { ready, released, failed, load };
  const whole = encodeFrame({ type: "report", ...lists });
  if (fits(whole, maxBytes)) return [whole];
  const head = '{"type":"report"}';
  return writePages(lists, head, head, maxBytes).map((page) => `${page}}`);
}

const MORE = ',"more":true';

function fits(text: string, maxBytes: number): boolean {
  // No character takes more than three bytes for each unit, so short texts need no count.
  return text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes;
}

type Entry = object | Grant;

/** Fills page after page with the entries of the lists; each page is a frame without its closing brace. */
function writePages(
  lists: Readonly<Record<string, readonly Entry[]>>,
  firstHead: string,
  nextHead: string,
  maxBytes: number,
): readonly string[] {
  const pages: PageBuilder[] = [new PageBuilder(firstHead, maxBytes)];
  for (const [member, entries] of Object.entries(lists)) {
    for (const entry of entries) {
      let rest: string | undefined = JSON.stringify(entry);
      while (rest !== undefined) {
        const page = pages.at(-1) as PageBuilder;
        const before = page.isEmpty;
        rest = page.take(member, rest);
        if (rest === undefined) break;
        // A page that took nothing though it was empty would make pages for ever.
        assert(!before || !page.isEmpty, `an entry of ${member} does not fit a page of ${maxBytes} bytes`);
        pages.push(new PageBuilder(nextHead, maxBytes));
      }
    }
  }
  return pages.map((page) => page.text());
}

class PageBuilder {
  readonly #parts: string[] = [];
  readonly #maxBytes: number;
  #member: string | undefined;
  #bytes: number;
  isEmpty = true;

  constructor(head: string, maxBytes: number) {
    // The head's closing brace is written by the caller; one byte each is kept for it and for an open list's bracket.
    this.#parts.push(head.slice(0, -1));
    this.#bytes = utf8Length(head) + 1;
    this.#maxBytes = maxBytes;
  }

  /** Takes an encoded entry, or as much of its set as fits, and gives back what it did not take. */
  take(member: string, entry: string): string | undefined {
    const lead = this.#member === member ? "," : `${this.#member === undefined ? "" : "]"},"${member}":[`;
    const room = this.#maxBytes - this.#bytes - lead.length;
    if (fits(entry, room)) {
      this.#write(member, lead, entry);
      return undefined;
    }
    const split = splitEntry(entry, room);
    if (split === undefined) return entry;
    this.#write(member, lead, split.taken);
    return split.rest;
  }

  text(): string {
    return `${this.#parts.join("")}${this.#member === undefined ? "" : "]"}`;
  }

  #write(member: string, lead: string, entry: string): void {
    this.#parts.push(lead, entry);
    this.#bytes += lead.length + utf8Length(entry);
    this.#member = member;
    this.isEmpty = false;
  }
}

const SET_LEAD = '"partitions":"';

/** Splits an encoded entry within its set, at the last comma that leaves the first part within `room` bytes. */
function splitEntry(entry: string, room: number): { readonly taken: string; readonly rest: string } | undefined {
  // What stands before the set is an id and what stands in the set is ASCII, so the first match is the member itself.
  const at = entry.indexOf(SET_LEAD);
  if (at < 0) return undefined;
  const from = at + SET_LEAD.length;
  const to = entry.indexOf('"', from);
  const [head, set, tail] = [entry.slice(0, from), entry.slice(from, to), entry.slice(to)];
  const space = room - head.length - utf8Length(tail);
  // A range ends at a comma, or one past the space.
  const comma = space <= 0 ? -1 : set.lastIndexOf(",", space);
  if (comma <= 0) return undefined;
  return { taken: head + set.slice(0, comma) + tail, rest: head + set.slice(comma + 1) + tail };
}

/** A push that merges many changes keeps the newest causes, and the first of each list of names; the history has it all. */
function shortenCause(cause: readonly Cause[]): readonly Cause[] {
  return cause.slice(-MAX_CAUSES).map(({ kind, executors, tables, by, note }) => ({
    kind,
    ...(executors && { executors: executors.slice(0, MAX_CAUSE_NAMES) }),
    ...(tables && { tables: tables.slice(0, MAX_CAUSE_NAMES) }),
    ...(by !== undefined && { by: [...by].slice(0, MAX_REASON_CHARS).join("") }),
    ...(note !== undefined && { note: [...note].slice(0, MAX_REASON_CHARS).join("") }),
  }));
}

/** What a page did: it completed a push, it did not yet, or it does not belong to the unfinished one. */
export type Assembled =
  | { readonly type: "whole"; readonly push: Push }
  | { readonly type: "partial" }
  | { readonly type: "breach"; readonly reason: string };

/** Puts the pages of pushes together, for one socket: its unfinished pages die with it. */
export class PushAssembler {
  #first: PushFrame | undefined;
  #lists = emptyLists();

  /** True while pages of a push are awaited. Other frames may stand between them. */
  get isPartial(): boolean {
    return this.#first !== undefined;
  }

  add(page: PushFrame): Assembled {
    const first = this.#first ?? page;
    if (page.revision !== first.revision || page.base !== first.base) {
      return { type: "breach", reason: "push: a page of another push while one is unfinished" };
    }
    const lists = this.#lists;
    join(lists.grant, page.grant);
    join(lists.prepare, page.prepare);
    join(lists.revoke, page.revoke);
    lists.tables.push(...page.tables);
    lists.keys.push(...page.keys);
    if (page.more === true) {
      this.#first = first;
      return { type: "partial" };
    }
    this.#first = undefined;
    this.#lists = emptyLists();
    return { type: "whole", push: { revision: page.revision, base: page.base, ...lists, cause: first.cause ?? [] } };
  }
}

type Lists = { [Member in "grant" | "prepare" | "revoke" | "tables" | "keys"]: PushFrame[Member][number][] };

function emptyLists(): Lists {
  return { grant: [], prepare: [], revoke: [], tables: [], keys: [] };
}

/** Appends the entries of a page; one that was split over two pages becomes one again. */
function join<T extends Grant & { readonly stopMs?: number }>(list: T[], page: readonly T[]): void {
  for (const entry of page) {
    const last = list.at(-1);
    if (
      last !== undefined &&
      last.table === entry.table &&
      last.epoch === entry.epoch &&
      last.stopMs === entry.stopMs
    ) {
      list[list.length - 1] = { ...last, partitions: last.partitions.union(entry.partitions) };
    } else list.push(entry);
  }
}
