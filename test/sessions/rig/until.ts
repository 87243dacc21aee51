/** Longest that a test waits for what has to come, unless it says otherwise. */
const DEADLINE_MS = 12_000;

/** Waits until `get` gives something; fails after a deadline, saying what was waited for and what there was instead. */
export async function until<T>(
  what: string,
  get: () => T | undefined | false,
  { withinMs = DEADLINE_MS, instead = () => "" }: { withinMs?: number; instead?: () => string } = {},
): Promise<T> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const value = get();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > giveUpAt) throw new Error(`waited ${withinMs} ms in vain for ${what} ${instead()}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 5));
  }
}

/** Watches for a while that something stays true, and fails with the moment at which it did not. */
export async function stays(what: string, forMs: number, holds: () => boolean): Promise<void> {
  const startedAt = performance.now();
  await until(
    what,
    () => {
      const elapsed = performance.now() - startedAt;
      if (!holds()) throw new Error(`no longer ${what}, after ${Math.round(elapsed)} ms`);
      return elapsed >= forMs;
    },
    { withinMs: forMs + DEADLINE_MS },
  );
}

/** A gate that holds handlers up until a test opens it. */
export class Gate {
  #open = false;
  #waiting: (() => void)[] = [];
  /** How many wait in it. */
  get count(): number {
    return this.#waiting.length;
  }

  readonly pass = (): Promise<void> => {
    if (this.#open) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  };

  open(): void {
    this.#open = true;
    for (const go of this.#waiting.splice(0)) go();
  }
}
