import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { isIPv6 } from "node:net";
import { createOpenAccess } from "./auth/open-access.ts";
import { currentLedger, currentRevision, describe, listTables } from "./core/describe.ts";
import { createState } from "./core/start.ts";
import type { CoreState } from "./core/state.ts";
import { step } from "./core/step.ts";
import type { Core } from "./driver/core.ts";
import { Driver } from "./driver/driver.ts";
import type { LogLevel, LogPort, SchedulerApi, Store } from "./driver/ports.ts";
import { realClock } from "./driver/real-clock.ts";
import { realRandom } from "./driver/real-random.ts";
import { Gateway } from "./gateway/gateway.ts";
import { problemAnswer } from "./http/answers.ts";
import { createApp } from "./http/app.ts";
import { closeServer, createHttpServer, listen } from "./http/server.ts";
import { type LedgerCheckpoint, toCheckpoint } from "./ledger/checkpoint.ts";
import { readLedger, restoredCheckpoint, type StoredLedger } from "./ledger/restored.ts";
import type { TableSpec } from "./model/change.ts";
import { EvenkeelError } from "./model/errors.ts";
import { isLoopback } from "./model/loopback.ts";
import type { Settings } from "./model/settings.ts";
import { refuseUnsupported } from "./model/supported.ts";
import { SESSION_PATH } from "./protocol/limits.ts";
import { MemoryStore } from "./store/memory.ts";
import { backupStore as backup } from "./store/sqlite/backup.ts";
import { checkStore, type StoreReport } from "./store/sqlite/check.ts";
import type { Target } from "./store/sqlite/replace.ts";
import { type Restored, restoreStore as restore } from "./store/sqlite/restore.ts";
import { type LedgerLimits, SqliteStore } from "./store/sqlite/store.ts";
import { createLog, type LogSink } from "./telemetry/log.ts";

export { checkStore, type Restored, type StoreReport };

/** What a server is built from. Durations in `settings` are milliseconds. */
export interface ServerConfig {
  readonly settings: Settings;
  /** Port 0: any free one; the url says which. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly store: StoreConfig;
  /** Lines go to standard output, unless `sink` says otherwise. */
  readonly log: {
    readonly level: LogLevel | "silent";
    readonly pretty: "auto" | "always" | "never";
    readonly sink?: LogSink;
  };
  /** The configuration's tables; absent: not declared, empty: declared as none. */
  readonly tables?: readonly TableSpec[];
  /** Allows an address that others can reach although nobody has to prove who they are. */
  readonly insecure?: boolean;
  /** What standbys tell executors to use. */
  readonly advertise?: string;
}

/**
 * Where ownership is kept. `memory`: while the process lives, with no promise across a restart. `sqlite`: in one file, made
 * if it is not there, and used by one process at a time.
 */
export type StoreConfig =
  | { readonly kind: "memory" }
  | {
      readonly kind: "sqlite";
      readonly path: string;
      readonly ledger?: LedgerLimits & { readonly checkpointEvery?: number };
    };

