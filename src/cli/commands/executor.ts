import { createInterface } from "node:readline";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  ConfigurationError,
  connectExecutor,
  type Executor,
  type ExecutorClosed,
  type ExecutorHandlers,
  type PartitionGrant,
} from "../../client/executor.ts";
import { escapeText } from "../../model/escape.ts";
import type { Context } from "../context.ts";
import { noteStatuses } from "../executor-notes.ts";
import { CommandFailure, EXIT, usage } from "../failure.ts";
import { LineHandlers } from "../lines/line-handlers.ts";
import { LineWriter } from "../lines/line-writer.ts";
import { DEFAULT_URL, readCount } from "../options.ts";
import { StopSignals } from "../signals.ts";

interface Options {
  readonly id: string;
  readonly url: string;
  readonly token?: string;
  readonly instance?: string;
  readonly address?: string;
  readonly weight?: number;
  readonly capacity?: number;
  readonly exec?: string;
  readonly auto?: true;
}

/** What a way of taking partitions is run with. */
interface Surroundings {
  readonly context: Context;
  readonly note: (line: string) => void;
  /** Gives up a partition that had been ready. */
  readonly giveUp: (grant: PartitionGrant, error: Error) => void;
  /** Leaves, since nobody is there who could serve anything. */
  readonly leave: () => void;
}

/** A way of taking partitions: as lines, or as children. */
interface Way {
  readonly handlers: ExecutorHandlers;
  /** When the executor is over. */
  finish(closed: ExecutorClosed): Promise<void>;
}

export function addExecutor(program: Command, context: Context): void {
  program
    .command("executor")
    .description("take part as an executor: lines of JSON for another program, or a child for each partition")
    .requiredOption("--id <id>", "stable id of this executor, unique in the fleet")
    .addOption(
      new Option("--url <url>", "address of the scheduler; several with commas")
        .default(DEFAULT_URL)
        .env("EVENKEEL_URL"),
    )
    .addOption(new Option("--token <token>", "token that the scheduler asks for").env("EVENKEEL_TOKEN"))
    .option("--exec <command>", "run this through a shell for each partition, told by EVENKEEL_TABLE, _PARTITION, …")
    .addOption(
      new Option("--auto", "answer each grant and revoke at once: to watch what would be given").conflicts("exec"),
    )
    .option("--instance <id>", "id of this process life, never used again (default: a random one)")
    .option("--address <text>", "where others reach this executor; handed on, never dialled")
    .option("--weight <n>", "share relative to others (default: 1)", readWeight)
    .option("--capacity <n>", "most partitions over all tables (default: no limit)", readCount(0))
    .addHelpText("after", HELP)
    .action((options: Options) => runExecutor(options, context));
}

const HELP = `
Lines on standard output:
  {"type":"grant","table":"trips","partitions":"0-3","epoch":12}
  {"type":"revoke","table":"trips","partitions":"0-1","epoch":12,"stopMs":30000}
  {"type":"stop","reason":"lapsed"}       everything is to be stopped at once; also replaced, incarnation
Answers on standard input:
  {"type":"ready","table":"trips","partitions":"0-3","epoch":12}
  {"type":"released","table":"trips","partitions":"0-1","epoch":12}
  {"type":"failed","table":"trips","partitions":"2","epoch":12,"reason":"disk full","retryable":false}

How it ends, with 0 once nothing is owned any more, or when its lease is over:
  SIGTERM            leaves for a restart: all is asked back at once, and its place is kept for this id for loss.return
  SIGINT (Ctrl-C)    leaves for good: what it owns goes to the others at once, as far as there are any
  end of its input   as SIGTERM, since nobody answers any more; not with --exec or --auto
  a second signal    ends the process at once, without a word to the scheduler`;

async function runExecutor(options: Options, context: Context): Promise<void> {
  const signals = new StopSignals(context.note);
  const note = (line: string): void => context.note(escapeText(`evenkeel: ${options.id}: ${line}`));
  let executor: Executor | undefined;
  const way = await chooseWay(options, {
    context,
    note,
    giveUp: ({ table, partition }, error) => void executor?.fail(table, partition, error),
    leave: () => leaveForRestart(executor),
  });
  try {
    executor = connect(options, way.handlers);
    void signals.first.then((signal) => (signal === "SIGINT" ? leaveForGood(executor) : leaveForRestart(executor)));
    void noteStatuses(executor, note);
    const closed = await executor.closed;
    await way.finish(closed);
    judgeEnd(closed);
  } finally {
    signals.dispose();
  }
}

/** Asks everything back at once, and keeps this executor's place for its next process. How it ends comes as `closed`. */
function leaveForRestart(executor: Executor | undefined): void {
  executor?.leave({ mode: "restart" }).catch(() => {});
}

/** Has everything moved to others first. Without a scheduler that could do that, it is over with the lease. */
async function leaveForGood(executor: Executor | undefined): Promise<void> {
  executor?.leave({ mode: "move" }).catch(() => {});
  for await (const { state, leaseLeftMs } of executor?.statuses() ?? []) {
    if (state === "connecting" && leaseLeftMs === 0) leaveForRestart(executor);
  }
}

function connect({ id, url, exec: _exec, auto: _auto, ...traits }: Options, handlers: ExecutorHandlers): Executor {
  try {
    return connectExecutor({ ...traits, executor: id, urls: url.split(",") }, handlers);
  } catch (error) {
    throw error instanceof ConfigurationError ? usage(error.message, "see evenkeel executor --help") : error;
  }
}

async function chooseWay(options: Options, surroundings: Surroundings): Promise<Way> {
  return options.exec === undefined
    ? takeLines(options.auto === true, surroundings)
    : runChildren(options.exec, surroundings);
}

function takeLines(auto: boolean, { context, note, giveUp, leave }: Surroundings): Way {
  const writer = new LineWriter(context.out);
  const handlers = new LineHandlers({ writer, note, giveUp, auto });
  const input = createInterface({ input: process.stdin });
  input.on("line", (line) => handlers.hear(line));
  input.on("close", () => {
    if (auto) return;
    // Whoever was to serve the partitions is gone; `released` is not for anybody else to say.
    note("standard input is closed, so nobody answers; leaving");
    leave();
  });
  return {
    handlers,
    finish: async ({ reason }) => {
      writer.flush();
      if (reason === "replaced") writer.stop("replaced");
      input.removeAllListeners("close");
      input.close();
    },
  };
}

async function runChildren(command: string, { note, giveUp, leave }: Surroundings): Promise<Way> {
  const { ExecHandlers } = await import("../exec/exec-handlers.ts");
  let isLost = false;
  const handlers = new ExecHandlers({
    command,
    note,
    giveUp,
    onLost: () => {
      isLost = true;
      leave();
    },
  });
  return {
    handlers,
    finish: async () => {
      await handlers.close();
      if (isLost) throw new CommandFailure(EXIT.failed, "the guard of the children was killed, and they with it");
    },
  };
}

function judgeEnd(closed: ExecutorClosed): void {
  switch (closed.reason) {
    case "left":
    case "closed":
    case "lapsed":
      return;
    case "replaced":
      throw new CommandFailure(EXIT.conflict, closed.error.message, "each process needs an --id of its own");
    case "refused":
    case "unauthenticated":
      throw new CommandFailure(EXIT.refused, closed.error.message);
    default:
      closed satisfies never;
  }
}

function readWeight(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0)) throw new InvalidArgumentError("Write a number above 0.");
  return value;
}
