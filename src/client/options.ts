import { randomUUID } from "node:crypto";
import type { ExecutorTraits } from "../model/change.ts";
import { executorHello, update } from "../protocol/client-frames.ts";
import { AddressError, sessionAddress } from "./addresses.ts";
import type { ChangeableTraits, ConnectionOptions } from "./connection-state.ts";
import { ConfigurationError } from "./errors.ts";
import type { ExecutorHandlers } from "./handler-runner.ts";
import type { ClientLog } from "./ports.ts";

/** A token, or a function that gives the one to use; it is asked for each connection. */
export type TokenSource = string | (() => string | Promise<string>);

/** Where an executor logs: the shape of pino's, and of console's. */
export interface ExecutorLogger {
  debug(fields: Readonly<Record<string, unknown>>, event: string): void;
  info(fields: Readonly<Record<string, unknown>>, event: string): void;
  warn(fields: Readonly<Record<string, unknown>>, event: string): void;
  error(fields: Readonly<Record<string, unknown>>, event: string): void;
}

export interface ExecutorOptions {
  /** Address of the scheduler, such as `ws://127.0.0.1:7420`. Either this or `urls`. */
  readonly url?: string | undefined;
  /** Addresses of several schedulers, tried in turn. */
  readonly urls?: readonly string[] | undefined;
  /** Stable id of this worker, unique in the fleet. It outlives the process. */
  readonly executor: string;
  /** Id of this process life, never used again. Default: a random one. */
  readonly instance?: string | undefined;
  /** Where others reach this worker, handed on to observers; never dialled. At most 512 characters. */
  readonly address?: string | undefined;
  readonly zone?: string | undefined;
  /** Stable place that this worker fills, whatever its id. */
  readonly slot?: string | undefined;
  /** At most 32 pairs, matched by the selectors of tables. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Share relative to others, above 0. Default 1. */
  readonly weight?: number | undefined;
  /** Most partitions over all tables. Default: no limit. */
  readonly capacity?: number | undefined;
  readonly token?: TokenSource | undefined;
  /** Default: nothing is logged. */
  readonly logger?: ExecutorLogger | undefined;
  /**
   * How long a partition that was stopped outright, not revoked, is waited for before the same partition may start anew,
   * in ms. Default 30 s, as the default of a table's `stop`.
   */
  readonly stopTimeoutMs?: number | undefined;
}

const DEFAULT_STOP_TIMEOUT_MS = 30_000;

/** Longest delay that a timer keeps. */
const MAX_TIMEOUT_MS = 2_147_483_647;

const KNOWN = new Set([
  "url",
  "urls",
  "executor",
  "instance",
  "address",
  "zone",
  "slot",
  "labels",
  "weight",
  "capacity",
  "token",
  "logger",
  "stopTimeoutMs",
] satisfies (keyof ExecutorOptions)[]);

/** Checks what the caller gave. Throws ConfigurationError, which names the member and the rule. */
export function readOptions(options: ExecutorOptions): ConnectionOptions {
  const unknown = Object.keys(options).filter((key) => !(KNOWN as ReadonlySet<string>).has(key));
  if (unknown.length > 0) throw new ConfigurationError(`unknown option: ${unknown.join(", ")}`);
  const urls = readUrls(options);
  const { executor, instance, ...traits } = readIdentity(options);
  const { token, stopTimeoutMs: patienceMs = DEFAULT_STOP_TIMEOUT_MS } = options;
  if (!(patienceMs >= 0 && patienceMs <= MAX_TIMEOUT_MS)) {
    throw new ConfigurationError(`stopTimeoutMs: must be from 0 to ${MAX_TIMEOUT_MS} ms`);
  }
  if (token !== undefined && typeof token !== "function" && (typeof token !== "string" || token === "")) {
    throw new ConfigurationError("token: must be text that is not empty, or a function that gives it");
  }
  return { urls, executor, instance, traits, canRenewToken: typeof token === "function", patienceMs };
}

/** Checks the handlers of a caller without types. */
export function checkHandlers(handlers: ExecutorHandlers): void {
  for (const name of ["onGrant", "onRevoke"] as const) {
    if (typeof handlers?.[name] !== "function") throw new ConfigurationError(`${name}: must be a function`);
  }
}

/** Checks a change of traits. Throws ConfigurationError. */
export function readUpdate(traits: ChangeableTraits): ChangeableTraits {
  const result = update.safeParse({ ...withoutUndefined(traits), type: "update" });
  if (!result.success) throw mistake(result.error.issues[0]);
  const { type: _type, ...checked } = result.data;
  return checked;
}

/** The connection's log on the caller's logger. */
export function logTo(logger: ExecutorLogger | undefined): ClientLog {
  return { log: (level, event, fields) => logger?.[level](fields, event) };
}

function readUrls({ url, urls }: ExecutorOptions): readonly string[] {
  if (url !== undefined && urls !== undefined) throw new ConfigurationError("give url or urls, not both");
  const written = urls ?? (url === undefined ? [] : [url]);
  if (written.length === 0) {
    throw new ConfigurationError("url: is missing; give the scheduler's address, such as ws://127.0.0.1:7420");
  }
  try {
    return written.map(sessionAddress);
  } catch (error) {
    throw error instanceof AddressError ? new ConfigurationError(`url: ${error.message}`) : error;
  }
}

function readIdentity(options: ExecutorOptions): Pick<ConnectionOptions, "executor" | "instance"> & ExecutorTraits {
  const { executor, instance = randomUUID(), address, zone, slot, labels, weight, capacity } = options;
  const traits = withoutUndefined({ address, zone, slot, labels, weight, capacity });
  // What the scheduler would refuse is refused here, by the same schema.
  const hello = { type: "hello", role: "executor", executor, instance, attempt: 1, ...traits };
  const result = executorHello.safeParse(hello);
  if (!result.success) throw mistake(result.error.issues[0]);
  const { type: _type, role: _role, attempt: _attempt, stamp: _stamp, resume: _resume, ...identity } = result.data;
  return identity;
}

function withoutUndefined(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function mistake(
  issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined,
): ConfigurationError {
  return new ConfigurationError(`${issue?.path.join(".") ?? "options"}: ${issue?.message ?? "not valid"}`);
}
