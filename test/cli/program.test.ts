import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../src/cli/program.ts";
import type { Status } from "../../src/client/admin.ts";
import { executorId, instanceId, tableName } from "../../src/model/ids.ts";

let folder: string;
let server: Server | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-cli-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  const closing = server;
  server = undefined;
  closing?.closeAllConnections();
  if (closing !== undefined) await new Promise((resolve) => closing.close(resolve));
});

interface Result {
  readonly exit: number;
  readonly out: string;
  /** Lines of standard error. */
  readonly notes: readonly string[];
}

async function evenkeel(args: string, environment: Record<string, string> = {}): Promise<Result> {
  let out = "";
  const notes: string[] = [];
  const context = {
    out: (text: string) => {
      out += text;
    },
    note: (line: string) => void notes.push(...line.split("\n")),
    environment,
    folder,
  };
  const exit = await run(args.split(" ").filter(Boolean), context);
  return { exit, out, notes };
}

/** A scheduler that answers each request with what the function gives for it. */
async function answering(
  answer: (request: string) => { readonly status?: number; readonly body: unknown },
): Promise<string> {
  const listening = createServer((request, response) => {
    const { status = 200, body } = answer(`${request.method} ${request.url}`);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
}

const STATUS: Status = {
  cluster: "demo",
  incarnation: "i1",
  term: 1,
  role: "leader",
  revision: 42,
  state: "working",
  converged: false,
  waitingFor: ["b to release 4 partitions"],
  windows: [{ kind: "join", closesInMs: 1_400 }],
  tables: [
    {
      table: tableName("trips"),
      count: 12,
      owned: 6,
      releasing: 4,
      preparing: 0,
      unowned: [{ partitions: "0-1", reason: "reserved", to: executorId("b") }],
    },
  ],
  executors: [
    {
      executor: executorId("a"),
      instance: instanceId("a1"),
      state: "live",
      cordoned: false,
      connected: false,
      suspect: true,
      owned: 6,
      ready: 5,
      leaseLeftMs: 12_340,
      acked: null,
      unacked: { revision: 42, sinceMs: 300 },
    },
  ],
  alarms: [{ code: "held", text: "nothing \u001b[31mmoves" }],
};

describe("a command line that is not understood", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["statsu", "evenkeel: unknown command 'statsu' (Did you mean status?); see evenkeel --help"],
    ["status --ulr x", "evenkeel: unknown option '--ulr' (Did you mean --url?); see evenkeel status --help"],
    ["tables creat a", "(Did you mean create?); see evenkeel tables --help"],
    ["status --url ftp://x", "evenkeel: option '--url <url>' argument 'ftp://x' is invalid. Write an address"],
    ["status -o xml", "Allowed choices are table, wide, json, jsonl, yaml"],
    ["status --timeout soon", "argument 'soon' is invalid. Write a duration"],
    ["status extra", "too many arguments"],
    ["wait --for ever", "Allowed choices are converged; see evenkeel wait --help"],
    ["tables create", "missing required argument 'name'; see evenkeel tables create --help"],
    ["tables create a", "evenkeel: say either --partitions N or --keys a,b; see evenkeel tables create --help"],
    ["tables create a --partitions 1 --keys b", "evenkeel: say either --partitions N or --keys a,b"],
    ["tables create a --partitions 0", "Write a whole number, 1 or more"],
    ["tables create a --partitions 1 --selector x", "Write LABEL=VALUE"],
    ["serve --lease-renew 8s", "lease.renew 8s (--lease-renew) is more than (duration 15s (default)"],
    ["config check nowhere.yaml", "nowhere.yaml cannot be read"],
  ];
  test.each(cases)("%s: exit 2, one message, nothing on standard output", async (args, message) => {
    const { exit, out, notes } = await evenkeel(args);
    expect(exit).toBe(2);
    expect(out).toBe("");
    expect(notes.join("\n")).toContain(message);
  });

  test("no command at all shows what there is", async () => {
    const { exit, notes } = await evenkeel("");
    expect(exit).toBe(2);
    expect(notes.join("\n")).toMatch(/Usage: evenkeel[\s\S]*serve[\s\S]*status/);
  });

  test("help and version are data, and no failure", async () => {
    expect(await evenkeel("--version")).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      notes: [],
    });
    expect(await evenkeel("status --help")).toMatchObject({
      exit: 0,
      out: expect.stringContaining("--timeout"),
      notes: [],
    });
  });

  test.each(["drain a --reason b", "tables apply f.yaml", "plan --world -", "leader"])(
    "%s: known, not supported yet, exit 5",
    async (args) => {
      const { exit, notes } = await evenkeel(args);
      expect(exit).toBe(5);
      expect(notes).toEqual([expect.stringContaining("is not supported yet")]);
    },
  );
});