export interface RunningServer {
  /** Address of the HTTP API, such as `http://127.0.0.1:7420`. */
  readonly url: string;
  /** Address for executors, such as `ws://127.0.0.1:7420`. */
  readonly wsUrl: string;
  readonly api: SchedulerApi;
  /** Resolves with the reason when the scheduler cannot go on; never after a stop. */
  readonly failed: Promise<Error>;
  /** Sends the sessions away within `settings.shutdown.timeoutMs`, then ends the server. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Builds a scheduler and starts it. Rejects with EvenkeelError if the configuration is refused (the address is not loopback
 * and `insecure` is not said, a table cannot be as it is declared, or the store cannot be used: `conflict` if another process
 * has it), with StoreError `broken` if the store is damaged, and with Node's error if the address cannot be had.
 */
export async function startServer(config: ServerConfig): Promise<RunningServer> {
  const { settings, tables } = config;
  for (const table of tables ?? []) refuseUnsupported(table);
  const boundToLoopback = isLoopback(config.listen.host);
  if (!boundToLoopback && config.insecure !== true) refuseOpenAddress(config.listen.host);
  const { sink = process.stdout, ...lines } = config.log;
  const colors = sink === process.stdout && process.stdout.isTTY && process.stdout.hasColors();
  const log = createLog({ ...lines, sink, colors });
  const store = createStore(config.store, log);
  const checkpointEvery = config.store.kind === "sqlite" ? config.store.ledger?.checkpointEvery : undefined;
  const driver = new Driver({
    core: CORE,
    clock: realClock,
    store,
    settings,
    log,
    ...(checkpointEvery === undefined ? {} : { checkpointEvery }),
  });
  const access = createOpenAccess({ boundToLoopback });
  const gateway = new Gateway({ host: driver, stamps: driver, access, clock: realClock, random: realRandom, log });
  driver.attachSessions(gateway);
  const app = createApp({ api: driver, access, log, version: readVersion(), sessionPath: SESSION_PATH });
  let isOpen = false;
  const server = createHttpServer({ fetch: (request) => (isOpen ? app.fetch(request) : refuseEarly()) });
  server.on("connect", gateway.handleConnect);
  server.on("clientError", gateway.handleClientError);
  try {
    // The address first: where it cannot be had, nothing of the store is to change.
    const { port } = await listen(server, config.listen);
    await driver.start();
    if (tables !== undefined) await driver.declareTables(tables);
    // Until here an upgrade, without a listener for it, was a request like any other.
    isOpen = true;
    server.on("upgrade", gateway.handleUpgrade);
    const authority = `${connectable(config.listen.host)}:${port}`;
    const url = `http://${authority}`;
    log.log("info", "server.listening", { url, cluster: settings.cluster, version: readVersion() });
    const stop = once(() => stopServer(driver, gateway, server, log));
    return { url, wsUrl: `ws://${authority}`, api: driver, failed: driver.failed, stop };
  } catch (error) {
    await driver.stop();
    await closeServer(server);
    throw error;
  }
}

function createStore(store: StoreConfig, log: LogPort): Store {
  switch (store.kind) {
    case "memory":
      return new MemoryStore({ clock: realClock, random: realRandom });
    case "sqlite":
      return new SqliteStore({ ...store, clock: realClock, random: realRandom, log });
    default:
      return store satisfies never;
  }
}

const CORE: Core<CoreState> = {
  createState: ({ checkpoint, ...start }) =>
    createState({ ...start, ...(checkpoint === undefined ? {} : { checkpoint: checkpoint as LedgerCheckpoint }) }),
  step,
  describe,
  listTables,
  currentRevision,
  toCheckpoint: (state) => ({ revision: currentRevision(state), state: toCheckpoint(currentLedger(state)) }),
};

/** Sessions go first: an HTTP server waits for its open WebSockets. Answers go on until the sessions are gone. */
async function stopServer(driver: Driver<CoreState>, gateway: Gateway, server: Server, log: LogPort): Promise<void> {
  await driver.stop();
  await gateway.close();
  await closeServer(server);
  log.log("info", "server.stopped", {});
}

function refuseEarly(): Response {
  return problemAnswer(new EvenkeelError("not-ready", "the scheduler is starting", "try again shortly"));
}

function refuseOpenAddress(host: string): never {
  const hint = "listen on 127.0.0.1, or say --insecure if the network around it is trusted";
  throw new EvenkeelError("invalid", `listen: without auth, everyone who reaches ${host} could take over`, hint);
}

/** Where a server that listens on `host` can be reached: one that listens everywhere, by loopback. */
function connectable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return isIPv6(host) ? `[${host}]` : host;
}

function once<T>(call: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= call();
    return result;
  };
}

function readVersion(): string {
  const file = new URL("../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}

/**
 * Copies a store as it is at one moment, also beside the scheduler that has it open, and checks the copy. Rejects with
 * EvenkeelError (`not-found`, `conflict` if `to` is there and `force` is not said) and with StoreError `broken`.
 */
export function backupStore(options: Target & { readonly from: string }): Promise<StoreReport> {
  return backup({ ...options, now: realClock.wall() });
}

/**
 * Makes a store of a backup, or of a store that nobody has open: another incarnation, whose revisions are above every
 * earlier one, and whose scheduler grants nothing until a lease of `maxLeaseMs` has run out. Default: the largest that the
 * old store knew; it may not be shorter. Rejects as `backupStore` does.
 */
export function restoreStore(
  options: Target & { readonly from: string; readonly maxLeaseMs?: number },
): Promise<Restored> {
  return restore({
    ...options,
    now: realClock.wall(),
    incarnation: realRandom.id(),
    convert: (old, start) => restoredCheckpoint(readLedger(old as StoredLedger), start),
  });
}
