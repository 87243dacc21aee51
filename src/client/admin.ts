import { ERROR_TABLE, type ErrorCode, EvenkeelError } from "../model/errors.ts";
import type { Status, TableAnswer, TableRequest, TableView, Version } from "./admin-status.ts";

export type * from "./admin-status.ts";

export interface AdminOptions {
  /** Address of the scheduler, such as `http://127.0.0.1:7420`. */
  readonly url: string;
  readonly token?: string;
  /** Longest wait for one answer. Default 10 s. */
  readonly timeoutMs?: number;
}

/** Long enough for a commit on a slow disk, short enough for a person at a prompt. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** The scheduler could not be reached, or what answered is no scheduler. Try again, or look at the address. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  constructor(
    readonly url: string,
    readonly detail: string,
  ) {
    super(`cannot reach a scheduler at ${url}: ${detail}`);
  }
}

/**
 * The HTTP side of a scheduler. Each call throws EvenkeelError with the scheduler's code, detail and hint when it refuses,
 * and ConnectError when there is no answer in time.
 */
export class AdminClient {
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;

  /** Throws EvenkeelError `invalid` for a url that is none. */
  constructor({ url, token, timeoutMs = DEFAULT_TIMEOUT_MS }: AdminOptions) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
      throw new EvenkeelError("invalid", `not an address: ${JSON.stringify(url)}`, "write it as http://HOST:PORT");
    }
    this.#base = url.replace(/\/+$/, "");
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  async status(): Promise<Status> {
    return (await this.#ask("GET", "/v1/status")) as Status;
  }

  async version(): Promise<Version> {
    return (await this.#ask("GET", "/version")) as Version;
  }

  async tables(): Promise<readonly TableView[]> {
    const answer = (await this.#ask("GET", "/v1/tables")) as { readonly tables: readonly TableView[] };
    return answer.tables;
  }

  /** Makes a table or changes it; answered when that is committed. */
  async putTable(name: string, request: TableRequest): Promise<TableAnswer> {
    return (await this.#ask("PUT", `/v1/tables/${encodeURIComponent(name)}`, request)) as TableAnswer;
  }

  async deleteTable(name: string): Promise<{ readonly revision: number }> {
    return (await this.#ask("DELETE", `/v1/tables/${encodeURIComponent(name)}`)) as { readonly revision: number };
  }

  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await this.#fetch(method, path, body);
    const text = await response.text().catch((error: unknown) => {
      throw new ConnectError(this.#base, reasonOf(error));
    });
    const value = parseJson(text);
    if (!response.ok) throw this.#refusal(response.status, value);
    if (typeof value !== "object" || value === null) {
      throw new ConnectError(this.#base, `${method} ${path} was not answered with a JSON object`);
    }
    return value;
  }

  async #fetch(method: string, path: string, body: unknown): Promise<Response> {
    try {
      return await fetch(this.#base + path, {
        method,
        headers: {
          accept: "application/json",
          ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
          // Deletes are writes as well, and writes are taken only with this type.
          ...(method !== "GET" && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
    } catch (error) {
      throw new ConnectError(this.#base, reasonOf(error));
    }
  }

  #refusal(status: number, value: unknown): Error {
    const { code, detail, hint } = (typeof value === "object" && value !== null ? value : {}) as Record<
      string,
      unknown
    >;
    const known = typeof code === "string" && Object.hasOwn(ERROR_TABLE, code) ? (code as ErrorCode) : codeOf(status);
    if (known === undefined) return new ConnectError(this.#base, `answered with status ${status}`);
    const what = typeof detail === "string" ? detail : `answered with status ${status}`;
    return typeof hint === "string" ? new EvenkeelError(known, what, hint) : new EvenkeelError(known, what);
  }
}

/** The code for a status that came without one, as from a proxy in between. */
function codeOf(status: number): ErrorCode | undefined {
  const found = Object.entries(ERROR_TABLE).find(([, row]) => row.status === status);
  return found?.[0] as ErrorCode | undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What fetch met: it says only `fetch failed` and keeps the rest in the cause, which for several addresses has errors of its own. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors[0] instanceof Error) return cause.errors[0].message;
  return cause instanceof Error ? cause.message || cause.name : error.message;
}
