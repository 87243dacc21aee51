import { isLoopback } from "../model/loopback.ts";
import type { Config } from "./config.ts";
import { KEY_NAMES, type KeyName, type ValueOf } from "./keys.ts";
import { type Problem, problemAt } from "./source.ts";

/** Rules between values, and values that this version does not serve yet. Each says what contradicts what, with both values. */

/** Keys whose values are milliseconds or numbers, and so can be compared. */
type NumberKey = { [K in KeyName]: ValueOf<K> extends number ? K : never }[KeyName];

interface Breach {
  /** The keys that contradict each other, the one to look at first in front. */
  readonly keys: readonly KeyName[];
  readonly message: string;
}

type Rule = (config: Config) => Breach | undefined;

const RULES: readonly Rule[] = [
  renewTooLong,
  (config) => reaches(config, "lease.clientMargin", "lease.duration"),
  (config) => reaches(config, "lease.serverMargin", "lease.duration"),
  (config) => reaches(config, "leadership.margin", "leadership.ttl"),
  (config) => exceeds(config, "rejection.backoff", "rejection.maxBackoff"),
  (config) => exceeds(config, "flapping.cordon", "flapping.maxCordon"),
  lossBeforeRenew,
  openWithoutAuth,
  (config) => notYet(config, "store", config.get("store").kind === "etcd", "write sqlite:PATH"),
  (config) => notYet(config, "auth.mode", config.get("auth.mode") !== "none", "write none"),
  (config) => notYet(config, "tls.cert", config.get("tls.cert") !== undefined, "let a proxy end TLS"),
  (config) => notYet(config, "tls.key", config.get("tls.key") !== undefined, "let a proxy end TLS"),
  (config) => notYet(config, "tls.clientCa", config.get("tls.clientCa") !== undefined, "let a proxy end TLS"),
];

/** What is contradictory or not supported. Says nothing of the `unread` keys, which do not have the value that was meant. */
export function contradictions(config: Config, unread: ReadonlySet<KeyName>): readonly Problem[] {
  return RULES.flatMap((rule) => {
    const breach = rule(config);
    if (breach === undefined || breach.keys.some((key) => unread.has(key))) return [];
    const sources = breach.keys.map((key) => config.source(key));
    const first = sources.find((source) => source.kind === "file") ?? { kind: "default" };
    return [problemAt(first, breach.message)];
  });
}

/** What a user should know of a configuration that is accepted. */
export function warnings(config: Config): readonly string[] {
  const found: string[] = [];
  if (config.get("store").kind === "memory") {
    found.push(
      "store memory: keeps ownership only while this process lives; a restart forgets tables, owners and epochs",
    );
  }
  for (const key of KEY_NAMES) {
    const idle = config.idle(key);
    if (idle !== undefined && config.source(key).kind !== "default")
      found.push(`${key} ${config.cite(key)} has no effect ${idle}`);
  }
  return found;
}

/** A third of what the client may use: two renews may be lost, and the third still comes in time. */
function renewTooLong(config: Config): Breach | undefined {
  const limit = (config.get("lease.duration") - config.get("lease.clientMargin")) / 3;
  // A margin that leaves nothing is told by its own rule.
  if (limit <= 0 || config.get("lease.renew") <= limit) return undefined;
  const whole = `(duration ${config.cite("lease.duration")} − clientMargin ${config.cite("lease.clientMargin")})/3`;
  return {
    keys: ["lease.renew", "lease.duration", "lease.clientMargin"],
    message: `lease.renew ${config.cite("lease.renew")} is more than ${whole} = ${inSeconds(limit)}`,
  };
}

function lossBeforeRenew(config: Config): Breach | undefined {
  const wait = config.get("loss.wait");
  const least = 2 * config.get("lease.renew");
  if (wait === 0 || wait >= least) return undefined;
  return {
    keys: ["loss.wait", "lease.renew"],
    message: `loss.wait ${config.cite("loss.wait")} is less than 2 · lease.renew ${config.cite("lease.renew")} = ${inSeconds(least)}; write that, or 0 for no wait`,
  };
}

function openWithoutAuth(config: Config): Breach | undefined {
  const { host } = config.get("listen");
  if (config.insecure || config.get("auth.mode") !== "none" || isLoopback(host)) return undefined;
  return {
    keys: ["listen", "auth.mode"],
    message: `listen ${config.cite("listen")} can be reached from other machines, and with auth.mode ${config.cite("auth.mode")} anyone may change ownership; listen on 127.0.0.1, or say --insecure`,
  };
}

function reaches(config: Config, key: NumberKey, bound: NumberKey): Breach | undefined {
  if (config.get(key) < config.get(bound)) return undefined;
  return { keys: [key, bound], message: `${key} ${config.cite(key)} is not less than ${bound} ${config.cite(bound)}` };
}

function exceeds(config: Config, key: NumberKey, bound: NumberKey): Breach | undefined {
  if (config.get(key) <= config.get(bound)) return undefined;
  return { keys: [key, bound], message: `${key} ${config.cite(key)} is more than ${bound} ${config.cite(bound)}` };
}

function notYet(config: Config, key: KeyName, asked: boolean, instead: string): Breach | undefined {
  if (!asked) return undefined;
  return { keys: [key], message: `${key} ${config.cite(key)} is not supported yet; ${instead}` };
}

/** Two decimals, cut and not rounded, so that the number named is one that is accepted. */
function inSeconds(ms: number): string {
  return `${Math.floor(ms / 10) / 100}s`;
}
