/** What is asked of a process by SIGTERM or SIGINT. */

/** A repeat this soon is the same wish: a terminal and the npm in between both pass one Ctrl-C on. */
const REPEAT_MS = 500;

const SIGNALS: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"];

/** Listens for SIGTERM and SIGINT from its making on. The first asks for an orderly end; a second ends the process at once. */
export class StopSignals {
  /** Resolves with the first signal. */
  readonly first: Promise<NodeJS.Signals>;
  readonly #handle: (signal: NodeJS.Signals) => void;

  constructor(note: (line: string) => void) {
    let firstAt: number | undefined;
    let tell: (signal: NodeJS.Signals) => void = () => {};
    this.first = new Promise((resolve) => {
      tell = resolve;
    });
    this.#handle = (signal) => {
      const now = performance.now();
      if (firstAt === undefined) {
        firstAt = now;
        tell(signal);
      } else if (now - firstAt > REPEAT_MS) {
        note(`evenkeel: ${signal} again; ending at once`);
        process.exit(1);
      }
    };
    for (const name of SIGNALS) process.on(name, this.#handle);
  }

  /** Lets go of the signals. */
  dispose(): void {
    for (const name of SIGNALS) process.removeListener(name, this.#handle);
  }
}
