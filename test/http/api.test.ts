import { beforeEach, describe, expect, test } from "vitest";
import { createOpenAccess } from "../../src/auth/open-access.ts";
import type { SchedulerApi, Status } from "../../src/driver/ports.ts";
import { createApp } from "../../src/http/app.ts";
import { LARGE_BODY_BYTES, MAX_SELECTOR_PAIRS } from "../../src/http/limits.ts";
import type { TableRecord } from "../../src/model/change.ts";
import { EvenkeelError } from "../../src/model/errors.ts";
import { tableName } from "../../src/model/ids.ts";
import { MAX_PARTITIONS, PartitionSet } from "../../src/model/partition-set.ts";
import { MAX_KEY_CHARS } from "../../src/model/table-limits.ts";

const trips: TableRecord = {
  table: tableName("trips"),
  count: 9,
  created: 41,
  handoff: "exclusive",
  stopMs: 90_000,
  balance: "count",
  selector: {},
  origin: "api",
};

const status: Status = {
  cluster: "demo",
  incarnation: "inc",
  term: 1,
  role: "leader",
  revision: 42,
  state: "forming",
  converged: false,
  waitingFor: ["formation: 2.0 s left"],
  windows: [{ kind: "formation", closesInMs: 2_000 }],
  tables: [
    {
      table: trips.table,
      count: 9,
      owned: 0,
      releasing: 0,
      preparing: 0,
      unowned: [{ partitions: PartitionSet.upTo(9), reason: "forming" }],
    },
  ],
  executors: [],
  alarms: [],
};

/** A scheduler that keeps what it was asked, and answers or throws what a test says. */
class ScriptedApi implements SchedulerApi {
  readonly calls: unknown[] = [];
  isReady = true;
  records: readonly TableRecord[] = [trips];
  fault: Error | undefined;
  /** What a change waits for before it is answered. */
  held: Promise<void> | undefined;

  status(): Status {
    return this.#answer(status);
  }
  tables(): readonly TableRecord[] {
    return this.#answer(this.records);
  }
  ready(): boolean {
    return this.isReady;
  }
  revision(): number {
    return 42;
  }
  async putTable(...call: Parameters<SchedulerApi["putTable"]>) {
    // What was not said is not part of the call.
    this.calls.push(call.filter((argument) => argument !== undefined));
    await this.held;
    return this.#answer({ table: { ...call[0], created: 43, origin: call[1] }, revision: 43 });
  }
  async deleteTable(table: string, ifRevision?: number) {
    this.calls.push(ifRevision === undefined ? table : [table, ifRevision]);
    return this.#answer({ revision: 43 });
  }
  #answer<T>(value: T): T {
    if (this.fault !== undefined) throw this.fault;
    return value;
  }
}

/** Enough for the longest list of keys that a test sends. */
const MAX_BODY = 4_000_000;

let api: ScriptedApi;
let lines: string[];
let fetchApp: (request: Request) => Response | Promise<Response>;
let ask: (method: string, path: string, init?: { body?: unknown; headers?: Record<string, string> }) => Promise<Answer>;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

beforeEach(() => {
  api = new ScriptedApi();
  lines = [];
  const app = createApp({
    api,
    access: createOpenAccess({ boundToLoopback: true }),
    log: { log: (_level, event, fields) => void lines.push(`${event} ${JSON.stringify(fields)}`) },
    version: "1.2.3",
    sessionPath: "/v1/session",
    maxBodyBytes: MAX_BODY,
  });
  fetchApp = (request) => app.fetch(request);
  ask = async (method, path, { body, headers = {} } = {}) => {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const json = text === undefined ? {} : { "content-type": "application/json" };
    const url = `http://127.0.0.1:7420${path}`;
    const init = { method, headers: { host: "127.0.0.1:7420", ...json, ...headers } };
    const response = await fetchApp(new Request(url, text === undefined ? init : { ...init, body: text }));
    const answer = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (answer === "" ? {} : JSON.parse(answer)) as Record<string, unknown>,
    };
  };
});

