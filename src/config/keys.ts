import { address, choice, count, duration, fraction, id, type Kind, path, socketUrl, store } from "./kinds.ts";

/**
 * Every key of the file but `tables`, with its kind and default. Flags, variables, their help, `config print` and the
 * checks are all made from this one table.
 */

/** Where a file is looked for if none is named. */
export const DEFAULT_FILE = "evenkeel.yaml";

export interface Key<T> {
  readonly kind: Kind<T>;
  /** Absent: the key has no value unless one is given. */
  readonly default?: T;
  readonly about: string;
  /** Read and checked, but without effect: in this version, or with another store than this one. */
  readonly idle?: "yet" | "but with sqlite";
}

const atOnce = duration("at once");
const positive = duration("refused");

/** A key whose default is written as in the file. */
function key<T>(kind: Kind<T>, text: string | number, about: string): Key<T> & { readonly default: T } {
  return { kind, default: kind.read(text), about };
}

function optional<T>(kind: Kind<T>, about: string): Key<T> {
  return { kind, about };
}

/** A key that comes with a later version, so that a file may hold it already. */
function idle<T>(kind: Kind<T>, text: string | number, about: string): Key<T> & { readonly default: T } {
  return { ...key(kind, text, about), idle: "yet" };
}

/** A key of the history, which is only kept in a file. */
function ofHistory<T>(kind: Kind<T>, text: string | number, about: string): Key<T> & { readonly default: T } {
  return { ...key(kind, text, about), idle: "but with sqlite" };
}

export const KEYS = {
  cluster: key(id, "demo", "name of the cluster, told to clients"),
  listen: key(address, "127.0.0.1:7420", "address of HTTP and WebSockets; port 0 takes a free one"),
  advertise: { ...optional(socketUrl, "address that clients are told to use"), idle: "yet" },
  store: key(store, "sqlite:./evenkeel.db", "where ownership is kept"),
  "log.level": key(choice("debug", "info", "warn", "error"), "info", "lowest level that is logged"),
  "log.pretty": key(choice("auto", "always", "never"), "auto", "log for people; auto: on a terminal"),
  "auth.mode": key(choice("none", "tokens", "jwt"), "none", "how clients prove who they are"),
  "tls.cert": optional(path, "certificate of the server"),
  "tls.key": optional(path, "key of the certificate"),
  "tls.clientCa": optional(path, "authority that clients' certificates must come from"),
  "lease.duration": key(positive, "15s", "how long an executor may serve without an answer to a renew"),
  "lease.renew": key(positive, "4s", "how often executors renew"),
  "lease.clientMargin": key(positive, "1s", "how long before its lease ends an executor stops"),
  "lease.serverMargin": key(atOnce, "1s", "how much longer the scheduler waits"),
  "lease.driftRate": key(fraction(0, 0.1), 0.01, "by how much two clocks may differ in rate"),
  "formation.quiet": key(atOnce, "2s", "a cold start decides after this long without a new executor"),
  "formation.max": key(atOnce, "5s", "a cold start decides after this long at the latest"),
  "formation.expect": optional(count(0), "a cold start decides when so many executors are there; 0: unused"),
  "join.quiet": key(atOnce, "250ms", "joins are decided after this long without another"),
  "join.max": key(atOnce, "2s", "joins are decided after this long at the latest"),
  "loss.wait": key(atOnce, "10s", "how long an executor that is gone is waited for"),
  "loss.return": key(atOnce, "2m", "how long a planned restart keeps its place"),
  "moves.perExecutor": key(count(1), 64, "moves in flight from and to one executor"),
  "moves.total": key(count(1), 10_000, "moves in flight in all"),
  "delivery.ackTimeout": key(positive, "10s", "a push un-acknowledged for this long ends its session"),
  "drain.deadline": key(atOnce, "10m", "how long a leave or drain may take"),
  "breaker.share": idle(fraction(0, 1, "above"), 0.5, "share of executors gone at which nothing moves any more"),
  "breaker.minExecutors": idle(count(1), 3, "fewest executors for the breaker"),
  "breaker.maxHold": idle(atOnce, "5m", "how long the breaker holds"),
  "flapping.drops": idle(count(1), 3, "drops that cordon an executor"),
  "flapping.within": idle(atOnce, "60s", "time within which drops are counted"),
  "flapping.cordon": idle(atOnce, "30s", "how long the first cordon lasts"),
  "flapping.maxCordon": idle(atOnce, "10m", "longest cordon"),
  "rejection.backoff": key(positive, "1s", "first wait before a failed partition is tried again there"),
  "rejection.maxBackoff": key(positive, "5m", "longest such wait"),
  "rejection.poisonAfter": idle(count(1), 3, "executors that fail a partition before it is parked"),
  "rejection.cordonAfter": idle(count(1), 16, "partitions in back-off that cordon their executor"),
  "ledger.retain": ofHistory(atOnce, "7d", "how long history is kept"),
  "ledger.maxChanges": ofHistory(count(1), 100_000, "changes of history that are kept"),
  "ledger.checkpointEvery": ofHistory(count(1), 1_000, "changes between checkpoints"),
  "executors.forget": key(atOnce, "1h", "when an executor that owns nothing is forgotten"),
  "shutdown.timeout": key(atOnce, "20s", "how long a stop waits for its sessions"),
  "leadership.ttl": idle(positive, "10s", "how long leadership lasts without renewal"),
  "leadership.margin": idle(atOnce, "2s", "how long before that the leader stops"),
} as const satisfies Record<string, Key<unknown>>;

export type KeyName = keyof typeof KEYS;

/** The value of a key; undefined is among them if it has no default. */
export type ValueOf<K extends KeyName> = (typeof KEYS)[K] extends { readonly default: infer T }
  ? T
  : (typeof KEYS)[K] extends Key<infer T>
    ? T | undefined
    : never;

export const KEY_NAMES = Object.keys(KEYS) as readonly KeyName[];

export function isKeyName(text: string): text is KeyName {
  return Object.hasOwn(KEYS, text);
}

/** `lease.clientMargin` → `--lease-client-margin`. */
export function flagOf(key: KeyName): string {
  return `--${words(key, "-", "-")}`;
}

/** `lease.clientMargin` → `EVENKEEL_LEASE__CLIENT_MARGIN`. */
export function variableOf(key: KeyName): string {
  return `EVENKEEL_${words(key, "__", "_").toUpperCase()}`;
}

function words(key: KeyName, betweenLevels: string, betweenWords: string): string {
  const levels = key.split(".");
  return levels
    .map((level) => level.replace(/[A-Z]/g, (letter) => betweenWords + letter.toLowerCase()))
    .join(betweenLevels);
}
