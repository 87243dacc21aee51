import type { Entry, RevokeEntry, WholePush } from "./holdings.ts";

/** PROTOCOL §4.2: the frames of a scheduler, as far as an executor needs their members. */

export interface Welcome {
  readonly type: "welcome";
  readonly cluster: string;
  readonly incarnation: string;
  readonly term: number;
  readonly session: string;
  readonly resumed: boolean;
  readonly status: "pending" | "assigned";
  readonly waitingFor?: string;
  readonly lease: { readonly durationMs: number; readonly renewMs: number; readonly clientMarginMs: number };
  readonly stamp: string;
}

export interface Push {
  readonly type: "push";
  readonly revision: number;
  readonly base: number | null;
  readonly grant?: readonly Entry[];
  readonly revoke?: readonly RevokeEntry[];
  readonly more?: boolean;
}

export interface LeaseAnswer {
  readonly type: "lease";
  readonly n: number;
  readonly durationMs: number;
  readonly renewMs: number;
  readonly stamp?: string;
}

export interface Refused {
  readonly type: "refused";
  readonly code: number;
  readonly reason: string;
  readonly retryAfterMs?: number;
}

export type Message =
  | Welcome
  | Push
  | LeaseAnswer
  | Refused
  | { readonly type: "goaway"; readonly afterMs: number; readonly reason: string }
  | { readonly type: "left" };

const KNOWN: ReadonlySet<unknown> = new Set(["welcome", "push", "lease", "refused", "goaway", "left"]);

/** Reads a frame; undefined for a type that this client does not know, which is ignored. Throws at what is no frame. */
export function readMessage(text: string): Message | undefined {
  const value = JSON.parse(text) as Message;
  if (typeof value !== "object" || value === null || typeof value.type !== "string") throw new Error("not a frame");
  return KNOWN.has(value.type) ? value : undefined;
}

/** Puts the pages of a push together. Its pages die with the socket, and so does this. */
export class Pages {
  #pages: Push[] = [];

  /** The whole push, once this is its last page. Throws if the pages do not belong together. */
  add(page: Push): WholePush | undefined {
    const [first = page] = this.#pages;
    if (page.revision !== first.revision || page.base !== first.base) throw new Error("pages of two pushes");
    this.#pages.push(page);
    if (page.more === true) return undefined;
    const pages = this.#pages;
    this.#pages = [];
    return {
      revision: page.revision,
      base: page.base,
      grant: pages.flatMap(({ grant = [] }) => grant),
      revoke: pages.flatMap(({ revoke = [] }) => revoke),
    };
  }
}
