import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/**
 * Processes of the bench, which ask each other for things: servers and clients in processes of their own, so that the CPU
 * of one is not counted as the other's.
 */

/** What a process can be asked; arguments and answers are copied. */
export type Commands = Readonly<Record<string, (argument: never) => unknown>>;

interface Question {
  readonly id: number;
  readonly command: string;
  readonly argument: unknown;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** The other end of `serve`, in a child process. */
export class Peer<Served extends Commands> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #asked = 0;

  /** Starts a file of this folder (without its ending) as a process. */
  constructor(file: string) {
    const path = new URL(`./${file}.js`, import.meta.url).pathname;
    this.#child = fork(path, { execArgv: ["--expose-gc"], serialization: "advanced" });
    this.#child.on("message", (message) => this.#settle(message as Answer));
    this.#child.on("exit", (code) => this.#failAll(new Error(`${file} ended with code ${code}`)));
  }

  ask<Name extends keyof Served & string>(
    command: Name,
    ...argument: Parameters<Served[Name]>
  ): Promise<Awaited<ReturnType<Served[Name]>>> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#child.send({ id, command, argument: argument[0] } satisfies Question);
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#waiting.clear();
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }

  #settle({ id, value, error }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(error));
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Answers what the parent process asks. Ends with it. */
export function serve(commands: Commands): void {
  process.on("message", (message) => {
    const { id, command, argument } = message as Question;
    const run = commands[command] as ((argument: unknown) => unknown) | undefined;
    void Promise.resolve()
      .then(() => {
        if (run === undefined) throw new Error(`there is no command ${command}`);
        return run(argument);
      })
      .then(
        (value) => process.send?.({ id, value } satisfies Answer),
        (error: Error) => process.send?.({ id, error: error.stack ?? String(error) } satisfies Answer),
      );
  });
  process.on("disconnect", () => process.exit());
}

/** Runs `body` with processes that are gone afterwards, however it ends. */
export async function withPeers<Result>(
  peers: readonly { stop(): Promise<void> }[],
  body: () => Promise<Result>,
): Promise<Result> {
  try {
    return await body();
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
}
