import { describe, expect, it } from "vitest";
import { decodeClientFrame, decodeServerFrame } from "../../src/protocol/codec.ts";
import {
  MAX_ADDRESS_CHARS,
  MAX_JSON_DEPTH,
  MAX_LABEL_CHARS,
  MAX_LABELS,
  MAX_REASON_CHARS,
  MAX_STAMP_CHARS,
} from "../../src/protocol/limits.ts";

/** A hello with other members, as text; a member given as `raw(…)` is written as it stands. */
const HELLO = { type: "hello", role: "executor", executor: "a", instance: "i", attempt: 1 };
const hello = (members: object) => JSON.stringify({ ...HELLO, ...members });
const helloRaw = (members: string) => `${JSON.stringify(HELLO).slice(0, -1)},${members}}`;
const without = (member: keyof typeof HELLO) => JSON.stringify({ ...HELLO, [member]: undefined });
const grant = (members: object) => ({ table: "t", partitions: "0", epoch: 1, ...members });
const report = (list: string, members: object) => JSON.stringify({ type: "report", [list]: [grant(members)] });
const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, "x"]));
const nested = (depth: number) => `${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}`;
const SMILE = "\u{1f600}";

/** What is wrong, the text, and the reason that answers it. */
const BREACHES: readonly (readonly [string, string, RegExp])[] = [
  ["no JSON", "{", /^not JSON$/],
  ["an empty text", "", /^not JSON$/],
  ["two objects", '{"type":"left"}{"type":"left"}', /^not JSON$/],
  ["an array", "[]", /^not a JSON object$/],
  ["null", "null", /^not a JSON object$/],
  ["a text", '"ack"', /^not a JSON object$/],
  ["no type", "{}", /^type: is missing$/],
  ["a type that is inherited", '{"__proto__":{"type":"ack","revision":1}}', /^type: is missing$/],
  ["a type that is no text", '{"type":1}', /^type: must be text$/],
  ["an unknown type", '{"type":"subscribe"}', /^type: unknown$/],
  ["a type of Object's", '{"type":"constructor"}', /^type: unknown$/],
  ["a server's type", '{"type":"left"}', /^type: unknown$/],
  ["too deep, without an end", "[".repeat(100_000), /^nested deeper than 32$/],
  ["too deep by one", `{"type":"left","x":${nested(MAX_JSON_DEPTH + 1)}}`, /^nested deeper than 32$/],
  ["hello without members", '{"type":"hello"}', /^hello\.role/],
  ["hello without role", without("role"), /^hello\.role/],
  ["hello with another role", hello({ role: "admin" }), /^hello\.role/],
  ["hello without executor", without("executor"), /^hello\.executor: is missing$/],
  ["hello without instance", without("instance"), /^hello\.instance: is missing$/],
  ["hello without attempt", without("attempt"), /^hello\.attempt: is missing$/],
  ["an id that starts with a dot", hello({ executor: ".a" }), /^hello\.executor: must be an id/],
  ["an empty id", hello({ executor: "" }), /^hello\.executor: must be an id/],
  ["an id of 129 characters", hello({ executor: "a".repeat(129) }), /^hello\.executor: must be an id/],
  ["an id with a line break at its end", hello({ instance: "a\n" }), /^hello\.instance: must be an id/],
  ["a negative attempt", hello({ attempt: -1 }), /^hello\.attempt: must be an integer/],
  ["a fraction", hello({ attempt: 1.5 }), /^hello\.attempt: must be an integer/],
  ["2^53", helloRaw('"attempt":9007199254740992'), /^hello\.attempt: must be an integer/],
  ["a number as text", hello({ attempt: "1" }), /^hello\.attempt: must be an integer/],
  ["a resume that is no object", hello({ resume: 5 }), /^hello\.resume: /],
  ["a resume without revision", hello({ resume: { incarnation: "x" } }), /^hello\.resume\.revision: is missing$/],
  ["a resume without incarnation", hello({ resume: { revision: 1 } }), /^hello\.resume\.incarnation: is missing$/],
  ["null for what may be absent", hello({ zone: null }), /^hello\.zone: must be an id/],
  ["a slot that is no id", hello({ slot: "a b" }), /^hello\.slot: must be an id/],
  ["a stamp past its limit", hello({ stamp: "s".repeat(MAX_STAMP_CHARS + 1) }), /^hello\.stamp: must be well-formed/],
  ["an address past its limit", hello({ address: "x".repeat(MAX_ADDRESS_CHARS + 1) }), /^hello\.address: /],
  ["a lone surrogate", helloRaw('"address":"\\ud800"'), /^hello\.address: must be well-formed/],
  ["weight 0", hello({ weight: 0 }), /^hello\.weight: must be a number above 0/],
  ["a negative weight", hello({ weight: -1 }), /^hello\.weight: /],
  ["a weight past its limit", hello({ weight: 1_000_000.1 }), /^hello\.weight: /],
  ["a weight of 1e999", helloRaw('"weight":1e999'), /^hello\.weight: /],
  ["a negative capacity", hello({ capacity: -1 }), /^hello\.capacity: must be an integer/],
  ["a fractional capacity", hello({ capacity: 0.5 }), /^hello\.capacity: must be an integer/],
  ["one label too many", hello({ labels: labels(MAX_LABELS + 1) }), /^hello\.labels: must have at most 32 pairs$/],
  ["labels as an array", hello({ labels: ["a"] }), /^hello\.labels: must be an object$/],
  ["a label key __proto__", helloRaw('"labels":{"__proto__":"x"}'), /^hello\.labels: must have ids as keys/],
  ["a label key that is no id", hello({ labels: { "a b": "x" } }), /^hello\.labels: must have ids as keys/],
  ["a label that is no text", hello({ labels: { a: 1 } }), /^hello\.labels: must have well-formed text/],
  ["a label past its limit", hello({ labels: { a: SMILE.repeat(MAX_LABEL_CHARS + 1) } }), /^hello\.labels: /],
  [
    "an observer's tables that are no ids",
    '{"type":"hello","role":"observer","tables":["a","_"]}',
    /^hello\.tables\.1: /,
  ],
  ["renew without n", '{"type":"renew"}', /^renew\.n: is missing$/],
  ["renew 0", '{"type":"renew","n":0}', /^renew\.n: must be an integer from 1/],
  ["renew -1", '{"type":"renew","n":-1}', /^renew\.n: must be an integer from 1/],
  ["renew 01", '{"type":"renew","n":01}', /^not JSON$/],
  ["ack without revision", '{"type":"ack"}', /^ack\.revision: is missing$/],
  ["ack of nothing", '{"type":"ack","revision":}', /^not JSON$/],
  ["ack of a fraction", '{"type":"ack","revision":1.5}', /^ack\.revision: must be an integer/],
  ["ack of 2^53", '{"type":"ack","revision":9007199254740992}', /^ack\.revision: must be an integer/],
  ["a report list that is none", '{"type":"report","ready":{}}', /^report\.ready: must be an array$/],
  ["a report entry that is none", '{"type":"report","released":[1]}', /^report\.released\.0: /],
  ["a report without table", report("ready", { table: undefined }), /^report\.ready\.0\.table: is missing$/],
  ["a report without epoch", report("released", { epoch: undefined }), /^report\.released\.0\.epoch: is missing$/],
  ["a failure without reason", report("failed", {}), /^report\.failed\.0\.reason: is missing$/],
  [
    "a reason past its limit",
    report("failed", { reason: "x".repeat(MAX_REASON_CHARS + 1) }),
    /^report\.failed\.0\.reason/,
  ],
  ["retryable as text", report("failed", { reason: "", retryable: "no" }), /^report\.failed\.0\.retryable: /],
  ["sets as arrays", report("ready", { partitions: [1] }), /^report\.ready\.0\.partitions: /],
  [
    "a set that descends",
    report("ready", { partitions: "5,1" }),
    /^report\.ready\.0\.partitions: must be a canonical set/,
  ],
  ["a set that is not merged", report("ready", { partitions: "0,1" }), /partitions: must be a canonical set/],
  ["a partition of 2^20", report("ready", { partitions: "1048576" }), /partitions: must be a canonical set/],
  ["a load that is no list", '{"type":"report","load":1}', /^report\.load: must be an array$/],
  ["a load entry null", '{"type":"report","load":[null]}', /^report\.load\.0: must be an object$/],
  ["a negative load", '{"type":"report","load":[{"table":"t","partition":0,"load":-0.1}]}', /^report\.load\.0\.load: /],
  [
    "a load of 1e999",
    '{"type":"report","load":[{"table":"t","partition":0,"load":1e999}]}',
    /^report\.load\.0\.load: /,
  ],
  ["a load of nothing", '{"type":"report","load":[{"table":"t","partition":0}]}', /^report\.load\.0\.load: /],
  ["a load of no table", '{"type":"report","load":[{"partition":0,"load":1}]}', /^report\.load\.0\.table: /],
  ["a load past 2^20", '{"type":"report","load":[{"table":"t","partition":1048576,"load":1}]}', /load\.0\.partition: /],
  ["an update of weight 0", '{"type":"update","weight":0}', /^update\.weight: /],
  ["an update of labels null", '{"type":"update","labels":null}', /^update\.labels: must be an object$/],
  ["leave without mode", '{"type":"leave"}', /^leave\.mode: /],
  ["leave with another mode", '{"type":"leave","mode":"now"}', /^leave\.mode: /],
];

