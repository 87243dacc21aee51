import { toError, toFailure } from "./answers.ts";
import type { OpenDatabase } from "./database.ts";
import { Engine } from "./engine.ts";
import type { Executor, StartExecutor } from "./operations.ts";

/** Runs operations in the calling thread, each in a turn of its own: for tests, which look into it and need no build. */
export function startInProcess(open: OpenDatabase): StartExecutor {
  return (onLost): Executor => {
    const engine = new Engine(open);
    return {
      async call(name, ...args) {
        // As a message between threads, nothing but data comes through.
        const copies = structuredClone(args);
        await new Promise((resolve) => setImmediate(resolve));
        try {
          return structuredClone(engine.run(name, copies));
        } catch (error) {
          throw toError(toFailure(error));
        } finally {
          tidy(engine, onLost);
        }
      },
      async end() {},
    };
  };
}

function tidy(engine: Engine, onLost: (reason: string) => void): void {
  try {
    engine.tidy();
  } catch (error) {
    onLost(error instanceof Error ? error.message : String(error));
  }
}
