import type { TableSpec } from "../model/change.ts";
import { assert } from "../model/errors.ts";
import type { Settings } from "../model/settings.ts";
import type { Config } from "./config.ts";
import type { ValueOf } from "./keys.ts";
import type { Address } from "./kinds.ts";

/** What the server is built from: a configuration in the terms of the parts that use it. */
export interface SettledServer {
  readonly settings: Settings;
  readonly listen: Address;
  readonly store: SettledStore;
  readonly log: { readonly level: ValueOf<"log.level">; readonly pretty: ValueOf<"log.pretty"> };
  /** Absent: tables are not declared. */
  readonly tables?: readonly TableSpec[];
  readonly insecure: boolean;
  readonly advertise?: string;
}

/** `ledger`: how often a checkpoint is made, and what is kept behind it, by age and by number. */
export type SettledStore =
  | { readonly kind: "memory" }
  | {
      readonly kind: "sqlite";
      readonly path: string;
      readonly ledger: { readonly retainMs: number; readonly maxChanges: number; readonly checkpointEvery: number };
    };

export function toServerConfig(config: Config): SettledServer {
  const advertise = config.get("advertise");
  return {
    settings: settingsOf(config),
    listen: config.get("listen"),
    store: storeOf(config),
    log: { level: config.get("log.level"), pretty: config.get("log.pretty") },
    insecure: config.insecure,
    ...(config.tables === undefined ? {} : { tables: config.tables }),
    ...(advertise === undefined ? {} : { advertise }),
  };
}

function storeOf(config: Config): SettledStore {
  const store = config.get("store");
  assert(store.kind !== "etcd", "etcd is refused when the configuration is loaded");
  if (store.kind === "memory") return store;
  const ledger = {
    retainMs: config.get("ledger.retain"),
    maxChanges: config.get("ledger.maxChanges"),
    checkpointEvery: config.get("ledger.checkpointEvery"),
  };
  return { kind: "sqlite", path: store.at, ledger };
}

function settingsOf(config: Config): Settings {
  const expect = config.get("formation.expect");
  const formation = { quietMs: config.get("formation.quiet"), maxMs: config.get("formation.max") };
  return {
    cluster: config.get("cluster"),
    lease: {
      durationMs: config.get("lease.duration"),
      renewMs: config.get("lease.renew"),
      clientMarginMs: config.get("lease.clientMargin"),
      serverMarginMs: config.get("lease.serverMargin"),
      driftRate: config.get("lease.driftRate"),
    },
    formation: expect === undefined ? formation : { ...formation, expect },
    join: { quietMs: config.get("join.quiet"), maxMs: config.get("join.max") },
    loss: { waitMs: config.get("loss.wait"), returnMs: config.get("loss.return") },
    moves: { perExecutor: config.get("moves.perExecutor"), total: config.get("moves.total") },
    delivery: { ackTimeoutMs: config.get("delivery.ackTimeout") },
    drain: { deadlineMs: config.get("drain.deadline") },
    rejection: { backoffMs: config.get("rejection.backoff"), maxBackoffMs: config.get("rejection.maxBackoff") },
    executors: { forgetMs: config.get("executors.forget") },
    shutdown: { timeoutMs: config.get("shutdown.timeout") },
  };
}