describe("breaches by a client", () => {
  it.each(BREACHES)("4400 for %s", (_, text, reason) => {
    const decoded = decodeClientFrame(text);
    if (decoded.ok) throw new Error("decoded");
    expect(decoded.close.code).toBe(4400);
    expect(decoded.close.reason).toMatch(reason);
    expect(new TextEncoder().encode(decoded.close.reason).length).toBeLessThanOrEqual(123);
  });

  it("never repeats what was sent", () => {
    const secret = "s3cret";
    const texts = [
      secret,
      `{"type":"${secret}"}`,
      hello({ role: secret }),
      hello({ executor: `_${secret}` }),
      hello({ attempt: secret }),
      hello({ labels: { [`_${secret}`]: "x" } }),
      hello({ labels: { [secret]: 1 } }),
      hello({ resume: secret }),
      report("ready", { partitions: secret }),
      report("failed", { reason: 1, [secret]: secret }),
      `{"type":"leave","mode":"${secret}"}`,
      `{"type":"report","load":[{"table":"_${secret}"}]}`,
    ];
    for (const text of texts) expect(JSON.stringify(decodeClientFrame(text))).not.toContain(secret);
  });
});

describe("at the limit, and so no breach", () => {
  it.each([
    ["unknown members, even __proto__", helloRaw('"__proto__":{"weight":0},"more":[1]')],
    ["the deepest nesting", helloRaw(`"x":${nested(MAX_JSON_DEPTH)}`)],
    ["brackets in texts", helloRaw(`"address":"\\"${"[{".repeat(100)}"`)],
    ["an id of 128 characters", hello({ executor: "a".repeat(128) })],
    ["2^53-1", hello({ attempt: 2 ** 53 - 1 })],
    ["the longest address", hello({ address: SMILE.repeat(MAX_ADDRESS_CHARS) })],
    ["the longest stamp", hello({ stamp: "s".repeat(MAX_STAMP_CHARS) })],
    ["32 labels", hello({ labels: labels(MAX_LABELS) })],
    ["the longest label", hello({ labels: { a: SMILE.repeat(MAX_LABEL_CHARS) } })],
    ["the highest weight", hello({ weight: 1_000_000 })],
    ["capacity 0", hello({ capacity: 0 })],
    ["the longest reason", report("failed", { reason: "x".repeat(MAX_REASON_CHARS) })],
    ["an empty set", report("ready", { partitions: "" })],
    ["partition 2^20-1", report("ready", { partitions: "1048575" })],
    ["white space", ' { "type" : "ack" , "revision" : 1 } '],
    ["an integer written otherwise", '{"type":"ack","revision":1e3}'],
    ["ack of revision 0", '{"type":"ack","revision":0}'],
    ["an empty report", '{"type":"report"}'],
    ["an empty update", '{"type":"update"}'],
  ])("%s", (_, text) => {
    expect(decodeClientFrame(text)).toMatchObject({ ok: true });
  });
});