async function expectProblem(answer: Promise<Answer>, status: number, code: string, detail?: RegExp): Promise<Answer> {
  const { headers, body, ...rest } = await answer;
  expect(body).toMatchObject({ status, code });
  expect(rest.status).toBe(status);
  expect(headers.get("content-type")).toBe("application/problem+json");
  if (detail !== undefined) expect(body["detail"]).toMatch(detail);
  return { headers, body, ...rest };
}

describe("health", () => {
  test("/livez answers while the loop turns, ready or not", async () => {
    api.isReady = false;
    expect((await ask("GET", "/livez")).status).toBe(200);
  });

  test("/readyz is 200 when sessions are taken, else 503 with Retry-After", async () => {
    expect((await ask("GET", "/readyz")).status).toBe(200);
    api.isReady = false;
    const { headers } = await expectProblem(ask("GET", "/readyz"), 503, "not-ready");
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });

  test("/version", async () => {
    expect((await ask("GET", "/version")).body).toEqual({ name: "evenkeel", version: "1.2.3" });
  });
});

describe("GET", () => {
  test("/v1/status has partition sets as text", async () => {
    const { body, headers } = await ask("GET", "/v1/status");
    const [table] = body["tables"] as { unowned: unknown }[];
    expect(table?.unowned).toEqual([{ partitions: "0-8", reason: "forming" }]);
    expect(body).toMatchObject({ state: "forming", revision: 42, windows: [{ kind: "formation", closesInMs: 2_000 }] });
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  const view = {
    name: "trips",
    count: 9,
    created: 41,
    handoff: "exclusive",
    stop: "90s",
    balance: "count",
    selector: {},
    origin: "api",
  };

  test("/v1/tables and one table, with the revision as ETag", async () => {
    const all = await ask("GET", "/v1/tables");
    expect(all.body).toEqual({ tables: [view], revision: 42 });
    const one = await ask("GET", "/v1/tables/trips");
    expect(one.body).toEqual({ table: view, revision: 42 });
    expect(one.headers.get("etag")).toBe('"42"');
  });

  test("keys in their order; a retired number has none; a table that is going says so", async () => {
    const retired = PartitionSet.parse("1");
    api.records = [{ ...trips, count: 3, keys: ["eu", "us", "asia"], retired, removing: true }];
    const { table } = (await ask("GET", "/v1/tables/trips")).body as { table: object };
    expect(table).toEqual({ ...view, count: 3, keys: ["eu", null, "asia"], removing: true });
  });

  test("an unknown table is 404, a name that cannot be one 400", async () => {
    await expectProblem(ask("GET", "/v1/tables/nope"), 404, "not-found", /nope/);
    await expectProblem(ask("GET", "/v1/tables/no%20spaces"), 400, "invalid", /name/);
    await expectProblem(ask("GET", `/v1/tables/${"x".repeat(129)}`), 400, "invalid");
    await expectProblem(ask("GET", "/v1/tables/%ff"), 400, "invalid");
  });

  test("HEAD is GET without a body", async () => {
    const { status: code, body } = await ask("HEAD", "/v1/status");
    expect([code, body]).toEqual([200, {}]);
  });
});

describe("PUT /v1/tables/NAME", () => {
  const put = (body: unknown, headers?: Record<string, string>, name = "trips") =>
    ask("PUT", `/v1/tables/${name}`, { body, ...(headers && { headers }) });

  test("partitions, with the defaults", async () => {
    const answer = await put({ partitions: 128 });
    const table = tableName("trips");
    const spec = { table, count: 128, handoff: "exclusive", stopMs: 30_000, balance: "count", selector: {} };
    expect(api.calls).toEqual([[spec, "api"]]);
    expect(answer.body).toEqual({
      table: {
        name: "trips",
        count: 128,
        created: 43,
        handoff: "exclusive",
        stop: "30s",
        balance: "count",
        selector: {},
        origin: "api",
      },
      revision: 43,
    });
  });

  test("keys, and stop as text or in milliseconds", async () => {
    await put({ keys: ["region=eu", "region=us"], stop: "5m" });
    await put({ keys: ["a"], stop: 250 });
    expect(api.calls).toMatchObject([
      [{ count: 2, keys: ["region=eu", "region=us"], stopMs: 300_000 }, "api"],
      [{ count: 1, keys: ["a"], stopMs: 250 }, "api"],
    ]);
  });

  test.each<[string, unknown, RegExp]>([
    ["neither partitions nor keys", {}, /one of/],
    ["both", { partitions: 1, keys: ["a"] }, /one of/],
    ["no object", [], /object/],
    ["null", null, /object/],
    ["an unknown member", { partitions: 1, partition: 2 }, /"partition".*not known/],
    ["a count of 0", { partitions: 0 }, /^partitions must/],
    ["a count that is no whole number", { partitions: 1.5 }, /^partitions must/],
    ["a count in text", { partitions: "9" }, /^partitions must/],
    ["one partition too many", { partitions: MAX_PARTITIONS + 1 }, /1048576/],
    ["no keys", { keys: [] }, /^keys must be 1 to/],
    ["one key too many", { keys: Array.from({ length: MAX_PARTITIONS + 1 }, () => 0) }, /^keys must be 1 to/],
    ["a key that is no text", { keys: ["a", 1] }, /^keys\.1 must/],
    ["an empty key", { keys: [""] }, /^keys\.0 must/],
    ["a key twice", { keys: ["a", "b", "a"] }, /^keys\.2 is the same/],
    ["a key one character too long", { keys: ["x".repeat(MAX_KEY_CHARS + 1)] }, /256/],
    ["a key with half a surrogate pair", { keys: ["\ud800"] }, /well-formed/],
    ["a bad duration", { partitions: 1, stop: "soon" }, /^stop must be a duration/],
    ["a duration past a timer", { partitions: 1, stop: "25d" }, /^stop/],
    ["an unknown handoff", { partitions: 1, handoff: "shared" }, /"exclusive" or "overlap"/],
    ["an unknown balance", { partitions: 1, balance: "luck" }, /"count" or "load"/],
    ["a selector that is a list", { partitions: 1, selector: ["a"] }, /^selector must be an object/],
    ["a selector with a value that is no text", { partitions: 1, selector: { pool: 1 } }, /^selector\.pool must/],
    ["a selector with a bad name", { partitions: 1, selector: { "no spaces": "x" } }, /ids as names/],
    ["a selector with a name that is lost", '{"partitions":1,"selector":{"__proto__":"x"}}', /^selector.*ids as names/],
    ["an unknown member with such a name", '{"partitions":1,"__proto__":"x"}', /"__proto__" is not known/],
    [
      "a selector with one pair too many",
      {
        partitions: 1,
        selector: Object.fromEntries(Array.from({ length: MAX_SELECTOR_PAIRS + 1 }, (_, i) => [`k${i}`, ""])),
      },
      /at most 32/,
    ],
  ])("400 says which member and why: %s", async (_name, body, detail) => {
    await expectProblem(put(body), 400, "invalid", detail);
    expect(api.calls).toEqual([]);
  });

  test("400: no JSON, and a name that cannot be one", async () => {
    await expectProblem(put("{partitions: 1}"), 400, "invalid", /JSON/);
    await expectProblem(put(""), 400, "invalid", /JSON/);
    await expectProblem(put({ partitions: 1 }, {}, "no%2Fslash"), 400, "invalid", /name/);
  });

  test("the largest key and the most partitions are taken", async () => {
    await put({ keys: ["é".repeat(MAX_KEY_CHARS)] });
    await put({ partitions: MAX_PARTITIONS });
    expect(api.calls).toHaveLength(2);
  });

  test.each([
    ["handoff", { partitions: 1, handoff: "overlap" }],
    ["balance", { partitions: 1, balance: "load" }],
    ["selector", { partitions: 1, selector: { pool: "fast" } }],
  ])("501: %s is not supported yet, and says so", async (member, body) => {
    await expectProblem(put(body), 501, "not-supported", new RegExp(`^${member}: .*not supported yet`));
    expect(api.calls).toEqual([]);
  });

  test.each(["table-fixed", "table-removing", "conflict", "store-unavailable"] as const)(
    "a refusal of the scheduler comes through: %s",
    async (code) => {
      api.fault = new EvenkeelError(code, "because", "do this");
      const { body, status: got } = await put({ partitions: 1 });
      expect(body).toMatchObject({ code, detail: "because", hint: "do this" });
      expect(got).toBe(code === "store-unavailable" ? 503 : 409);
    },
  );

  test("415: anything but application/json", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]) {
      await expectProblem(put({ partitions: 1 }, { "content-type": type }), 415, "unsupported-media-type");
    }
    await expectProblem(ask("PUT", "/v1/tables/trips"), 415, "unsupported-media-type");
    expect((await put({ partitions: 1 }, { "content-type": "Application/JSON; charset=utf-8" })).status).toBe(200);
  });

  test("413: a body one byte too large, with its length told or not", async () => {
    const bare = JSON.stringify({ partitions: 1 });
    expect((await put(bare.padEnd(MAX_BODY))).status).toBe(200);
    await expectProblem(put(bare.padEnd(MAX_BODY + 1)), 413, "too-large");
    await expectProblem(put(bare.padEnd(MAX_BODY + 1), { "content-length": `${MAX_BODY + 1}` }), 413, "too-large");
    expect(api.calls).toHaveLength(1);
  });

  test("what is cheap to see is judged before the body is read", async () => {
    const pulled: string[] = [];
    const refusedUnread = async (name: string, headers: Record<string, string>, path: string, code: string) => {
      const body = new ReadableStream({ pull: () => void pulled.push(name) }, { highWaterMark: 0 });
      const response = await fetchApp(
        new Request(`http://127.0.0.1:7420${path}`, {
          method: "PUT",
          headers: { host: "127.0.0.1:7420", "content-type": "application/json", ...headers },
          body,
          duplex: "half",
        } as RequestInit),
      );
      expect(await response.json()).toMatchObject({ code });
    };
    await refusedUnread("host", { host: "evil.example" }, "/v1/tables/a", "forbidden");
    await refusedUnread("type", { "content-type": "text/plain" }, "/v1/tables/a", "unsupported-media-type");
    await refusedUnread("name", {}, "/v1/tables/a%20b", "invalid");
    await refusedUnread("match", { "if-match": "latest" }, "/v1/tables/a", "invalid");
    await refusedUnread("length", { "content-length": `${MAX_BODY + 1}` }, "/v1/tables/a", "too-large");
    await refusedUnread("path", {}, "/v1/table", "not-found");
    expect(pulled).toEqual([]);
  });

  test("503: a large body while another one is handled, until that is answered; small ones go on", async () => {
    const large = JSON.stringify({ partitions: 1 }).padEnd(LARGE_BODY_BYTES + 1);
    let answerAll = (): void => {};
    api.held = new Promise((resolve) => {
      answerAll = resolve;
    });
    const first = put(large);
    await expect.poll(() => api.calls.length).toBe(1);
    const { headers } = await expectProblem(put(large), 503, "not-ready", /large body/);
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    const atTheLimit = put(large.slice(0, LARGE_BODY_BYTES));
    await expect.poll(() => api.calls.length).toBe(2);
    answerAll();
    expect([(await first).status, (await atTheLimit).status]).toEqual([200, 200]);
    expect((await put(large)).status).toBe(200);
    await expectProblem(put("x".repeat(LARGE_BODY_BYTES + 1)), 400, "invalid");
    expect((await put(large)).status).toBe(200);
  });

  test("If-Match is handed on as the revision that the decision must rest on; 412 if it does not", async () => {
    await expectProblem(put({ partitions: 1 }, { "if-match": "latest" }), 400, "invalid", /If-Match/);
    expect(api.calls).toEqual([]);
    for (const match of ['"42"', "42"]) expect((await put({ partitions: 1 }, { "if-match": match })).status).toBe(200);
    expect(api.calls).toMatchObject([{ 2: 42 }, { 2: 42 }]);
    api.fault = new EvenkeelError("revision-mismatch", "the revision is 43");
    await expectProblem(put({ partitions: 1 }, { "if-match": "42" }), 412, "revision-mismatch", /43/);
  });
});

