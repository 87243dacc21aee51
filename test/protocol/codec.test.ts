import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HelloReceived, ReportReceived } from "../../src/core/events.ts";
import { executorId, instanceId, sessionId } from "../../src/model/ids.ts";
import { decodeClientFrame, decodeServerFrame, encodeFrame } from "../../src/protocol/codec.ts";
import { type ClientFrame, clientFrame, type ExecutorHelloFrame } from "../../src/protocol/frames.ts";
import { anyFailures, anyGrants, anyId, anyLoads, anyPush, anyText } from "./values.ts";

function decode(text: string): ClientFrame {
  const decoded = decodeClientFrame(text);
  if (!decoded.ok) throw new Error(decoded.close.reason);
  return decoded.frame;
}

const anyInteger = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 20 }), fc.constantFrom(2 ** 53 - 1, 10 ** 15, 10 ** 15 - 1));
const anyRecord = <T extends object>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }, requiredKeys: (keyof T)[]) =>
  fc.record(members, { requiredKeys, noNullPrototype: true });

const anyClientFrame = fc.oneof(
  anyRecord(
    {
      type: fc.constant("hello"),
      role: fc.constant("executor"),
      executor: anyId,
      instance: anyId,
      attempt: anyInteger,
      stamp: anyText,
      resume: fc.record({ incarnation: anyId, revision: anyInteger }),
      address: anyText,
      zone: anyId,
      slot: anyId,
      labels: fc.dictionary(fc.oneof(anyId, fc.constantFrom("constructor", "toString")), anyText, { maxKeys: 32 }),
      weight: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
      capacity: anyInteger,
    },
    ["type", "role", "executor", "instance", "attempt"],
  ),
  anyRecord(
    { type: fc.constant("report"), ready: anyGrants, released: anyGrants, failed: anyFailures, load: anyLoads },
    ["type"],
  ),
  anyRecord({ type: fc.constant("update"), labels: fc.dictionary(anyId, anyText), capacity: anyInteger }, ["type"]),
  fc.record({ type: fc.constant("leave"), mode: fc.constantFrom("move", "restart") }),
  fc.record({ type: fc.constant("ack"), revision: anyInteger }),
);

describe("decoding and encoding", () => {
  it("gives every client frame back, defaults and dropped lists apart", () => {
    fc.assert(
      fc.property(anyClientFrame, (written) => {
        const frame = decode(JSON.stringify(written));
        expect(decode(encodeFrame(frame))).toEqual(frame);
        expect(JSON.parse(JSON.stringify(frame))).toMatchObject(JSON.parse(JSON.stringify(written)));
      }),
    );
  });

  it("gives every push back", () => {
    fc.assert(
      fc.property(anyPush, (push) => {
        const decoded = decodeServerFrame(encodeFrame({ type: "push", ...push }));
        const given = decoded.ok && decoded.frame && JSON.stringify(decoded.frame);
        expect(JSON.parse(given || "null")).toEqual(JSON.parse(JSON.stringify({ type: "push", ...push })));
      }),
    );
  });

  it("never throws, whatever a peer sends", () => {
    const anyTextAtAll = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json(),
      fc
        .tuple(
          fc.constantFrom("hello", "renew", "ack", "report", "update", "leave"),
          fc.dictionary(anyText, fc.jsonValue()),
        )
        .map(([type, members]) => JSON.stringify({ role: "executor", ...members, type })),
    );
    fc.assert(
      fc.property(anyTextAtAll, (text) => {
        expect(typeof decodeClientFrame(text).ok).toBe("boolean");
        expect(typeof decodeServerFrame(text).ok).toBe("boolean");
      }),
    );
  });

  it("reads ack and renew by hand exactly as their schemas do, however they are written", () => {
    const anyDigits = fc.oneof(
      anyInteger.map(String),
      fc.string({ unit: fc.constantFrom(..."0123456789-+.e} "), maxLength: 18 }),
      fc.bigInt({ min: 0n, max: 10n ** 20n }).map(String),
    );
    const anyEnd = fc.constantFrom("}", "", "}}", ',"x":1}', " }", "} ", ',"revision":7,"n":7}');
    const anyStart = fc.constantFrom('{"type":"ack","revision":', '{"type":"renew","n":', '{ "type":"ack","revision":');
    fc.assert(
      fc.property(anyStart, anyDigits, anyEnd, (start, digits, end) => {
        const text = start + digits + end;
        const decoded = decodeClientFrame(text);
        expect(decoded.ok ? decoded.frame : "breach").toEqual(bySchema(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

function bySchema(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "breach";
  }
  const result = clientFrame.safeParse(value);
  return result.success ? result.data : "breach";
}

describe("what a decoded frame holds", () => {
  const HELLO = '{"type":"hello","role":"executor","executor":"a","instance":"i","attempt":1';

  it("weight is 1 unless said, retryable is true, lists of a report are empty", () => {
    expect(decode(`${HELLO}}`)).toEqual({
      type: "hello",
      role: "executor",
      executor: "a",
      instance: "i",
      attempt: 1,
      weight: 1,
    });
    const failed = '[{"table":"t","partitions":"0","epoch":1,"reason":"x"}]';
    expect(decode(`{"type":"report","failed":${failed}}`)).toMatchObject({
      ready: [],
      released: [],
      failed: [{ reason: "x", retryable: true }],
      load: [],
    });
  });

  it("an update says nothing of what it does not name", () => {
    expect(decode('{"type":"update","capacity":3}')).toEqual({ type: "update", capacity: 3 });
  });

  it("labels inherit nothing", () => {
    const frame = decode(`${HELLO},"labels":{"valueOf":"x"}}`) as ExecutorHelloFrame;
    expect(frame.labels?.["valueOf"]).toBe("x");
    expect(frame.labels?.["constructor"]).toBeUndefined();
    expect(Object.getPrototypeOf(frame.labels)).toBeNull();
  });

  it("unknown members do not come through", () => {
    const frame = decode(`${HELLO},"__proto__":{"zone":"z"},"admin":true}`);
    expect(Object.keys(frame)).toEqual(["type", "role", "executor", "instance", "attempt", "weight"]);
    expect("zone" in frame).toBe(false);
  });

  it("fits the core's events without a cast", () => {
    const hello = decode(`${HELLO},"resume":{"incarnation":"x","revision":4}}`);
    const report = decode('{"type":"report","ready":[{"table":"t","partitions":"0-1","epoch":1}]}');
    if (hello.type !== "hello" || hello.role !== "executor" || report.type !== "report")
      throw new Error("another frame");
    const session = sessionId("s");
    const helloReceived: HelloReceived = { ...hello, type: "hello.received", session };
    const reportReceived: ReportReceived = { ...report, type: "report.received", session };
    expect(helloReceived.executor).toBe(executorId("a"));
    expect(helloReceived.instance).toBe(instanceId("i"));
    expect(reportReceived.ready[0]?.partitions.size).toBe(2);
  });
});
