import { PartitionError } from "../../src/client/errors.ts";
import type { ExecutorHandlers } from "../../src/client/handler-runner.ts";
import type { ClientSocket, SocketHandlers } from "../../src/client/ports.ts";
import { type Executor, startExecutor } from "../../src/client/running-executor.ts";
import type { Chance } from "./chance.ts";
import type { Machine } from "./machine.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Timeline } from "./timeline.ts";
import { type Parcel, type Path, type Side, Wire } from "./wire.ts";

/** How the owner's code of a process behaves. Durations are the longest. */
export interface Habits {
  readonly loadMs: number;
  readonly unloadMs: number;
  /** Share of loads that fail. */
  readonly failing: number;
  /** Share of failures that are for good. */
  readonly failingForGood: number;
  /** Share of unloads that never end. */
  readonly hanging: number;
}

export interface ProcessOptions {
  readonly executor: string;
  readonly instance: string;
  readonly weight: number;
  readonly capacity: number | undefined;
  readonly stopTimeoutMs: number;
  readonly habits: Habits;
}

export interface ProcessPorts {
  readonly timeline: Timeline;
  readonly chance: Chance;
  readonly machine: Machine;
  readonly path: Path;
  /** The scheduler that listens now, if any. */
  scheduler(): Scheduler | undefined;
  trace(line: string): void;
  fail(error: Error): void;
  /** A push was handled: it may have given it something. */
  pushed(process: Process): void;
}

/** An executor: the real SDK in a process of its own. */
export class Process {
  readonly name: string;
  readonly options: ProcessOptions;
  readonly machine: Machine;
  readonly path: Path;
  readonly executor: Executor;
  habits: Habits;
  /** Wire of its newest dial. */
  wire: Wire | undefined;
  /** How it ended, once it has. */
  ended: string | undefined;
  isLeaving = false;
  /** It slept, or had its clock set back: the wall clock shows a sleep only where nobody does the other. */
  clockTrouble: "none" | "slept" | "set-back" = "none";
  readonly #ports: ProcessPorts;
  readonly #loaded = new Set<string>();

  constructor(options: ProcessOptions, ports: ProcessPorts) {
    const { executor, instance, weight, capacity, stopTimeoutMs } = options;
    this.name = `${executor}#${instance}`;
    this.options = options;
    this.habits = options.habits;
    this.machine = ports.machine;
    this.path = ports.path;
    this.#ports = ports;
    this.executor = startExecutor(
      {
        url: "ws://scheduler",
        executor,
        instance,
        weight,
        ...(capacity === undefined ? {} : { capacity }),
        stopTimeoutMs,
        logger: this.#logger(),
      },
      this.#handlers(),
      { clock: ports.machine, random: ports.chance.fork("jitter"), dial: (_url, handlers) => this.#dial(handlers) },
    );
    void this.executor.closed.then((closed) => {
      this.ended = closed.reason;
      ports.trace(`${this.name} ended: ${closed.reason}`);
    });
  }

  /** It lives, whether it runs at the moment or not. */
  get isAlive(): boolean {
    return !this.machine.isDead && this.ended === undefined;
  }

  /** The owner's code cannot go on with one of its partitions. */
  giveUp(pick: number, retryable: boolean): void {
    const served = [...this.#loaded];
    const [table, partition] = served[pick % Math.max(1, served.length)]?.split("/") ?? [];
    if (table === undefined) return;
    this.executor.fail(table, Number(partition), new PartitionError("cannot go on", { retryable }));
  }

  kill(noticeMs: number): void {
    this.machine.kill();
    this.wire?.break(0, noticeMs);
  }

  #handlers(): ExecutorHandlers {
    const chance = this.#ports.chance.fork("handlers");
    return {
      onGrant: async ({ table, partition }) => {
        const { loadMs, failing, failingForGood } = this.habits;
        if (loadMs > 0) await this.#pause(chance.between(0, loadMs));
        if (!chance.hits(failing)) return void this.#loaded.add(`${table}/${partition}`);
        const retryable = !chance.hits(failingForGood);
        throw new PartitionError("cannot load", { retryable });
      },
      onRevoke: async ({ table, partition }) => {
        this.#loaded.delete(`${table}/${partition}`);
        const { unloadMs, hanging } = this.habits;
        if (chance.hits(hanging)) return new Promise(() => {});
        if (unloadMs > 0) await this.#pause(chance.between(0, unloadMs));
      },
    };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.machine.setTimer(ms, resolve));
  }

