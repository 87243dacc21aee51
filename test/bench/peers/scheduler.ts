import { monitorEventLoopDelay } from "node:perf_hooks";
import { tableName } from "../../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../src/model/settings.ts";
import { type RunningServer, startServer } from "../../../src/server.ts";
import { serve } from "../peer.ts";
import { cpuMicros, settledMemory } from "../usage.ts";

/** A whole scheduler in a process of its own, built as `evenkeel serve` builds it. */

export interface StartOptions {
  readonly settings?: Partial<Settings>;
  /** Lines of this level and above are made and then thrown away. Default: none are made. */
  readonly log?: "info" | "silent";
  /** File of the ledger. Default: it is kept in memory. */
  readonly store?: string;
}

let running: RunningServer | undefined;
const delays = monitorEventLoopDelay({ resolution: 2 });

const commands = {
  start: async ({ settings = {}, log = "silent", store }: StartOptions): Promise<number> => {
    running = await startServer({
      settings: { ...DEFAULT_SETTINGS, ...settings },
      listen: { host: "127.0.0.1", port: 0 },
      store: store === undefined ? { kind: "memory" } : { kind: "sqlite", path: store },
      log: { level: log, pretty: "never", sink: { write: () => {} } },
      tables: [],
    });
    return Number(new URL(running.url).port);
  },
  cpu: cpuMicros,
  memory: settledMemory,
  revision: () => scheduler().api.revision(),
  status: () => {
    const { state, converged, waitingFor, executors } = scheduler().api.status();
    return {
      state,
      converged,
      waitingFor: [...waitingFor],
      connected: executors.filter((each) => each.connected).length,
    };
  },
  putTable: async ({ name, count }: { name: string; count: number }): Promise<number> => {
    const spec = { table: tableName(name), count, handoff: "exclusive", stopMs: 30_000, balance: "count" } as const;
    const { revision } = await scheduler().api.putTable({ ...spec, selector: {} }, "api");
    return revision;
  },
  watchLoop: () => {
    delays.reset();
    delays.enable();
  },
  /** Longest and 99.9th percentile of the loop's stalls since `watchLoop`, in milliseconds. */
  loopStalls: () => {
    delays.disable();
    return { p999: delays.percentile(99.9) / 1e6, max: delays.max / 1e6 };
  },
};

export type SchedulerCommands = typeof commands;

function scheduler(): RunningServer {
  if (running === undefined) throw new Error("the scheduler was not started");
  return running;
}

serve(commands);
