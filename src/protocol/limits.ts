/**
 * Everything a peer can grow, and how far. Sizes of text are counted in Unicode code points ("characters"), sizes of
 * frames and close reasons in bytes of UTF-8, durations in milliseconds.
 */

/** Path of the session endpoint and the WebSocket subprotocol that it speaks. */
export const SESSION_PATH = "/v1/session";
export const SUBPROTOCOL = "evenkeel.v1";

/** Second subprotocol value of a browser: this, followed by a single-use ticket. */
export const TICKET_PREFIX = "evenkeel.ticket.";

/** Largest frame, both ways. Parsing one takes about 2 ms, so no single frame holds the loop; what is larger is paged. */
export const MAX_FRAME_BYTES = 262_144;

/**
 * Deepest nesting of arrays and objects in a frame. The deepest member of this version nests four deep; the rest is room
 * for unknown members. JSON.parse takes any depth, but what works on the result recursively does not.
 */
export const MAX_JSON_DEPTH = 32;

/** Labels of an executor. Selectors are matched against each of them at every plan, and observers are sent them all. */
export const MAX_LABELS = 32;
export const MAX_LABEL_CHARS = 256;

/** Longest `address`: room for a URL with a path. */
export const MAX_ADDRESS_CHARS = 512;

/** Longest reason, note or other sentence in a frame: what a log line still shows whole. */
export const MAX_REASON_CHARS = 512;

export { MAX_KEY_CHARS } from "../model/table-limits.ts";

/** Longest `stamp`. The scheduler's own take about 100 characters. */
export const MAX_STAMP_CHARS = 512;

/** Highest weight; beyond it quotas of the others would round to nothing. The lowest is anything above 0. */
export const MAX_WEIGHT = 1_000_000;

/** Entries of `cause` in a push, and names in each of their lists: a push says why, the history has it in full. */
export const MAX_CAUSES = 16;
export const MAX_CAUSE_NAMES = 32;

/** RFC 6455: a close frame carries at most 125 bytes, two of which are the code. */
export const MAX_CLOSE_REASON_BYTES = 123;

/** How long after the upgrade a hello may take. A slow link needs a second; a silent peer shall not hold a socket. */
export const HELLO_TIMEOUT_MS = 5_000;

/** How often the scheduler pings at least, and after how much silence a peer counts as gone: two pings lost and a half. */
export const PING_INTERVAL_MS = 10_000;
export const SILENCE_TIMEOUT_MS = 25_000;

/** How long a client that knows no renew period yet waits for the answer to its hello. */
export const FIRST_ANSWER_TIMEOUT_MS = 4_000;

/** Frames a session may send: many times what a busy executor does, and a burst for the reports after a resynchronisation. */
export const MAX_MESSAGES_PER_SECOND = 200;
export const MAX_MESSAGE_BURST = 1_000;

/** Full-jitter backoff of a client that reconnects, and how many `leader` addresses in a row it follows. */
export const RECONNECT_MIN_MS = 100;
export const RECONNECT_MAX_MS = 10_000;
export const MAX_LEADER_HOPS = 3;
