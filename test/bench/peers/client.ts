import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { FRAMINGS, type Framing, type FramingKind, pongFrame, upgradeRequest } from "../framing.ts";
import { serve } from "../peer.ts";
import { idOf } from "../worlds.ts";

/** A process with many executors that speak the wire by hand, to a scheduler or to a bare server. */

export interface OpenOptions {
  readonly port: number;
  readonly count: number;
  readonly framing: FramingKind;
  /** Whether sockets begin with the upgrade. */
  readonly upgrade: boolean;
  /** Kind of the executors' ids. */
  readonly ids: string;
  /** Number of the first. Default 0. */
  readonly from?: number;
  /** Hellos that these executors have said before. Default: none. */
  readonly attempts?: number;
  /** Says hello at once, and waits until each has its welcome. */
  readonly hello?: { readonly capacity?: number };
}

/** Sockets that are opened at once: more would only wait in the kernel's queue. */
const OPENING = 100;

class Executor {
  readonly socket: Socket;
  readonly id: string;
  messages = 0;
  welcomes = 0;
  pushes = 0;
  /** Of its last hello. */
  attempt = 0;
  onMessage: () => void = () => {};
  readonly #framing: Framing;
  #n = 0;

  constructor(socket: Socket, id: string, framing: Framing) {
    this.socket = socket;
    this.id = id;
    this.#framing = framing;
    socket.setNoDelay(true);
    socket.on("error", () => {});
  }

  listen(): void {
    const reader = this.#framing.newReader(
      (text) => this.#receive(text),
      (payload) => this.socket.write(pongFrame(payload)),
    );
    this.socket.on("data", reader);
  }

  send(frame: object): void {
    this.socket.write(this.#framing.encode(JSON.stringify(frame)));
  }

  hello(more: { readonly capacity?: number } = {}): void {
    const [executor, instance, attempt] = [this.id, `${this.id}-1`, ++this.attempt];
    this.send({ type: "hello", role: "executor", executor, instance, attempt, ...more });
  }

  renew(): void {
    this.send({ type: "renew", n: ++this.#n });
  }

  #receive(text: string): void {
    this.messages++;
    if (text.startsWith('{"type":"welcome"')) this.welcomes++;
    else if (text.startsWith('{"type":"push"')) {
      this.pushes++;
      if (isAutomatic) this.#obey(text);
    }
    this.onMessage();
  }

  #obey(text: string): void {
    const {
      revision,
      grant = [],
      revoke = [],
    } = JSON.parse(text) as {
      readonly revision: number;
      readonly grant?: readonly object[];
      readonly revoke?: readonly { readonly stopMs: number }[];
    };
    const released = revoke.map(({ stopMs: _stopMs, ...entry }) => entry);
    this.send({ type: "report", ready: grant, ...(released.length === 0 ? {} : { released }) });
    this.send({ type: "ack", revision });
  }
}

const executors: Executor[] = [];
/** Whether pushes are acknowledged and done at once. */
let isAutomatic = false;
/** Messages up to the last mark. */
let marked = 0;

const commands = {
  open: async ({ count, from = 0, ids, hello, ...options }: OpenOptions): Promise<void> => {
    for (let opened = 0; opened < count; opened += OPENING) {
      const batch = Array.from({ length: Math.min(OPENING, count - opened) }, (_, at) =>
        openOne(options, idOf(ids, from + opened + at)),
      );
      const fresh = await Promise.all(batch);
      executors.push(...fresh);
      if (hello === undefined) continue;
      for (const executor of fresh) executor.hello(hello);
      await until(() => fresh.every(({ welcomes }) => welcomes > 0));
    }
  },
  /** Ends all sockets. */
  close: async (): Promise<void> => {
    const gone = executors.splice(0).map(({ socket }) => {
      const close = once(socket, "close");
      socket.destroy();
      return close;
    });
    await Promise.all(gone);
  },
  automatic: (value: boolean) => {
    isAutomatic = value;
  },
  /** Everyone says hello at once. Resolves when each has had a push since. */
  helloAll: async (hello: { readonly capacity?: number }): Promise<void> => {
    const before = executors.map(({ pushes }) => pushes);
    for (const executor of executors) executor.hello(hello);
    await until(() => executors.every(({ pushes }, at) => pushes > (before[at] ?? 0)));
  },
  /** One after the other says hello and waits for its push: milliseconds each took. */
  helloInTurn: async (hello: { readonly capacity?: number }): Promise<readonly number[]> => {
    const took: number[] = [];
    for (const executor of executors) {
      const { pushes } = executor;
      const pushed = new Promise<void>((resolve) => {
        executor.onMessage = () => executor.pushes > pushes && resolve();
      });
      const startedAt = performance.now();
      executor.hello(hello);
      await pushed;
      took.push(performance.now() - startedAt);
    }
    return took;
  },
  /** Resolves when each has had a push. */
  pushed: () => until(() => executors.every(({ pushes }) => pushes > 0)),
  mark: () => {
    marked = total();
  },
  /** Resolves when all together have had so many messages since the last mark. */
  received: (count: number) => until(() => total() - marked >= count),
  /** Each sends `each` acks, one a round, or all of them at once; then everyone a renew, whose answers show that all was read. */
  acks: async ({ each, revision, atOnce }: { each: number; revision: number; atOnce: boolean }): Promise<void> => {
    marked = total();
    for (const executor of executors) if (atOnce) executor.socket.cork();
    for (let round = 0; round < each; round++) {
      for (const executor of executors) executor.send({ type: "ack", revision });
      if (!atOnce) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const executor of executors) {
      executor.renew();
      if (atOnce) executor.socket.uncork();
    }
    await until(() => total() - marked >= executors.length);
  },
  /** Everyone renews once, and has an answer. */
  barrier: async (): Promise<void> => {
    marked = total();
    for (const executor of executors) executor.renew();
    await until(() => total() - marked >= executors.length);
  },
  /** Renewals at an even rate, each executor once every `everyMs`. */
  renewals: async ({ everyMs, durationMs }: { everyMs: number; durationMs: number }): Promise<number> => {
    const startedAt = performance.now();
    let sent = 0;
    for (let passed = 0; passed < durationMs; passed = performance.now() - startedAt) {
      const due = Math.floor((passed / everyMs) * executors.length);
      for (; sent < due; sent++) executors[sent % executors.length]?.renew();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return sent;
  },
};

export type ClientCommands = typeof commands;

function total(): number {
  return executors.reduce((sum, { messages }) => sum + messages, 0);
}

/** Waits for a condition that messages bring about. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

async function openOne(
  options: Pick<OpenOptions, "port" | "framing" | "upgrade" | "attempts">,
  id: string,
): Promise<Executor> {
  const socket = connect({ port: options.port, host: "127.0.0.1" });
  await once(socket, "connect");
  const executor = new Executor(socket, id, FRAMINGS[options.framing]);
  executor.attempt = options.attempts ?? 0;
  if (options.upgrade) {
    socket.write(upgradeRequest(options.port));
    await upgraded(socket);
  }
  executor.listen();
  return executor;
}

/** The server says nothing before the hello, so the answer's end is the end of what has come. */
function upgraded(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const onData = (chunk: Buffer): void => {
      answer += chunk.toString("latin1");
      if (!answer.endsWith("\r\n\r\n")) return;
      socket.off("data", onData);
      if (answer.startsWith("HTTP/1.1 101")) resolve();
      else reject(new Error(`the upgrade was answered by ${answer.slice(0, 200)}`));
    };
    socket.on("data", onData);
    socket.once("close", () => reject(new Error("closed during the upgrade")));
  });
}

serve(commands);