describe("DELETE /v1/tables/NAME", () => {
  test("is answered with the revision of the commit; a bare one needs no type", async () => {
    expect((await ask("DELETE", "/v1/tables/trips")).body).toEqual({ revision: 43 });
    const json = { "content-type": "application/json" };
    expect((await ask("DELETE", "/v1/tables/trips", { headers: json })).status).toBe(200);
    expect(api.calls).toEqual(["trips", "trips"]);
  });

  test("with a type that is not JSON or for an unknown table is refused; If-Match is handed on", async () => {
    const text = { "content-type": "text/plain" };
    await expectProblem(ask("DELETE", "/v1/tables/trips", { headers: text }), 415, "unsupported-media-type");
    expect(api.calls).toEqual([]);
    await ask("DELETE", "/v1/tables/trips", { headers: { "if-match": "1" } });
    expect(api.calls).toEqual([["trips", 1]]);
    api.fault = new EvenkeelError("not-found", "there is no table trips");
    await expectProblem(ask("DELETE", "/v1/tables/trips"), 404, "not-found");
  });
});

describe("everything else", () => {
  test("404 for an unknown path, 405 with Allow for an unknown method", async () => {
    for (const path of ["/", "/v1", "/v1/nothing", "/v1/tables/a/b", "/metrics"]) {
      await expectProblem(ask("GET", path), 404, "not-found");
    }
    const { headers } = await expectProblem(ask("POST", "/v1/status", { body: {} }), 405, "method-not-allowed");
    expect(headers.get("allow")).toBe("GET");
    await expectProblem(ask("PURGE", "/v1/status"), 405, "method-not-allowed");
    await expectProblem(ask("POST", "/v1/nothing"), 404, "not-found");
    const tables = await expectProblem(ask("PATCH", "/v1/tables/trips", { body: {} }), 405, "method-not-allowed");
    expect(tables.headers.get("allow")).toBe("GET, PUT, DELETE");
  });

  test("426 for the session's path without an upgrade", async () => {
    const { headers } = await expectProblem(ask("GET", "/v1/session"), 426, "upgrade-required");
    expect(headers.get("upgrade")).toBe("websocket");
  });

  test("403 for an Origin that is not this server; the own one goes on", async () => {
    for (const origin of ["http://evil.example", "null", "http://localhost:7420"]) {
      await expectProblem(ask("GET", "/v1/status", { headers: { origin } }), 403, "forbidden");
      await expectProblem(ask("DELETE", "/v1/tables/trips", { headers: { origin } }), 403, "forbidden");
    }
    expect(api.calls).toEqual([]);
    const own = { origin: "http://127.0.0.1:7420" };
    expect((await ask("GET", "/v1/status", { headers: own })).status).toBe(200);
  });

  test("403 for a Host that is not this machine, with an Origin of it or without", async () => {
    for (const host of ["evil.example", "evil.example:7420"]) {
      await expectProblem(ask("GET", "/v1/status", { headers: { host } }), 403, "forbidden");
      await expectProblem(ask("DELETE", "/v1/tables/trips", { headers: { host } }), 403, "forbidden");
      const headers = { host, origin: `http://${host}` };
      await expectProblem(ask("GET", "/v1/status", { headers }), 403, "forbidden");
    }
    expect(api.calls).toEqual([]);
    expect((await ask("GET", "/v1/status", { headers: { host: "localhost:9999" } })).status).toBe(200);
  });

  test("400 for a token in the URL, which goes nowhere", async () => {
    const { body } = await expectProblem(ask("GET", "/v1/status?token=s3cret"), 400, "invalid");
    expect(JSON.stringify([body, lines])).not.toContain("s3cret");
  });

  test("503 while there is nothing to tell", async () => {
    api.fault = new EvenkeelError("not-ready", "the scheduler does not lead yet");
    for (const path of ["/v1/status", "/v1/tables"]) await expectProblem(ask("GET", path), 503, "not-ready");
  });

  test("500 for a fault of ours: the log says what, the answer does not", async () => {
    api.fault = new TypeError("secret of the house");
    const { body } = await expectProblem(ask("GET", "/v1/status"), 500, "internal");
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(lines.join()).toContain("secret of the house");
  });
});
