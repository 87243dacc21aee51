import { assert } from "../model/errors.ts";
import type { Clock, Timer } from "./ports.ts";

/** Longest delay that Node's timers keep: a longer one, or NaN, would fire after 1 ms. */
export const MAX_DELAY_MS = 2_147_483_647;

/** The machine's clocks. Times are whole milliseconds: they end up in frames and logs, and no rule needs finer ones. */
export const realClock: Clock = {
  now: () => Math.floor(performance.now()),
  wall: () => Date.now(),
  setTimer(delayMs: number, callback: () => void): Timer {
    assert(delayMs >= 0 && delayMs <= MAX_DELAY_MS, `a timer's delay of ${delayMs} ms`);
    const timer = setTimeout(callback, Math.ceil(delayMs));
    return { cancel: () => clearTimeout(timer) };
  },
};
