import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { flagOf, KEY_NAMES, type KeyName, variableOf } from "../../src/config/keys.ts";
import { type ConfigInput, loadConfig } from "../../src/config/load.ts";
import { warnings } from "../../src/config/rules.ts";
import { toServerConfig } from "../../src/config/server-config.ts";
import { ConfigError } from "../../src/config/source.ts";
import { DEFAULT_SETTINGS } from "../../src/model/settings.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function load(yaml: string, input: Omit<ConfigInput, "file" | "folder"> = {}): Config {
  writeFileSync(join(folder, "evenkeel.yaml"), yaml);
  return loadConfig({ ...input, folder });
}

/** The lines of the refusal. */
function refusal(yaml: string, input: Omit<ConfigInput, "file" | "folder"> = {}): readonly string[] {
  try {
    load(yaml, input);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  throw new Error("the configuration was not refused");
}

describe("defaults", () => {
  test("are those that the core has, without any file", () => {
    const server = toServerConfig(loadConfig({ folder }));
    expect(server.settings).toEqual(DEFAULT_SETTINGS);
    expect(server).toMatchObject({
      listen: { host: "127.0.0.1", port: 7420 },
      store: {
        kind: "sqlite",
        path: join(folder, "evenkeel.db"),
        ledger: { retainMs: 7 * 86_400_000, maxChanges: 100_000 },
      },
      insecure: false,
    });
    expect(server).not.toHaveProperty("tables");
  });

  test("say that the memory store forgets", () => {
    expect(warnings(loadConfig({ folder }))).toEqual([]);
    expect(warnings(load('store: "memory:"'))).toEqual([expect.stringContaining("store memory:")]);
  });

  test("an empty file and empty sections change nothing", () => {
    expect(toServerConfig(load("")).settings).toEqual(DEFAULT_SETTINGS);
    expect(toServerConfig(load("lease:\ntls: {}\n")).settings).toEqual(DEFAULT_SETTINGS);
  });

  test("a file that is named must be there", () => {
    expect(() => loadConfig({ folder, file: "other.yaml" })).toThrow(
      "other.yaml cannot be read: there is no such file",
    );
  });
});

test("the file that the README shows is good, and every key of it has an effect", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const config = load(/```yaml\n([\s\S]*?)```/.exec(readme)?.[1] ?? "");
  expect(config.tables?.map(({ table, count }) => [table, count])).toEqual([
    ["trips", 128],
    ["events", 2],
  ]);
  expect(warnings(config)).toEqual([]);
});

describe("sources", () => {
  const yaml = "cluster: file\nloss: { wait: 20s }\nlease: { clientMargin: 2s }\n";

  test("a flag wins over a variable, a variable over the file, the file over the default; each value knows its source", () => {
    const config = load(yaml, {
      environment: { EVENKEEL_LOSS__WAIT: "30s", EVENKEEL_LEASE__CLIENT_MARGIN: "1500ms" },
      flags: { "loss.wait": "40s" },
    });
    expect(config.cite("cluster")).toBe("file (evenkeel.yaml:1)");
    expect(config.cite("loss.wait")).toBe("40s (--loss-wait)");
    expect(config.cite("lease.clientMargin")).toBe("1500ms (EVENKEEL_LEASE__CLIENT_MARGIN)");
    expect(config.cite("lease.duration")).toBe("15s (default)");
  });

  test("a bad value is refused also where a stronger source hides it", () => {
    expect(refusal("loss: { wait: soon }", { flags: { "loss.wait": "40s" } })).toEqual([
      expect.stringMatching(/^evenkeel\.yaml:1:15: loss\.wait is "soon"; write a duration/),
    ]);
  });

  test("a bad flag or variable is named by its name", () => {
    expect(refusal("", { flags: { "lease.renew": "4x" }, environment: { EVENKEEL_MOVES__TOTAL: "-1" } })).toEqual([
      expect.stringMatching(/^--lease-renew: lease\.renew is "4x"; write a duration/),
      'EVENKEEL_MOVES__TOTAL: moves.total is "-1"; write a whole number, 1 or more',
    ]);
  });

  test("every key but tables has a flag and a variable of its own", () => {
    expect(flagOf("lease.clientMargin")).toBe("--lease-client-margin");
    expect(variableOf("lease.clientMargin")).toBe("EVENKEEL_LEASE__CLIENT_MARGIN");
    expect(new Set(KEY_NAMES.map(flagOf)).size).toBe(KEY_NAMES.length);
    expect(new Set(KEY_NAMES.map(variableOf)).size).toBe(KEY_NAMES.length);
  });

  test("a variable of no key is refused, with the one that was meant", () => {
    expect(refusal("", { environment: { EVENKEEL_LEASE_RENEW: "4s" } })).toEqual([
      "EVENKEEL_LEASE_RENEW is not a variable of any key; did you mean EVENKEEL_LEASE__RENEW?",
    ]);
  });

  test("variables of the client commands and Kubernetes' service links are left alone", () => {
    const environment = {
      EVENKEEL_URL: "http://x",
      EVENKEEL_TOKEN: "t",
      EVENKEEL_REQUIRE: "all",
      EVENKEEL_PORT: "tcp://10.0.0.1:7420",
      EVENKEEL_SERVICE_HOST: "10.0.0.1",
      EVENKEEL_PORT_7420_TCP_ADDR: "10.0.0.1",
      EVENKEEL_SCHEDULER_SERVICE_PORT_HTTP: "7420",
    };
    expect(() => load("", { environment })).not.toThrow();
  });

  test("relative paths of the file are relative to the file, those of flags to the process", () => {
    writeFileSync(join(folder, "evenkeel.yaml"), "store: sqlite:./a.db");
    const inFile = loadConfig({ file: join(folder, "evenkeel.yaml"), folder: tmpdir() });
    expect(inFile.show("store")).toBe(`sqlite:${join(folder, "a.db")}`);
    const inFlag = loadConfig({ folder: tmpdir(), flags: { store: "sqlite:./b.db" } });
    expect(inFlag.cite("store")).toBe(`sqlite:${join(tmpdir(), "b.db")} (--store)`);
    expect(loadConfig({ folder: tmpdir() }).cite("store")).toBe(`sqlite:${join(tmpdir(), "evenkeel.db")} (default)`);
  });
});