  #logger() {
    const log = (fields: Readonly<Record<string, unknown>>, event: string) => {
      this.#ports.trace(`${this.name} ${event} ${JSON.stringify(fields)}`);
      const problem = String(fields["problem"] ?? "");
      if (problem.includes("broke the protocol")) this.#ports.fail(new Error(`${this.name}: ${problem}`));
    };
    return { debug: log, info: log, warn: log, error: log };
  }

  #dial(handlers: SocketHandlers): ClientSocket {
    const dialed = new DialedSocket(this.#ports, handlers, () => this.#ports.pushed(this));
    this.wire = dialed.wire;
    return dialed;
  }
}

/** How our own encoder begins a push. */
const PUSH_PREFIX = '{"type":"push"';

/** Longest time after which a refused connection fails, and the share of those that hang instead. */
const REFUSAL_MS = 30;
const HANGING = 0.4;

/** The client's side of one connection. */
class DialedSocket implements ClientSocket, Side {
  readonly wire: Wire;
  readonly #ports: ProcessPorts;
  readonly #handlers: SocketHandlers;
  readonly #onHandled: () => void;
  #state: "dialing" | "open" | "over" = "dialing";

  constructor(ports: ProcessPorts, handlers: SocketHandlers, onHandled: () => void) {
    this.#ports = ports;
    this.#handlers = handlers;
    this.#onHandled = onHandled;
    const { timeline, path, chance } = ports;
    this.wire = new Wire(timeline, path, this);
    if (path.refusesUntil > timeline.now) this.#refuse();
    else timeline.after(chance.between(0.1, path.latencyMs), () => this.#arrive());
  }

  send(text: string): void {
    if (this.#state !== "open") return;
    this.#ports.trace(`  up ${text}`);
    this.wire.sendUp({ kind: "text", text });
  }

  close(code: number, reason: string): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.wire.sendUp({ kind: "close", code, reason });
  }

  heard(parcel: Parcel): void {
    this.#ports.machine.enter(() => {
      if (this.#state === "over") return;
      switch (parcel.kind) {
        case "open":
          this.#state = "open";
          return this.#handlers.opened();
        case "text":
          this.#ports.trace(`  down ${parcel.text}`);
          this.#handlers.received(parcel.text);
          if (parcel.text.startsWith(PUSH_PREFIX)) this.#onHandled();
          return;
        case "close":
          this.#state = "over";
          return this.#handlers.ended({ kind: "closed", code: parcel.code, reason: parcel.reason });
        default:
          return parcel satisfies never;
      }
    });
  }

  lost(): void {
    this.#fail({ kind: "closed", code: 1006, reason: "" });
  }

  #arrive(): void {
    const scheduler = this.#ports.scheduler();
    if (this.#state === "over" || this.wire.isBroken) return;
    if (scheduler === undefined) return this.#refuse();
    scheduler.machine.enter(() => {
      if (!this.wire.isBroken) scheduler.accept(this.wire);
    });
  }

  #refuse(): void {
    const { timeline, chance } = this.#ports;
    if (chance.hits(HANGING)) return;
    timeline.after(chance.between(1, REFUSAL_MS), () => this.#fail({ kind: "failed", detail: "connection refused" }));
  }

  #fail(end: Parameters<SocketHandlers["ended"]>[0]): void {
    this.#ports.machine.enter(() => {
      if (this.#state === "over") return;
      this.#state = "over";
      this.#handlers.ended(end);
    });
  }
}
