import { describe, expect, test } from "vitest";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { createLog, type LogOptions } from "../../src/telemetry/log.ts";
import { MAX_LIST_ELEMENTS, MAX_SET_CHARS, MAX_TEXT_CHARS, shortenSet } from "../../src/telemetry/shape.ts";

function logInto(options: Partial<LogOptions> & { isTTY?: boolean } = {}) {
  const lines: string[] = [];
  const { isTTY = false, ...rest } = options;
  const sink = { isTTY, write: (text: string) => lines.push(text) };
  return { lines, log: createLog({ level: "info", pretty: "auto", sink, ...rest }) };
}

const push = {
  executor: "A",
  revision: 7,
  base: null,
  grant: [{ table: "trips", partitions: PartitionSet.parse("0-15,20"), epoch: 7 }],
  cause: [{ kind: "formation", executors: ["A", "B"] }],
};

describe("NDJSON", () => {
  test("a line is one JSON object with time, level, event and the fields, sets as text", () => {
    const { log, lines } = logInto();
    log.log("info", "push.sent", push);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^\{.*\}\n$/);
    const { time, ...rest } = JSON.parse(lines[0] ?? "");
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const grant = [{ table: "trips", partitions: "0-15,20", epoch: 7 }];
    expect(rest).toEqual({ ...push, level: "info", event: "push.sent", grant });
  });

  test("what is below the level is not written; silent writes nothing", () => {
    const { log, lines } = logInto({ level: "warn" });
    for (const level of ["debug", "info", "warn", "error"] as const) log.log(level, `at.${level}`, {});
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(["at.warn", "at.error"]);
    const silent = logInto({ level: "silent" });
    silent.log.log("error", "core.failed", {});
    expect(silent.lines).toEqual([]);
  });

  test("auto writes JSON where there is no terminal, `never` on a terminal too", () => {
    for (const options of [{ pretty: "auto" }, { pretty: "never", isTTY: true }] as const) {
      const { log, lines } = logInto(options);
      log.log("info", "server.listening", { url: "http://127.0.0.1:7420" });
      expect(JSON.parse(lines[0] ?? "").url).toBe("http://127.0.0.1:7420");
    }
  });

  test("what a peer sent cannot end a line or steer a terminal, and still reads as the same", () => {
    const hostile = '\u001b[31m\n\u009b2J\u202e\u2028"}\\';
    const { log, lines } = logInto();
    log.log("info", "executor.joined", { address: hostile });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of these may be in a line
    expect(lines.join("").slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
    expect(JSON.parse(lines[0] ?? "").address).toBe(hostile);
  });
});

describe("lines for people", () => {
  const pretty = { pretty: "always", colors: false } as const;

  test("time, level, event, then key=value, on one line", () => {
    const { log, lines } = logInto(pretty);
    log.log("info", "push.sent", push);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: push\.sent executor=A revision=7 base=null grant=\[trips\[0-15,20\]@7\] cause=\[\{kind=formation executors=\[A B\]\}\]\n$/,
    );
  });

  test("auto writes them on a terminal", () => {
    const { log, lines } = logInto({ isTTY: true, colors: false });
    log.log("warn", "store.failed", { error: "disk full" });
    expect(lines[0]).toMatch(/WARN: store\.failed error="disk full"\n$/);
  });

  test("colours come with a terminal only", () => {
    const [plain, coloured] = [logInto({ pretty: "always" }), logInto({ isTTY: true })];
    plain.log.log("info", "server.listening", {});
    coloured.log.log("info", "server.listening", {});
    expect(plain.lines[0]).not.toContain("\u001b[");
    expect(coloured.lines[0]).toContain("\u001b[");
  });

  test("what a peer sent cannot pass for a field, end the line or steer the terminal", () => {
    const { log, lines } = logInto(pretty);
    log.log("info", "executor.joined", { zone: "a b=c", address: "x\u001b[2J\u009b\u202e\ny" });
    expect(lines[0]).toContain('zone="a b=c" address="x\\u001b[2J\\u009b\\u202e\\ny"');
    expect(lines[0]?.trimEnd()).not.toContain("\n");
  });

  test("members that printers of logs give a meaning are fields like any other", () => {
    const { log, lines } = logInto(pretty);
    log.log("info", "table.put", { name: "trips", pid: 1, hostname: "h", type: "Error", stack: "s" });
    expect(lines[0]).toMatch(/INFO: table\.put name=trips pid=1 hostname=h type=Error stack=s\n$/);
  });
});

describe("long things are cut and counted", () => {
  const even = (count: number) => PartitionSet.of(Array.from({ length: count }, (_, index) => 2 * index));

  test("a set of up to 200 characters is whole, one past it is not", () => {
    // "0,2,4,6,8" and then ",10" and so on: 5 one-digit and 45 two-digit numbers, then three digits each.
    const fitting = Array.from({ length: 200 }, (_, index) => even(index + 1)).filter(
      (set) => set.toString().length <= MAX_SET_CHARS,
    );
    const longest = fitting.at(-1) ?? PartitionSet.empty;
    expect(shortenSet(longest)).toBe(longest.toString());
    const next = even(longest.size + 1);
    expect(next.toString().length).toBeGreaterThan(MAX_SET_CHARS);
    expect(shortenSet(next)).toBe(`${longest},…(+1)`);
  });

  test("the count is of partitions, not of ranges", () => {
    const wide = PartitionSet.of(Array.from({ length: 1_000 }, (_, index) => 3 * Math.floor(index / 2) + (index % 2)));
    const text = shortenSet(wide);
    const left = Number(/…\(\+(\d+)\)$/.exec(text)?.[1]);
    const written = PartitionSet.parse(text.replace(/,…\(\+\d+\)$/, ""));
    expect(left + written.size).toBe(1_000);
  });

  test("lists, texts and depth are bounded", () => {
    const { log, lines } = logInto();
    let deep: unknown = "core";
    for (let depth = 0; depth < 1_000; depth++) deep = [deep];
    const list = Array.from({ length: MAX_LIST_ELEMENTS + 2 }, () => 1);
    log.log("error", "core.failed", { list, text: "x".repeat(MAX_TEXT_CHARS + 3), deep, error: new Error("why") });
    const line = JSON.parse(lines[0] ?? "");
    expect(line.list).toHaveLength(MAX_LIST_ELEMENTS + 1);
    expect(line.list.at(-1)).toBe("…(+2)");
    expect(line.text).toBe(`${"x".repeat(MAX_TEXT_CHARS)}…(+3)`);
    expect(JSON.stringify(line.deep)).toMatch(/^\[+"…"\]+$/);
    expect(line.error).toBe("why");
  });
});