describe("status", () => {
  test("for people: the reasons first, then tables and executors", async () => {
    const url = await answering(() => ({ body: STATUS }));
    const { exit, out } = await evenkeel(`status --url ${url}`);
    expect(exit).toBe(0);
    expect(out).toBe(`CLUSTER  STATE    REVISION  TERM  ROLE
demo     working        42     1  leader

ALARM held: nothing \\u001b[31mmoves
waiting for: b to release 4 partitions
window: join, closes in 1.4s

TABLE  COUNT  OWNED  RELEASING  PREPARING  UNOWNED
trips     12      6          4          0  0-1 reserved for b

EXECUTOR  STATE                        OWNED  READY  LEASE  ACKED  UN-ACKED
a         live, suspect, disconnected      6      5  12.3s      -  42 for 0.3s
`);
  });

  test("for programs: what the scheduler said, unchanged", async () => {
    const url = await answering(() => ({ body: STATUS }));
    expect(JSON.parse((await evenkeel(`status -o json --url ${url}`)).out)).toEqual(STATUS);
    expect(parse((await evenkeel(`status -o yaml --url ${url}`)).out)).toEqual(STATUS);
    const lines = (await evenkeel(`status -o jsonl --url ${url}`)).out.split("\n");
    expect(lines).toHaveLength(2);
    expect(JSON.parse(lines[0] ?? "")).toEqual(STATUS);
  });

  test("the address comes from EVENKEEL_URL, and a flag wins over it", async () => {
    const url = await answering(() => ({ body: STATUS }));
    process.env["EVENKEEL_URL"] = "http://127.0.0.1:1";
    try {
      expect((await evenkeel("status")).exit).toBe(3);
      expect((await evenkeel(`status --url ${url}`)).exit).toBe(0);
    } finally {
      delete process.env["EVENKEEL_URL"];
    }
  });
});

describe("exit codes", () => {
  test("3 and a hint when nobody answers", async () => {
    const { exit, out, notes } = await evenkeel("status --url http://127.0.0.1:1");
    expect({ exit, out }).toEqual({ exit: 3, out: "" });
    expect(notes).toEqual([
      expect.stringMatching(/^evenkeel: cannot reach a scheduler at .*; start one with evenkeel serve/),
    ]);
  });

  const refusals: readonly (readonly [number, string, number])[] = [
    [400, "invalid", 2],
    [401, "unauthenticated", 5],
    [403, "forbidden", 5],
    [404, "not-found", 4],
    [409, "table-fixed", 6],
    [412, "revision-mismatch", 6],
    [503, "not-ready", 7],
  ];
  test.each(refusals)("%i %s ends with %i, the detail and the hint", async (status, code, exit) => {
    const url = await answering(() => ({
      status,
      body: { code, detail: "what was \u001b wrong", hint: "what to do" },
    }));
    expect(await evenkeel(`tables create a --partitions 1 --url ${url}`)).toEqual({
      exit,
      out: "",
      notes: ["evenkeel: what was \\u001b wrong; what to do"],
    });
  });
});

