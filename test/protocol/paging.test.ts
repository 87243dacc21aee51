import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Push as CorePush } from "../../src/core/effects.ts";
import { executorId, tableName } from "../../src/model/ids.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { decodeClientFrame, decodeServerFrame } from "../../src/protocol/codec.ts";
import type { PushFrame, ReportFrame } from "../../src/protocol/frames.ts";
import { MAX_CAUSE_NAMES, MAX_CAUSES, MAX_FRAME_BYTES, MAX_REASON_CHARS } from "../../src/protocol/limits.ts";
import { type Assembled, type Push, PushAssembler, pagePush, splitReport } from "../../src/protocol/paging.ts";
import { anyFailures, anyGrants, anyLoads, anyPush } from "./values.ts";

// Room for the largest head and entry that `anyPush` makes.
const SMALL_PAGE = 1_200;

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function readPage(text: string): PushFrame {
  const decoded = decodeServerFrame(text);
  if (!decoded.ok) throw new Error(decoded.close.reason);
  if (decoded.frame?.type !== "push") throw new Error("not a push");
  return decoded.frame;
}

function assemble(pages: readonly string[]): readonly Assembled[] {
  const assembler = new PushAssembler();
  return pages.map((page) => assembler.add(readPage(page)));
}

const emptyPush: Push = {
  revision: 7,
  base: null,
  cause: [],
  grant: [],
  prepare: [],
  revoke: [],
  tables: [],
  keys: [],
};

