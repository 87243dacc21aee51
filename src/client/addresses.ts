import { MAX_LEADER_HOPS, SESSION_PATH } from "../protocol/limits.ts";

/** An address that cannot be used. */
export class AddressError extends Error {
  override readonly name = "AddressError";
}

const TRANSPORTS: ReadonlyMap<string, string> = new Map([
  ["http:", "ws:"],
  ["ws:", "ws:"],
  ["https:", "wss:"],
  ["wss:", "wss:"],
]);

/**
 * The WebSocket address of the session endpoint for what a person wrote: http and https are taken for ws and wss, the
 * path is added where it is missing. Throws AddressError.
 */
export function sessionAddress(written: string): string {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const transport = TRANSPORTS.get(url?.protocol ?? "");
  if (url === undefined || transport === undefined) {
    throw new AddressError(`not an address: ${JSON.stringify(written)}; write it as ws://HOST:PORT or wss://HOST`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "") {
    throw new AddressError("an address must not carry credentials or a query; give the token as `token`");
  }
  // The scheme of a URL object cannot be set across kinds, so the text is put together anew.
  const path = url.pathname.replace(/\/+$/, "");
  return `${transport}//${url.host}${path.endsWith(SESSION_PATH) ? path : path + SESSION_PATH}`;
}

/** Where to connect: the configured addresses in turn, and for a while the leader that one of them named. */
export class Addresses {
  readonly #configured: readonly string[];
  #index = 0;
  #leader: string | undefined;
  #hops = 0;

  /** Addresses as `sessionAddress` gives them, at least one. */
  constructor(configured: readonly string[]) {
    this.#configured = configured;
  }

  current(): string {
    return this.#leader ?? this.#configured[this.#index] ?? "";
  }

  /** Goes on to the next configured address. */
  next(): void {
    if (this.#leader === undefined) this.#index = (this.#index + 1) % this.#configured.length;
    this.#leader = undefined;
  }

  /** A session came about: hops are counted anew. */
  arrived(): void {
    this.#hops = 0;
  }

  /**
   * Turns to the leader that the current address named. Refused, with false: more than MAX_LEADER_HOPS in a row, a host
   * that is neither configured nor the current one, or plain text from an encrypted connection.
   */
  hop(leader: string): boolean {
    const target = readAddress(leader);
    if (target === undefined || this.#hops >= MAX_LEADER_HOPS || !this.#mayGo(target)) return false;
    this.#hops++;
    this.#leader = target;
    return true;
  }

  #mayGo(target: string): boolean {
    const [from, to] = [new URL(this.current()), new URL(target)];
    if (from.protocol === "wss:" && to.protocol !== "wss:") return false;
    return this.#configured.includes(target) || to.hostname === from.hostname;
  }
}

function readAddress(written: string): string | undefined {
  try {
    return sessionAddress(written);
  } catch {
    return undefined;
  }
}