describe("wait --for converged", () => {
  test("asks until it is so", async () => {
    let asked = 0;
    const url = await answering(() => {
      asked++;
      if (asked === 1) return { status: 503, body: { code: "not-ready", detail: "starting" } };
      return { body: asked < 4 ? STATUS : { ...STATUS, state: "converged", converged: true, waitingFor: [] } };
    });
    const { exit, out, notes } = await evenkeel(`wait --timeout 10s -o json --url ${url}`);
    expect({ exit, notes, asked }).toEqual({ exit: 0, notes: [], asked: 4 });
    expect(JSON.parse(out)).toMatchObject({ converged: true });
  });

  test("at its deadline says why not, and ends with 1", async () => {
    const url = await answering(() => ({ body: STATUS }));
    expect(await evenkeel(`wait --for converged --timeout 100ms --url ${url}`)).toEqual({
      exit: 1,
      out: "",
      notes: ["evenkeel: not converged in time: the scheduler is working: b to release 4 partitions"],
    });
  });

  test("with nobody to ask ends with 3, at its deadline", async () => {
    expect((await evenkeel("wait --for converged --timeout 100ms --url http://127.0.0.1:1")).exit).toBe(3);
  });

  test("what waiting will not change ends it at once", async () => {
    let asked = 0;
    const url = await answering(() => {
      asked++;
      return { status: 401, body: { code: "unauthenticated", detail: "no token" } };
    });
    expect((await evenkeel(`wait --for converged --timeout 10s --url ${url}`)).exit).toBe(5);
    expect(asked).toBe(1);
  });
});

describe("tables", () => {
  const table = {
    name: "events",
    count: 2,
    created: 7,
    handoff: "exclusive",
    stop: "30s",
    balance: "count",
    selector: {},
    keys: ["eu", "us"],
    origin: "api",
  };

  test("create prints what was made", async () => {
    const url = await answering(() => ({ body: { table, revision: 8 } }));
    const { exit, out } = await evenkeel(`tables create events --keys eu --keys us --stop 30s --url ${url} -o wide`);
    expect(exit).toBe(0);
    expect(out).toBe(`TABLE   COUNT  HANDOFF    STOP  BALANCE  ORIGIN  STATE    CREATED  KEYS
events      2  exclusive  30s   count    api     present        7  eu,us
`);
  });

  test("list counts the partitions that there are, as status does: removed keys apart", async () => {
    const url = await answering(() => ({ body: { tables: [{ ...table, count: 3, keys: ["eu", null, "us"] }] } }));
    const { out } = await evenkeel(`tables list -o wide --url ${url}`);
    expect(out).toMatch(/^events +2 .* eu,\(retired\),us$/m);
    expect(JSON.parse((await evenkeel(`tables list -o json --url ${url}`)).out)).toMatchObject({
      tables: [{ count: 3 }],
    });
  });

  test("list gives a line for each as jsonl", async () => {
    const url = await answering(() => ({ body: { tables: [table, { ...table, name: "trips" }] } }));
    const lines = (await evenkeel(`tables list -o jsonl --url ${url}`)).out.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual(["events", "trips"]);
  });

  test("none is said, and is no failure", async () => {
    const url = await answering(() => ({ body: { tables: [] } }));
    expect(await evenkeel(`tables list --url ${url}`)).toEqual({ exit: 0, out: "", notes: ["there are no tables"] });
  });

  test("delete asks for exactly that table", async () => {
    const asked: string[] = [];
    const url = await answering((request) => {
      asked.push(request);
      return { body: { revision: 9 } };
    });
    expect(await evenkeel(`tables delete a:b --url ${url}`)).toMatchObject({
      exit: 0,
      out: "a:b is deleted at revision 9\n",
    });
    expect(asked).toEqual(["DELETE /v1/tables/a%3Ab"]);
  });
});

