import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  answersAfter,
  findEnded,
  findEpochsNotRising,
  findOverlaps,
  RecordFile,
  type Round,
  type Run,
  runsOf,
} from "./record.ts";

/** A process that asks for the given moment only, within one unit around it. */
function round(at: number, says: Round["says"] = {}): Round {
  return { from: at - 1, to: at + 1, says };
}

function run(process: string, first: number, last: number, epoch = 5): Run {
  return { process, place: "t/0", epoch, first, last };
}

describe("runs", () => {
  test("reach from the end of the first round to the start of the last that said yes", () => {
    const rounds = [round(10), round(20, { "t/0": 5 }), round(30), round(40), round(50, { "t/0": null }), round(60)];
    expect(runsOf("a", rounds)).toEqual([{ process: "a", place: "t/0", epoch: 5, first: 21, last: 39 }]);
  });

  test("end with the last round before a process was killed", () => {
    expect(runsOf("a", [round(10, { "t/0": 5 }), round(20)])).toEqual([run("a", 11, 19)]);
  });

  test("are told apart by epoch and by place", () => {
    const rounds = [round(10, { "t/0": 5, "t/1": 5 }), round(20, { "t/0": 7 }), round(30, { "t/1": null })];
    expect(runsOf("a", rounds)).toEqual([
      { process: "a", place: "t/0", epoch: 5, first: 11, last: 9 },
      { process: "a", place: "t/1", epoch: 5, first: 11, last: 19 },
      { process: "a", place: "t/0", epoch: 7, first: 21, last: 29 },
    ]);
  });

  test("that are open are the last answers", () => {
    const rounds = [round(10, { "t/0": 5, "t/1": 5 }), round(20, { "t/0": null }), round(30, { "t/2": 9 })];
    expect([...answersAfter(rounds)]).toEqual([
      ["t/1", 5],
      ["t/2", 9],
    ]);
  });
});

describe("overlaps", () => {
  test.each([
    ["one after the other", run("a", 11, 19), run("b", 21, 29), 0],
    [
      "rounds that touch: the yes of the one may have come before that of the other",
      run("a", 11, 21),
      run("b", 21, 29),
      0,
    ],
    ["one begins before the other has ended", run("a", 11, 22), run("b", 21, 29), 1],
    ["one within the other", run("a", 11, 99), run("b", 21, 29), 1],
    ["a single round within a run of the other", run("a", 11, 99), run("b", 51, 49), 1],
    ["two single rounds at about the same time prove nothing", run("a", 51, 49), run("b", 52, 50), 0],
    ["a single round that took as long as the pause in it", run("a", 99, 9), run("b", 21, 29), 0],
    ["the same process", run("a", 11, 99), run("a", 21, 29), 0],
    ["another partition", run("a", 11, 99), { ...run("b", 21, 29), place: "t/1" }, 0],
  ])("%s", (_, a, b, found) => {
    expect(findOverlaps([a, b])).toHaveLength(found);
    expect(findOverlaps([b, a])).toHaveLength(found);
  });
});

describe("epochs", () => {
  test.each([
    ["rise from one process to the next", run("a", 11, 19, 5), run("b", 21, 29, 6), 0],
    ["do not fall", run("a", 11, 19, 5), run("b", 21, 29, 4), 1],
    ["are never given to two processes", run("a", 11, 19, 5), run("b", 21, 29, 5), 1],
    ["may be given back to the same process", run("a", 11, 19, 5), run("a", 21, 29, 5), 0],
    ["do not fall within a process", run("a", 11, 19, 5), run("a", 21, 29, 4), 1],
  ])("%s", (_, a, b, found) => {
    expect(findEpochsNotRising([b, a])).toHaveLength(found);
  });
});

describe("what has ended", () => {
  test.each([
    ["goes on after the end", run("a", 11, 41), 0],
    ["ends in between", run("a", 11, 39), 1],
    ["had ended before", run("a", 11, 19), 0],
    ["begins in between", run("a", 21, 29), 0],
  ])("%s", (_, a, found) => {
    expect(findEnded([a], 20, 40)).toHaveLength(found);
  });
});

describe("a file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "evenkeel-record-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("is read up to its last whole line", () => {
    const file = join(folder, "record");
    appendFileSync(file, `${JSON.stringify(round(10, { "t/0": 5 }))}\n{"from":19,"to"`);
    const record = new RecordFile(file);
    expect(record.rounds()).toEqual([round(10, { "t/0": 5 })]);
    appendFileSync(file, `:21,"says":{}}\n${JSON.stringify(round(30))}\n`);
    expect(record.rounds()).toEqual([round(10, { "t/0": 5 }), round(20), round(30)]);
  });
});