describe("frames of a server", () => {
  const push = (members: object) => JSON.stringify({ type: "push", revision: 1, base: null, cause: [], ...members });

  it("ignores an unknown type and unknown members", () => {
    expect(decodeServerFrame('{"type":"hint","x":1}')).toEqual({ ok: true, frame: undefined });
    expect(decodeServerFrame('{"type":"left","x":1}')).toEqual({ ok: true, frame: { type: "left" } });
  });

  it.each([
    ["no JSON", "", /^not JSON$/],
    ["no base", JSON.stringify({ type: "push", revision: 1 }), /^push\.base: /],
    ["a revoke without stopMs", push({ revoke: [grant({})] }), /^push\.revoke\.0\.stopMs: is missing$/],
    [
      "another handoff",
      push({ tables: [{ table: "t", count: 1, created: 1, handoff: "x" }] }),
      /^push\.tables\.0\.handoff: /,
    ],
    [
      "too many partitions",
      push({ tables: [{ table: "t", count: 1_048_577, created: 1 }] }),
      /^push\.tables\.0\.count: /,
    ],
    [
      "a key of 257 characters",
      push({ keys: [{ table: "t", partition: 0, key: "k".repeat(257) }] }),
      /^push\.keys\.0\.key/,
    ],
    ["another cause", push({ cause: [{ kind: "whim" }] }), /^push\.cause\.0\.kind: /],
    [
      "a cause's executor",
      push({ cause: [{ kind: "join", executors: ["_"] }] }),
      /^push\.cause\.0\.executors\.0: must be an id/,
    ],
    ["a lease that is endless", '{"type":"lease","n":1,"durationMs":1e999,"renewMs":1}', /^lease\.durationMs: /],
    [
      "term 0",
      '{"type":"welcome","cluster":"c","incarnation":"i","term":0}',
      /^welcome\.term: must be an integer from 1/,
    ],
  ])("says what is wrong: %s", (_, text, reason) => {
    const decoded = decodeServerFrame(text);
    expect(decoded.ok ? "" : decoded.close.reason).toMatch(reason);
  });

  it("takes a key of 256 characters, and sentences longer than a client may send", () => {
    expect(decodeServerFrame(push({ keys: [{ table: "t", partition: 0, key: "k".repeat(256) }] })).ok).toBe(true);
    expect(decodeServerFrame(JSON.stringify({ type: "goaway", afterMs: 1, reason: "x".repeat(2_000) })).ok).toBe(true);
  });
});
