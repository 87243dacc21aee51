import type * as z from "zod";
import { ack, hello, leave, renew, report, update } from "./client-frames.ts";
import { CLOSE, closeReason } from "./close-codes.ts";
import type { ClientFrame, ServerFrame } from "./frames.ts";
import { MAX_JSON_DEPTH } from "./limits.ts";
import { change, event, progress, reset, snapshot } from "./observer-frames.ts";
import { goaway, lease, left, push, refused, welcome } from "./server-frames.ts";

/** A breach of the protocol, as the close that answers it. The reason says which rule and never repeats the input. */
export interface Close {
  readonly code: number;
  readonly reason: string;
}

export type Decoded<Frame> =
  | { readonly ok: true; readonly frame: Frame }
  | { readonly ok: false; readonly close: Close };

const CLIENT_SCHEMAS: ReadonlyMap<string, z.ZodType<ClientFrame>> = new Map<string, z.ZodType<ClientFrame>>([
  ["hello", hello],
  ["renew", renew],
  ["ack", ack],
  ["report", report],
  ["update", update],
  ["leave", leave],
]);

const SERVER_SCHEMAS: ReadonlyMap<string, z.ZodType<ServerFrame>> = new Map<string, z.ZodType<ServerFrame>>([
  ["welcome", welcome],
  ["push", push],
  ["lease", lease],
  ["goaway", goaway],
  ["left", left],
  ["refused", refused],
  ["snapshot", snapshot],
  ["change", change],
  ["progress", progress],
  ["reset", reset],
  ["event", event],
]);

/** Reads a frame of a client. The transport has already bounded its size and checked its UTF-8. */
export function decodeClientFrame(text: string): Decoded<ClientFrame> {
  const frame = readCounter(text);
  if (frame !== undefined) return { ok: true, frame };
  const opened = open(text);
  if (!opened.ok) return opened;
  const schema = CLIENT_SCHEMAS.get(opened.frame.type);
  return schema === undefined ? breach("type: unknown") : check(schema, opened.frame);
}

/** Reads a frame of a scheduler. `frame` is undefined for a type that this version does not know: it is to be ignored. */
export function decodeServerFrame(text: string): Decoded<ServerFrame | undefined> {
  const opened = open(text);
  if (!opened.ok) return opened;
  const schema = SERVER_SCHEMAS.get(opened.frame.type);
  return schema === undefined ? { ok: true, frame: undefined } : check(schema, opened.frame);
}

/** Writes a frame, members in the order they have in it. An empty list is left out where absent means empty. */
export function encodeFrame(frame: ClientFrame | ServerFrame): string {
  switch (frame.type) {
    case "report":
    case "push":
    case "snapshot":
    case "change":
      return JSON.stringify(withoutEmptyLists(frame));
    default:
      return JSON.stringify(frame);
  }
}

function withoutEmptyLists(frame: object): object {
  // `cause` is never left out: that it is there marks the first page.
  return Object.fromEntries(
    Object.entries(frame).filter(([name, value]) => !(Array.isArray(value) && value.length === 0 && name !== "cause")),
  );
}

const ACK_PREFIX = '{"type":"ack","revision":';
const RENEW_PREFIX = '{"type":"renew","n":';

/**
 * Reads ack and renew, by far the most frequent frames, when they are written as our own client writes them. Anything
 * else, be it only a space, takes the general way with the same result.
 */
function readCounter(text: string): ClientFrame | undefined {
  if (text.startsWith(ACK_PREFIX)) {
    const revision = readDigits(text, ACK_PREFIX.length);
    return revision === undefined ? undefined : { type: "ack", revision };
  }
  if (text.startsWith(RENEW_PREFIX)) {
    const n = readDigits(text, RENEW_PREFIX.length);
    return n === undefined || n === 0 ? undefined : { type: "renew", n };
  }
  return undefined;
}

const ZERO = 48;
const CLOSING_BRACE = 125;

/** The number from `from` to a closing brace that ends the text; at most 15 digits, so it is exact. */
function readDigits(text: string, from: number): number | undefined {
  const end = text.length - 1;
  if (end <= from || end - from > 15 || text.charCodeAt(end) !== CLOSING_BRACE) return undefined;
  if (text.charCodeAt(from) === ZERO && end - from > 1) return undefined;
  let value = 0;
  for (let at = from; at < end; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}

function open(text: string): Decoded<{ readonly type: string }> {
  if (isTooDeep(text)) return breach(`nested deeper than ${MAX_JSON_DEPTH}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return breach("not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return breach("not a JSON object");
  if (!Object.hasOwn(value, "type")) return breach("type: is missing");
  const { type } = value as { readonly type: unknown };
  return typeof type === "string" ? { ok: true, frame: value as { type: string } } : breach("type: must be text");
}

function check<Frame>(schema: z.ZodType<Frame>, value: { readonly type: string }): Decoded<Frame> {
  const result = schema.safeParse(value);
  if (result.success) return { ok: true, frame: result.data };
  const issue = result.error.issues[0];
  // A path has only names of the schema and indexes: unknown members and label keys never come into it.
  const path = [value.type, ...(issue?.path ?? [])].join(".");
  return breach(`${path}: ${issue?.message ?? "is not valid"}`);
}

function breach(reason: string): { readonly ok: false; readonly close: Close } {
  return { ok: false, close: { code: CLOSE.badMessage, reason: closeReason(reason) } };
}

const QUOTE = 34;
const BACKSLASH = 92;
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE] = [91, 93, 123];

/** True if arrays and objects nest deeper than the limit. One pass that allocates nothing, before anything is built. */
function isTooDeep(text: string): boolean {
  if (text.length <= MAX_JSON_DEPTH) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (code === CLOSING_BRACE || code === CLOSE_BRACKET) depth--;
  }
  return false;
}
