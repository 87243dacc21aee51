import { beforeEach, describe, expect, test } from "vitest";
import { LineHandlers } from "../../src/cli/lines/line-handlers.ts";
import { LineWriter } from "../../src/cli/lines/line-writer.ts";
import type { PartitionGrant } from "../../src/client/executor.ts";

let written: string[];
let notes: string[];
let givenUp: string[];
let writer: LineWriter;
let handlers: LineHandlers;

function begin(auto = false): void {
  [written, notes, givenUp] = [[], [], []];
  writer = new LineWriter((text) => written.push(text));
  handlers = new LineHandlers({
    writer,
    auto,
    note: (line) => notes.push(line),
    giveUp: ({ partition }, error) => givenUp.push(`${partition}: ${error.message} (${error.retryable})`),
  });
}
beforeEach(() => begin());

/** The lines so far, in short. */
function lines(): readonly string[] {
  writer.flush();
  return written.map((text) => {
    const { type, partitions, epoch, stopMs, reason } = JSON.parse(text) as Record<string, unknown>;
    return type === "stop"
      ? `stop ${reason}`
      : `${type} ${partitions}@${epoch}${stopMs === undefined ? "" : ` ${stopMs}`}`;
  });
}

interface Held {
  readonly grant: PartitionGrant;
  readonly abort: AbortController;
  readonly load: Promise<void>;
}

function grant(partition: number, epoch = 5): Held {
  const abort = new AbortController();
  const grant = { table: "trips", partition, epoch, signal: abort.signal };
  return { grant, abort, load: handlers.onGrant(grant) };
}

function say(type: string, partitions: string, more: object = {}): void {
  handlers.hear(JSON.stringify({ type, table: "trips", partitions, epoch: 5, ...more }));
}

function outcome(promise: Promise<void> | undefined): Promise<string> {
  const pending = new Promise<string>((resolve) => setImmediate(() => resolve("pending")));
  const settled = Promise.resolve(promise).then(
    () => "resolved",
    (error: Error) => error.message,
  );
  return Promise.race([settled, pending]);
}

describe("lines", () => {
  test("gather what comes shortly after one another, by table and epoch", async () => {
    for (const partition of [3, 1, 2]) grant(partition);
    grant(7, 6);
    expect(written).toEqual([]);
    await expect.poll(lines).toEqual(["grant 1-3@5", "grant 7@6"]);
  });

  test("keep a revoke behind the grant that it ends, and the shortest stop", () => {
    const [first, second] = [grant(0), grant(1)];
    writer.flush();
    handlers.onRevoke(first.grant, { reason: "revoked", stopMs: 900 });
    const third = grant(2);
    handlers.onRevoke(third.grant, { reason: "revoked", stopMs: 800 });
    handlers.onRevoke(second.grant, { reason: "dropped", stopMs: 0 });
    expect(lines()).toEqual(["grant 0-1@5", "revoke 0@5 900", "grant 2@5", "revoke 1-2@5 0"]);
  });

  test("say once that everything stops, after what was granted before it, and only if something was", () => {
    writer.stop("lapsed");
    const held = [grant(0), grant(1)];
    for (const { grant } of held) handlers.onRevoke(grant, { reason: "ended", stopMs: 0 });
    grant(0, 6);
    expect(lines()).toEqual(["grant 0-1@5", "stop lapsed", "grant 0@6"]);
  });
});

describe("answers", () => {
  test("ready ends the load of exactly those partitions", async () => {
    const [first, second] = [grant(0), grant(1)];
    say("ready", "0");
    expect(await outcome(first.load)).toBe("resolved");
    expect(await outcome(second.load)).toBe("pending");
  });

  test("failed is a failure while it loads, and a giving up afterwards", async () => {
    const [first, second] = [grant(0), grant(1)];
    say("failed", "0", { reason: "disk full", retryable: false });
    expect(await outcome(first.load)).toBe("disk full");
    say("ready", "1");
    say("failed", "1");
    expect(await outcome(second.load)).toBe("resolved");
    expect(givenUp).toEqual(["1: the program said failed (true)"]);
  });

  test("released ends the unload, once it was asked for", async () => {
    const { grant: granted } = grant(0);
    say("ready", "0");
    say("released", "0");
    expect(notes).toEqual([expect.stringMatching(/^line 2 .* 1 of trips 0 under epoch 5 was not asked back/)]);
    const unload = handlers.onRevoke(granted, { reason: "revoked", stopMs: 900 });
    expect(await outcome(unload)).toBe("pending");
    say("released", "0");
    expect(await outcome(unload)).toBe("resolved");
    say("released", "0");
    expect(notes.at(-1)).toMatch(/^line 4 .* is not held, or no longer/);
  });

  test("a partition that is asked back while it loads is asked back like any other", async () => {
    const { grant: granted, abort, load } = grant(0);
    abort.abort();
    expect(await outcome(load)).toBe("resolved");
    const unload = handlers.onRevoke(granted, { reason: "revoked", stopMs: 900 });
    expect(lines()).toEqual(["grant 0@5", "revoke 0@5 900"]);
    say("ready", "0");
    expect(await outcome(unload)).toBe("pending");
    say("released", "0");
    expect(await outcome(unload)).toBe("resolved");
    expect(notes).toEqual([]);
  });

  test("after a stop nothing is waited for", async () => {
    const { grant: granted } = grant(0);
    expect(await outcome(handlers.onRevoke(granted, { reason: "lapsed", stopMs: 0 }))).toBe("resolved");
  });

  test("members that are not known are ignored; empty lines are no lines", () => {
    grant(0);
    handlers.hear("");
    say("ready", "0", { since: 1 });
    expect(notes).toEqual([]);
  });

  test("are given by itself where that is wanted", async () => {
    begin(true);
    const { grant: granted, load } = grant(0);
    expect(await outcome(load)).toBe("resolved");
    expect(await outcome(handlers.onRevoke(granted, { reason: "revoked", stopMs: 900 }))).toBe("resolved");
    expect(lines()).toEqual(["grant 0@5", "revoke 0@5 900"]);
  });
});
