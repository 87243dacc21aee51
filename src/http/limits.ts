/** What a caller of the HTTP API can grow, and how far. */

/** Body of a write: a million short keys, the most that a table may have. */
export const MAX_BODY_BYTES = 16_777_216;

/**
 * Bodies above this are handled one at a time: reading a million keys takes some hundred MB and half a second in which
 * nothing else runs, and several at once would take as much each.
 */
export const LARGE_BODY_BYTES = 1_048_576;

/** All headers of a request together. Ours are a few hundred bytes; a token may take some thousand. */
export const MAX_HEADER_BYTES = 16_384;

/** How long the headers, and the whole request, may take; how often that is looked at. */
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 30_000;
export const TIMEOUT_CHECK_MS = 1_000;

/** Connections of all kinds, sessions included: somewhat more than there may be sessions, so that one too many gets an answer. */
export const MAX_CONNECTIONS = 19_500;

/** How long requests under way may go on when the server ends. */
export const CLOSE_TIMEOUT_MS = 2_000;

/** Pairs of a selector, as labels in the protocol. */
export const MAX_SELECTOR_PAIRS = 32;
export const MAX_SELECTOR_VALUE_CHARS = 256;
