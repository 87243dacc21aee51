import type { Clock, Timer } from "../driver/ports.ts";
import { PING_INTERVAL_MS, SILENCE_TIMEOUT_MS } from "../protocol/limits.ts";

/**
 * Pings that must go unanswered before a peer counts as silent. While our own loop stood still nothing was asked, and then
 * the time since the last answer proves nothing.
 */
const MIN_UNANSWERED = 2;

export interface HeartbeatOptions {
  readonly clock: Clock;
  /** In [0, 1): where in the interval the first ping falls, so that sessions that came at once are not pinged at once. */
  readonly phase: number;
  readonly ping: () => void;
  /** Called once, when nothing was answered for too long. */
  readonly onSilent: () => void;
}

/** Pings one peer, and notices when it no longer answers. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #answeredAt: number;
  #pingAt: number;
  #unanswered = 0;
  #timer: Timer | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    const now = options.clock.now();
    this.#answeredAt = now;
    this.#pingAt = now + Math.floor(PING_INTERVAL_MS * options.phase);
    this.#arm(now);
  }

  /** The peer answered a ping. */
  answer(): void {
    this.#answeredAt = this.#options.clock.now();
    this.#unanswered = 0;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(now: number): void {
    const silentAt =
      this.#unanswered < MIN_UNANSWERED ? Number.POSITIVE_INFINITY : this.#answeredAt + SILENCE_TIMEOUT_MS;
    const delayMs = Math.max(0, Math.min(this.#pingAt, silentAt) - now);
    this.#timer = this.#options.clock.setTimer(delayMs, () => this.#wake());
  }

  #wake(): void {
    const now = this.#options.clock.now();
    if (this.#unanswered >= MIN_UNANSWERED && now >= this.#answeredAt + SILENCE_TIMEOUT_MS) {
      this.#options.onSilent();
      return;
    }
    if (now >= this.#pingAt) {
      this.#unanswered++;
      this.#pingAt = now + PING_INTERVAL_MS;
      this.#options.ping();
    }
    this.#arm(now);
  }
}
