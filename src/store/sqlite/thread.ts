import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { type Message, type Request, toError } from "./answers.ts";
import type { Executor, OperationName, Operations } from "./operations.ts";

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** Runs operations in a thread. It keeps the process alive only while one is under way. */
export class StoreThread implements Executor {
  readonly #worker: Worker;
  readonly #onLost: (reason: string) => void;
  readonly #waiting = new Map<number, Waiting>();
  /** Operations that the thread has not answered, whether anybody still waits for them or not. */
  readonly #underWay = new Set<number>();
  #whenIdle: () => void = () => {};
  #nextId = 0;
  /** Why nothing is done any more. */
  #over: string | undefined;

  /** `onLost` is told once that nothing is done any more, and why; not after `end`. */
  constructor(onLost: (reason: string) => void, file = workerFile()) {
    this.#onLost = onLost;
    // Without this process's own flags, which may be none that a thread takes.
    this.#worker = new Worker(file, { execArgv: [] });
    this.#worker.unref();
    this.#worker.on("message", (message: Message) => this.#receive(message));
    this.#worker.on("error", (error: Error) => this.#lose(`the store's thread failed: ${error.message}`));
    this.#worker.on("exit", (code) => {
      this.#lose(`the store's thread ended with ${code}`);
      this.#underWay.clear();
      this.#whenIdle();
    });
  }

  call<K extends OperationName>(name: K, ...args: Parameters<Operations[K]>): Promise<ReturnType<Operations[K]>> {
    if (this.#over !== undefined) return Promise.reject(new Error(this.#over));
    const request: Request<K> = { id: this.#nextId++, name, args };
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.id, { resolve, reject });
      this.#underWay.add(request.id);
      this.#worker.ref();
      this.#worker.postMessage(request);
    });
  }

  /** A thread that is ended within SQLite's own code takes the process with it, so what is under way is waited for. */
  async end(): Promise<void> {
    this.#finish("the store was closed");
    if (this.#underWay.size > 0) {
      this.#worker.ref();
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    await this.#worker.terminate();
  }

  #receive(message: Message): void {
    switch (message.type) {
      case "answer":
        return this.#take(message.id)?.resolve(message.value as never);
      case "failure":
        return this.#take(message.id)?.reject(toError(message.failure));
      case "lost":
        return this.#onLost(message.reason);
      default:
        return message satisfies never;
    }
  }

  #take(id: number): Waiting | undefined {
    this.#underWay.delete(id);
    if (this.#underWay.size === 0) this.#whenIdle();
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref();
    return waiting;
  }

  #lose(reason: string): void {
    if (this.#over !== undefined) return;
    this.#finish(reason);
    this.#onLost(reason);
  }

  #finish(reason: string): void {
    this.#over ??= reason;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Error(this.#over));
  }
}

/** Beside this file once built. Node cannot run the source, so from there it is the last build's. */
function workerFile(): URL {
  if (!import.meta.url.endsWith(".ts")) return new URL("./worker.js", import.meta.url);
  const built = new URL("../../../dist/store/sqlite/worker.js", import.meta.url);
  if (!existsSync(built)) throw new Error("the store's thread runs what was built, and nothing was: npm run build");
  return built;
}
