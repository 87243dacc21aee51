import { resolve } from "node:path";
import { DURATION_RULE, formatDuration, parseDuration } from "../model/duration.ts";
import { ID_RULE, isId } from "../model/ids.ts";

/** Kinds of values: how each is read from what YAML, a flag or a variable gives, and how it is written. */

export interface Kind<T> {
  /** The value. Throws BadValue, whose message continues a sentence that begins with the key. */
  read(raw: unknown): T;
  /** In the notation of the file. */
  show(value: T): string;
  /** The same value with its relative paths taken from `folder`. */
  within?(value: T, folder: string): T;
}

export class BadValue extends Error {
  override readonly name = "BadValue";
}

/** The raw value in an error message, shortened. */
export function quote(raw: unknown): string {
  const text = JSON.stringify(raw) ?? String(raw);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

function refuse(raw: unknown, wanted: string): never {
  throw new BadValue(`is ${quote(raw)}; ${wanted}`);
}

/** Milliseconds. `zero: "refused"` where doing it at once, again and again, would be a loop. */
export function duration(zero: "at once" | "refused"): Kind<number> {
  return {
    read(raw) {
      const ms = parseDuration(raw) ?? refuse(raw, `write ${DURATION_RULE}`);
      return ms === 0 && zero === "refused" ? refuse(raw, "it must be more than 0") : ms;
    },
    show: formatDuration,
  };
}

/** A number from `low` to `high`, both included unless `above` is said for the lower one. */
export function fraction(low: number, high: number, edge: "from" | "above" = "from"): Kind<number> {
  return {
    read(raw) {
      const value = numberOf(raw);
      const inside = edge === "above" ? value > low && value <= high : value >= low && value <= high;
      return inside
        ? value
        : refuse(raw, `write a number ${edge} ${low} ${edge === "above" ? "and at most" : "to"} ${high}`);
    },
    show: String,
  };
}

/** A whole number, at least `low`. */
export function count(low: number): Kind<number> {
  return {
    read(raw) {
      const value = numberOf(raw);
      return Number.isSafeInteger(value) && value >= low ? value : refuse(raw, `write a whole number, ${low} or more`);
    },
    show: String,
  };
}

/** Flags and variables are text, so a number may be written as text; NaN if it is none. */
function numberOf(raw: unknown): number {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && /^-?\d+(\.\d+)?$/.test(raw) ? Number(raw) : Number.NaN;
}

export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  return {
    read: (raw) => values.find((value) => value === raw) ?? refuse(raw, `write ${listOf(values)}`),
    show: String,
  };
}

function listOf(values: readonly string[]): string {
  return values.length < 2 ? values.join() : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

export const id: Kind<string> = {
  read: (raw) => (typeof raw === "string" && isId(raw) ? raw : refuse(raw, `write ${ID_RULE}${quotesNeeded(raw)}`)),
  show: String,
};

export const path: Kind<string> = {
  read: (raw) => (typeof raw === "string" && raw !== "" ? raw : refuse(raw, `write a path${quotesNeeded(raw)}`)),
  show: String,
  within: (value, folder) => resolve(folder, value),
};

function quotesNeeded(raw: unknown): string {
  return typeof raw === "number" || typeof raw === "boolean" ? `, in quotes: "${raw}"` : "";
}

/** Where the server listens. Port 0: any that is free. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

const MAX_PORT = 65_535;

export const address: Kind<Address> = {
  read(raw) {
    const wanted = "write HOST:PORT, such as 127.0.0.1:7420, 0.0.0.0:7420 or [::1]:7420";
    const match = typeof raw === "string" ? /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(raw) : null;
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3]);
    if (host === undefined || port > MAX_PORT) return refuse(raw, wanted);
    return { host, port };
  },
  show: ({ host, port }) => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`),
};

/** What clients are told to connect to. */
export const socketUrl: Kind<string> = {
  read(raw) {
    const url = typeof raw === "string" && URL.canParse(raw) ? new URL(raw) : undefined;
    const usable = url !== undefined && /^wss?:$/.test(url.protocol) && url.username === "" && url.search === "";
    return usable ? String(raw) : refuse(raw, "write a WebSocket address such as ws://10.0.0.5:7420");
  },
  show: String,
};

/** Where ownership is kept. `at`: the path of the file, or the addresses and prefix of etcd. */
export type StoreChoice =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly at: string }
  | { readonly kind: "etcd"; readonly at: string };

export const store: Kind<StoreChoice> = {
  read(raw) {
    // In YAML `store: memory:` is a mapping within a mapping, so the word alone is taken too.
    if (raw === "memory" || raw === "memory:") return { kind: "memory" };
    const match = typeof raw === "string" ? /^(sqlite|etcd):(.+)$/.exec(raw) : null;
    const at = match?.[2];
    if (at === undefined)
      return refuse(raw, 'write "memory:", sqlite:PATH or etcd:http://h1:2379,http://h2:2379/PREFIX');
    return { kind: match?.[1] === "etcd" ? "etcd" : "sqlite", at };
  },
  show: (value) => (value.kind === "memory" ? "memory:" : `${value.kind}:${value.at}`),
  within: (value, folder) => (value.kind === "sqlite" ? { ...value, at: resolve(folder, value.at) } : value),
};