/** A push in plain data, so that sets are compared by what they hold. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("paging a push", () => {
  it("gives the push back when the pages are assembled, whatever the page size", () => {
    fc.assert(
      fc.property(anyPush, fc.integer({ min: SMALL_PAGE, max: 6_000 }), (push, maxBytes) => {
        const results = assemble(pagePush(push, maxBytes));
        const last = results.at(-1);
        expect(results.slice(0, -1).every(({ type }) => type === "partial")).toBe(true);
        expect(last?.type === "whole" && plain(last.push)).toEqual(plain(push));
      }),
    );
  });

  it("keeps every page within the limit, with type, revision and base on each and the cause on the first", () => {
    fc.assert(
      fc.property(anyPush, (push) => {
        const texts = pagePush(push, SMALL_PAGE);
        const pages = texts.map(readPage);
        expect(Math.max(...texts.map(bytesOf))).toBeLessThanOrEqual(SMALL_PAGE);
        for (const [index, page] of pages.entries()) {
          expect([page.revision, page.base]).toEqual([push.revision, push.base]);
          expect(page.more).toBe(index < pages.length - 1 ? true : undefined);
          expect(plain(page.cause ?? null)).toEqual(index === 0 ? plain(push.cause) : null);
        }
      }),
    );
  });

  it("fills pages: no page could have taken the first range of the next", () => {
    const grant = [{ table: tableName("t"), partitions: everySecond(5_000), epoch: 3 }];
    const texts = pagePush({ ...emptyPush, grant }, 1_000);
    for (const text of texts.slice(0, -1)) expect(bytesOf(text)).toBeGreaterThan(1_000 - ",9999".length);
  });

  it("takes the worst set of a table of 1,048,576 partitions", () => {
    const partitions = everySecond(1_048_576);
    const pages = pagePush({ ...emptyPush, grant: [{ table: tableName("t"), partitions, epoch: 3 }] });
    expect(pages.length).toBeGreaterThan(10);
    expect(Math.max(...pages.map(bytesOf))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
    const last = assemble(pages).at(-1);
    expect(last?.type === "whole" && last.push.grant[0]?.partitions.equals(partitions)).toBe(true);
  });

  it("sends a push of exactly the limit in one frame and one byte more in two", () => {
    const push = { ...emptyPush, keys: [key("é"), key("b")] };
    const [whole = ""] = pagePush(push);
    expect(pagePush(push, bytesOf(whole))).toEqual([whole]);
    expect(pagePush(push, bytesOf(whole) - 1)).toHaveLength(2);
  });

  it("sends a push of exactly 256 KiB whole, and one byte more in two pages", () => {
    const withLast = (last: string) => ({ ...emptyPush, keys: [...many, key(last)] });
    const many = Array.from({ length: 1_080 }, () => key("k".repeat(200)));
    const free = MAX_FRAME_BYTES - bytesOf(pagePush(withLast("")).join(""));
    const [exact = "", ...none] = pagePush(withLast("k".repeat(free)));
    expect([bytesOf(exact), none.length]).toEqual([MAX_FRAME_BYTES, 0]);
    expect(pagePush(withLast("k".repeat(free + 1)))).toHaveLength(2);
  });

  it("leaves out members of the effect that are not the push's", () => {
    const core: CorePush & { session: string } = { ...emptyPush, session: "s1" };
    expect(pagePush(core)).toEqual(['{"type":"push","revision":7,"base":null,"cause":[]}']);
  });

  it("bounds the cause: the newest entries, the first names, and texts that fit", () => {
    const names = Array.from({ length: MAX_CAUSE_NAMES + 1 }, (_, n) => executorId(`e${n}`));
    const cause = Array.from({ length: MAX_CAUSES + 1 }, (_, n) => ({
      kind: "operator" as const,
      executors: names,
      tables: names.map(tableName).reverse(),
      note: `${n}`.padEnd(5_000, "\u{1f600}"),
    }));
    const [text = ""] = pagePush({ ...emptyPush, cause });
    const sent = readPage(text).cause ?? [];
    expect(sent).toHaveLength(MAX_CAUSES);
    expect(sent[0]?.note?.startsWith("1")).toBe(true);
    expect(sent[0]?.executors).toEqual(names.slice(0, MAX_CAUSE_NAMES));
    expect(sent[0]?.tables).toEqual([...names].reverse().slice(0, MAX_CAUSE_NAMES));
    expect([...(sent[0]?.note ?? "")]).toHaveLength(MAX_REASON_CHARS);
  });

  it("keeps the first page within the limit for the largest cause", () => {
    const names = Array.from({ length: 100 }, () => executorId("e".repeat(128)));
    const cause = Array.from({ length: 100 }, () => ({
      kind: "replacement" as const,
      executors: names,
      tables: names.map(tableName),
      by: "\u0001".repeat(600),
      note: "\u0001".repeat(600),
    }));
    const texts = pagePush({ ...emptyPush, cause, keys: [key("\u0001".repeat(256))] });
    expect(Math.max(...texts.map(bytesOf))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
  });
});

describe("assembling a push", () => {
  const page = (members: Partial<PushFrame>): PushFrame => ({ type: "push", ...emptyPush, more: true, ...members });

  it.each([{ revision: 8 }, { base: 6 }])("refuses a page of another push while one is unfinished: %o", (other) => {
    const assembler = new PushAssembler();
    expect(assembler.add(page({})).type).toBe("partial");
    expect(assembler.isPartial).toBe(true);
    expect(assembler.add(page(other)).type).toBe("breach");
  });

  it("starts afresh after a whole push", () => {
    const assembler = new PushAssembler();
    assembler.add(page({}));
    expect(assembler.add(page({ more: false })).type).toBe("whole");
    expect(assembler.isPartial).toBe(false);
    expect(assembler.add(page({ revision: 9, base: 7, more: false }))).toMatchObject({
      type: "whole",
      push: { revision: 9, grant: [] },
    });
  });

  it.each([{ table: tableName("u") }, { epoch: 4 }, { stopMs: 2 }])(
    "joins only parts of one entry, not %o",
    (other) => {
      const entry = { table: tableName("t"), partitions: PartitionSet.of([1]), epoch: 3, stopMs: 1 };
      const next = { ...entry, partitions: PartitionSet.of([2]) };
      const assembler = new PushAssembler();
      assembler.add(page({ revoke: [entry] }));
      assembler.add(page({ revoke: [next] }));
      const result = assembler.add(page({ more: false, revoke: [{ ...next, ...other }] }));
      expect(result.type === "whole" && plain(result.push.revoke)).toEqual([
        { ...entry, partitions: "1-2" },
        { ...entry, ...other, partitions: "2" },
      ]);
    },
  );
});

describe("splitting a report", () => {
  const readReport = (text: string): ReportFrame => {
    const decoded = decodeClientFrame(text);
    if (!decoded.ok || decoded.frame.type !== "report") throw new Error("not a report");
    return decoded.frame;
  };

  it("gives reports within the limit that together say the same", () => {
    const anyReport = fc.record({ ready: anyGrants, released: anyGrants, failed: anyFailures, load: anyLoads });
    fc.assert(
      fc.property(anyReport, (report) => {
        const texts = splitReport(report, 600);
        expect(Math.max(...texts.map(bytesOf))).toBeLessThanOrEqual(600);
        const parts = texts.map(readReport);
        for (const list of ["ready", "released", "failed"] as const) {
          expect(listed(parts.flatMap((part) => part[list]))).toEqual(listed(report[list]));
        }
        expect(parts.flatMap((part) => part.load)).toEqual(plain(report.load));
      }),
    );
  });
});

/** Every partition of a list with what is said of it. */
function listed(list: ReportFrame["failed"] | ReportFrame["ready"]): readonly string[] {
  return list.flatMap((entry) => {
    const facts = plain({ ...entry, partitions: "" });
    return entry.partitions.isEmpty ? [] : [...entry.partitions].map((p) => `${p} ${JSON.stringify(facts)}`);
  });
}

function everySecond(count: number): PartitionSet {
  return PartitionSet.of(Array.from({ length: count / 2 }, (_, n) => 2 * n));
}

function key(text: string) {
  return { table: tableName("t"), partition: 0, key: text };
}
