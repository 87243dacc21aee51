import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Address, address } from "../../config/kinds.ts";
import type { TableSpec } from "../../model/change.ts";
import { formatDuration } from "../../model/duration.ts";
import { tableName } from "../../model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../model/settings.ts";
import type { RunningServer } from "../../server.ts";
import type { Context } from "../context.ts";
import { churn, FLEET_SIZE, freeId } from "../dev/churn.ts";
import { DevFleet } from "../dev/fleet.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import { listenFailure } from "../listen-failure.ts";
import { DEFAULT_URL, readDuration } from "../options.ts";
import { StopSignals } from "../signals.ts";
import { sleep } from "../time.ts";

interface Options {
  /** Absent: the usual address, or a free port if that is in use. */
  readonly listen?: Address;
  /** Absent: until a signal comes. */
  readonly for?: number;
  readonly every: number;
}

const USUAL: Address = { host: "127.0.0.1", port: 7420 };
const EVERY_MS = 5_000;

/** Windows short enough that nobody wonders whether anything happens, and an end that nobody waits for. */
const SETTINGS: Settings = {
  ...DEFAULT_SETTINGS,
  formation: { quietMs: 500, maxMs: 2_000 },
  shutdown: { timeoutMs: 500 },
};

const TABLES: readonly TableSpec[] = [demoTable("trips", 24), demoTable("events", 10)];

function demoTable(name: string, count: number): TableSpec {
  return { table: tableName(name), count, handoff: "exclusive", stopMs: 30_000, balance: "count", selector: {} };
}

export function addDev(program: Command, context: Context): void {
  program
    .command("dev")
    .description(`watch it work: a scheduler and ${FLEET_SIZE} executors that come and go`)
    .addOption(
      new Option("--listen <host:port>", `address (default: ${address.show(USUAL)}, or a free port)`).argParser(
        readAddress,
      ),
    )
    .addOption(new Option("--for <duration>", "end after this time").argParser(readDuration))
    .addOption(
      new Option("--every <duration>", "how often an executor joins or leaves")
        .argParser(readDuration)
        .default(EVERY_MS, formatDuration(EVERY_MS)),
    )
    .action((options: Options) => runDev(options, context));
}

async function runDev(options: Options, context: Context): Promise<void> {
  const signals = new StopSignals(context.note);
  // A store of its own, new each time: nothing of a demonstration outlives it.
  const folder = await mkdtemp(join(tmpdir(), "evenkeel-dev-"));
  try {
    await runFleet(options, context, folder, signals);
  } finally {
    await rm(folder, { recursive: true, force: true });
    signals.dispose();
  }
}

async function runFleet(options: Options, context: Context, folder: string, signals: StopSignals): Promise<void> {
  const note = (line: string): void => context.note(`dev: ${line}`);
  const server = await start(options.listen, join(folder, "evenkeel.db"), note);
  const fleet = new DevFleet(server.wsUrl, note);
  const ending = new AbortController();
  try {
    introduce(server.url, options, context);
    while (fleet.ids.length < FLEET_SIZE) fleet.join(freeId(fleet.ids));
    void churn(fleet, Math.max(options.every, 1), note, ending.signal);
    const time = options.for === undefined ? [] : [sleep(options.for, ending.signal)];
    const failure = await Promise.race([signals.first.then(() => undefined), server.failed, ...time]);
    if (failure !== undefined) throw new CommandFailure(EXIT.failed, `the scheduler failed: ${failure.message}`);
  } finally {
    ending.abort();
    // The scheduler goes first, so that its log ends with its own end and not with executors that vanished.
    await server.stop();
    await fleet.end();
  }
}

async function start(listen: Address | undefined, path: string, note: (line: string) => void): Promise<RunningServer> {
  const { startServer } = await import("../../server.ts");
  const startAt = (at: Address): Promise<RunningServer> =>
    startServer({
      settings: SETTINGS,
      listen: at,
      store: { kind: "sqlite", path },
      log: { level: "info", pretty: "auto" },
      tables: TABLES,
    });
  try {
    return await startAt(listen ?? USUAL);
  } catch (error) {
    const isInUse = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
    if (listen !== undefined || !isInUse) throw listenFailure(error, listen ?? USUAL);
    note(`${address.show(USUAL)} is in use; taking a free port`);
    return startAt({ ...USUAL, port: 0 });
  }
}

/** What there is to see, and what to type to see more. */
function introduce(url: string, { every, for: forMs }: Options, { note, folder }: Context): void {
  const script = fileURLToPath(new URL("../../../scripts/evenkeel", import.meta.url));
  const command = existsSync(script) ? relative(folder, script) : "evenkeel";
  const where = url === DEFAULT_URL ? "" : ` --url ${url}`;
  const until = forMs === undefined ? "Ctrl-C ends" : `It ends by itself after ${formatDuration(forMs)}; Ctrl-C ends`;
  note(`
  evenkeel dev: a scheduler at ${url} with ${TABLES.length} tables, and ${FLEET_SIZE} executors as processes of their own.
  Every ${formatDuration(every)} one of them joins or leaves. What follows is the scheduler's log:
    push.sent         who is told what they own now, and why
    change.committed  what was decided
  In another terminal:
    ${command} status${where}
    ${command} tables create mine --partitions 12${where}
    ${command} executor --id me --auto${where}
  ${until} it all.
`);
}

function readAddress(text: string): Address {
  try {
    return address.read(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `It ${error.message}.` : String(error));
  }
}