function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("not refused");
}

describe("refused, with place and both values", () => {
  test("unknown keys, with the one that was meant", () => {
    expect(refusal("clutser: a\nlease: { clientMargn: 1s }\nzzz: 1\n")).toEqual([
      "evenkeel.yaml:1:1: clutser is not a key; did you mean cluster?",
      "evenkeel.yaml:2:10: lease.clientMargn is not a key; did you mean clientMargin?",
      "evenkeel.yaml:3:1: zzz is not a key",
    ]);
  });

  test("a renew that leaves no room for two lost ones", () => {
    expect(refusal("loss: { wait: 0 }\nlease:\n  duration: 15s\n  renew: 8s\n")).toEqual([
      "evenkeel.yaml:4:10: lease.renew 8s (evenkeel.yaml:4) is more than (duration 15s (evenkeel.yaml:3) − clientMargin 1s (default))/3 = 4.66s",
    ]);
    expect(() => load("lease: { duration: 15s, renew: 4666ms }")).not.toThrow();
    expect(refusal("lease: { duration: 15s, renew: 4667ms }")).toHaveLength(1);
  });

  test("a contradiction between a flag and the file names both", () => {
    expect(refusal("lease: { renew: 8s }", { flags: { "lease.duration": "30s" } })).toEqual([
      "evenkeel.yaml:1:17: loss.wait 10s (default) is less than 2 · lease.renew 8s (evenkeel.yaml:1) = 16s; write that, or 0 for no wait",
    ]);
    expect(refusal("lease: { duration: 30s }", { flags: { "lease.serverMargin": "30s" } })).toEqual([
      "evenkeel.yaml:1:20: lease.serverMargin 30s (--lease-server-margin) is not less than lease.duration 30s (evenkeel.yaml:1)",
    ]);
  });

  const contradictory: readonly (readonly [string, string])[] = [
    [
      "lease: { clientMargin: 15s }",
      "lease.clientMargin 15s (evenkeel.yaml:1) is not less than lease.duration 15s (default)",
    ],
    [
      "lease: { serverMargin: 15s }",
      "lease.serverMargin 15s (evenkeel.yaml:1) is not less than lease.duration 15s (default)",
    ],
    [
      "leadership: { margin: 10s }",
      "leadership.margin 10s (evenkeel.yaml:1) is not less than leadership.ttl 10s (default)",
    ],
    [
      "rejection: { backoff: 6m }",
      "rejection.backoff 6m (evenkeel.yaml:1) is more than rejection.maxBackoff 5m (default)",
    ],
    [
      "flapping: { cordon: 11m }",
      "flapping.cordon 11m (evenkeel.yaml:1) is more than flapping.maxCordon 10m (default)",
    ],
    ["loss: { wait: 7999ms }", "loss.wait 7999ms (evenkeel.yaml:1) is less than 2 · lease.renew 4s (default) = 8s"],
    ["lease: { driftRate: 0.11 }", "lease.driftRate is 0.11; write a number from 0 to 0.1"],
    ["lease: { driftRate: -0.01 }", "lease.driftRate is -0.01; write a number from 0 to 0.1"],
    ["breaker: { share: 0 }", "breaker.share is 0; write a number above 0 and at most 1"],
    ["breaker: { share: 1.01 }", "breaker.share is 1.01; write a number above 0 and at most 1"],
    ["moves: { total: 0 }", "moves.total is 0; write a whole number, 1 or more"],
    ["moves: { total: 1.5 }", "moves.total is 1.5; write a whole number, 1 or more"],
    ["listen: 127.0.0.1", 'listen is "127.0.0.1"; write HOST:PORT'],
    ["listen: 127.0.0.1:65536", 'listen is "127.0.0.1:65536"; write HOST:PORT'],
    ["listen: 0.0.0.0:7420", "listen 0.0.0.0:7420 (evenkeel.yaml:1) can be reached from other machines"],
    ["advertise: http://a:1", 'advertise is "http://a:1"; write a WebSocket address'],
    ["log: { level: loud }", 'log.level is "loud"; write debug, info, warn or error'],
    [
      "cluster: 7",
      'cluster is 7; write 1 to 128 of A-Z a-z 0-9 . _ : -, starting with a letter or digit, in quotes: "7"',
    ],
    ["shutdown: { timeout: 2147483648 }", "shutdown.timeout is 2147483648; write a duration"],
    ["lease: 5s", "lease has keys of its own: duration, renew, clientMargin, serverMargin, driftRate"],
    ["cluster:", "cluster has no value"],
    ["- a", "the file is not a mapping of keys to values"],
    ["cluster: a\ncluster: b", "Map keys must be unique"],
    ["store: memory:", 'put a value that ends in ":" in quotes'],
  ];
  test.each(contradictory)("%s", (yaml, message) => {
    const lines = refusal(yaml);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^evenkeel\.yaml:\d+:\d+: /);
    expect(lines[0]).toContain(message);
  });

  const later: readonly (readonly [string, string])[] = [
    ["store: etcd:http://h1:2379/p", "store etcd:http://h1:2379/p"],
    ["auth: { mode: tokens }", "auth.mode tokens"],
    ["tls: { cert: a.pem }", "tls.cert"],
  ];
  test.each(later)("not supported yet: %s", (yaml, value) => {
    expect(refusal(yaml)).toEqual([expect.stringMatching(/^evenkeel\.yaml:1:\d+: .* is not supported yet; /)]);
    expect(refusal(yaml)[0]).toContain(value);
  });

  test("all problems are listed at once, in the order of the file", () => {
    const lines = refusal("listen: nowhere\nlos: {}\nlease: { clientMargin: 15s }\ntables: [{ name: x }]\n", {
      flags: { "join.max": "1y" },
    });
    expect(lines.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
      "evenkeel.yaml:1:9: listen",
      "evenkeel.yaml:2:1: los",
      "evenkeel.yaml:3:24: lease.clientMargin",
      "evenkeel.yaml:4:10: tables[0]",
      "--join-max: join.max",
    ]);
  });

  test("an address that others reach is taken when that is said to be wanted", () => {
    expect(toServerConfig(load("listen: 0.0.0.0:7420", { insecure: true }))).toMatchObject({
      listen: { host: "0.0.0.0", port: 7420 },
      insecure: true,
    });
    expect(() => load("listen: '[::1]:0'")).not.toThrow();
  });

  test("what is accepted but has no effect yet is said", () => {
    expect(warnings(load("breaker: { share: 0.4 }"))).toContain(
      "breaker.share 0.4 (evenkeel.yaml:1) has no effect yet",
    );
    expect(warnings(load("ledger: { retain: 1d }\nstore: 'memory:'"))).toContain(
      "ledger.retain 1d (evenkeel.yaml:1) has no effect but with sqlite",
    );
    expect(warnings(load("ledger: { retain: 1d }\nstore: sqlite:a.db"))).toEqual([]);
  });
});

describe("F8: a duration of 0", () => {
  const atOnce: readonly KeyName[] = [
    "formation.quiet",
    "formation.max",
    "join.quiet",
    "join.max",
    "loss.wait",
    "loss.return",
    "drain.deadline",
    "breaker.maxHold",
    "executors.forget",
    "shutdown.timeout",
  ];
  test.each(atOnce)("%s takes it: at once", (key) => {
    const config = loadConfig({ folder, flags: { [key]: "0" } });
    expect(config.get(key)).toBe(0);
  });

  const refused: readonly KeyName[] = [
    "lease.duration",
    "lease.renew",
    "lease.clientMargin",
    "delivery.ackTimeout",
    "rejection.backoff",
    "rejection.maxBackoff",
    "leadership.ttl",
  ];
  test.each(refused)("%s refuses it: it would be a loop", (key) => {
    expect(refusalOf(() => loadConfig({ folder, flags: { [key]: "0s" } }))).toBe(
      `${flagOf(key)}: ${key} is "0s"; it must be more than 0`,
    );
  });
});
