/** What peers of the gateway can grow beside their frames (those limits are the protocol's), and how far. */

/** Sessions: a process holds at most about 20,000 sockets, and an idle session takes some 10 KB. */
export const MAX_SESSIONS = 19_000;

/**
 * Sessions that have not said hello. It follows the upgrade by a round trip, so even a fleet of 10,000 that comes back at
 * once keeps few of them waiting; who only holds sockets open is kept from taking them all.
 */
export const MAX_PENDING_HELLOS = 5_000;

/** How long a closing handshake may take before the socket is torn down: peers that do not read would never finish it. */
export const CLOSE_DEADLINE_MS = 2_000;

/**
 * Bytes that may wait for a slow peer besides its last push, which may be large. The kernel takes about 4 MB before
 * anything waits here, and what is sent without being asked for is small.
 */
export const MAX_BUFFERED_BYTES = 4_194_304;

/** Fragments of a frame and chunks of a socket that ws keeps for one unfinished frame: each costs more than its bytes. */
export const MAX_FRAGMENTS = 1_024;
export const MAX_BUFFERED_CHUNKS = 8_192;

/** What a peer that sent too much is asked to wait. */
export const TOO_MANY_RETRY_MS = 5_000;

/** How long a refused request's socket is read on, so that the answer is not lost to a reset. */
export const LINGER_MS = 1_000;

/** Entries of each list of a push that its log line shows. */
export const MAX_LOGGED_ENTRIES = 64;

/** Those that tests make smaller. */
export interface GatewayLimits {
  readonly maxSessions: number;
  readonly maxPendingHellos: number;
  readonly maxBufferedBytes: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  maxSessions: MAX_SESSIONS,
  maxPendingHellos: MAX_PENDING_HELLOS,
  maxBufferedBytes: MAX_BUFFERED_BYTES,
};