describe("config", () => {
  test("print shows every value with its source", async () => {
    writeFileSync(join(folder, "evenkeel.yaml"), "lease:\n  renew: 3s\ntables: [{ name: trips, partitions: 8 }]\n");
    const { exit, out, notes } = await evenkeel("config print --cluster here", { EVENKEEL_LOSS__WAIT: "20s" });
    expect(exit).toBe(0);
    expect(out).toMatch(/^cluster +here +--cluster$/m);
    expect(out).toMatch(/^lease\.renew +3s +evenkeel\.yaml:2$/m);
    expect(out).toMatch(/^loss\.wait +20s +EVENKEEL_LOSS__WAIT$/m);
    expect(out).toMatch(/^lease\.duration +15s +default$/m);
    expect(out).toMatch(/^trips +8 +exclusive +30s +count$/m);
    expect(notes).toEqual([]);
    const inMemory = await evenkeel("config print --store memory:");
    expect(inMemory.notes).toEqual([expect.stringContaining("warning: store memory:")]);
  });

  test("keys without effect are marked, in what it prints and in the help of serve", async () => {
    const { out } = await evenkeel("config print --store memory:");
    expect(out).toMatch(/^breaker\.share +0\.5 +default \(no effect yet\)$/m);
    expect(out).toMatch(/^ledger\.retain +7d +default \(no effect but with sqlite\)$/m);
    expect((await evenkeel("config print --store sqlite:a.db")).out).toMatch(/^ledger\.retain +7d +default$/m);
    const items = (await evenkeel("config print -o jsonl")).out.trimEnd().split("\n");
    const idle = items.map((item) => JSON.parse(item) as { key: string; idle?: true }).filter((item) => item.idle);
    expect(idle.map(({ key }) => key.split(".")[0])).toEqual(
      expect.arrayContaining(["breaker", "flapping", "rejection", "leadership"]),
    );

    const help = (await evenkeel("serve --help")).out.replaceAll(/\s+/g, " ");
    const remarkOf = (flag: string) =>
      /\(no effect [a-z ]+\)/.exec(help.split(`${flag} <`)[1]?.split(" --")[0] ?? "")?.[0];
    for (const flag of ["--breaker-share", "--flapping-drops", "--rejection-poison-after", "--leadership-ttl"]) {
      expect(remarkOf(flag)).toBe("(no effect yet)");
    }
    expect(remarkOf("--ledger-retain")).toBe("(no effect but with sqlite)");
    expect(remarkOf("--rejection-backoff")).toBeUndefined();
  });

  test("what it prints as yaml is a file that means the same", async () => {
    writeFileSync(join(folder, "evenkeel.yaml"), "formation: { expect: 3 }\ntables: [{ name: a, keys: ['1', x] }]\n");
    const first = (await evenkeel("config print -o yaml")).out;
    writeFileSync(join(folder, "again.yaml"), first);
    expect((await evenkeel("config print -o yaml --config again.yaml")).out).toBe(first);
    expect(parse(first)).toMatchObject({ formation: { expect: 3 }, tables: [{ name: "a", keys: ["1", "x"] }] });
  });

  test("check says that it is good, or all that is wrong with it", async () => {
    writeFileSync(join(folder, "good.yaml"), "tables: []\n");
    expect(await evenkeel("config check good.yaml")).toMatchObject({ exit: 0, out: "the configuration is good\n" });
    writeFileSync(join(folder, "bad.yaml"), "clutser: a\nlease: { renew: 5s }\n");
    expect(await evenkeel("config check bad.yaml")).toEqual({
      exit: 2,
      out: "",
      notes: [
        "evenkeel: the configuration has 2 problems:",
        "  bad.yaml:1:1: clutser is not a key; did you mean cluster?",
        expect.stringMatching(/^ {2}bad\.yaml:2:17: lease\.renew 5s \(bad\.yaml:2\) is more than .* = 4\.66s$/),
      ],
    });
  });
});
