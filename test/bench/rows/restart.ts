import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Peer, withPeers } from "../peer.ts";
import type { ClientCommands } from "../peers/client.ts";
import type { SchedulerCommands } from "../peers/scheduler.ts";
import { median } from "../rounds.ts";
import type { Figure, Row, RowOptions } from "../row.ts";
import { PATIENT } from "../settings.ts";
import { idOf, THOUSAND_EXECUTORS, tableSizes, type WorldSize } from "../worlds.ts";

/**
 * From the start of a scheduler's process, on the store of one that was killed, to the first push, against reading the
 * store's files: the last checkpoint, and the changes after it.
 */
export const restart: Row = { name: "restart", measure };

const QUICK: WorldSize = { partitions: 20_000, executors: 100, tables: 20 };
const MB = 2 ** 20;

async function measure({ rounds, quick }: RowOptions): Promise<readonly Figure[]> {
  const size = quick ? QUICK : THOUSAND_EXECUTORS;
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-bench-"));
  const store = join(folder, "evenkeel.db");
  try {
    await fill(store, size);
    return figures(await measureStore(store, rounds, size), size);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A store in which everything is owned, and everybody has acknowledged it. */
async function fill(store: string, size: WorldSize): Promise<void> {
  const [scheduler, client] = [
    new Peer<SchedulerCommands>("peers/scheduler"),
    new Peer<ClientCommands>("peers/client"),
  ];
  await withPeers([client, scheduler], async () => {
    const port = await scheduler.ask("start", { settings: PATIENT, store });
    await client.ask("automatic", true);
    const { executors: count } = size;
    await client.ask("open", { port, count, framing: "websocket", upgrade: true, ids: "E", hello: {} });
    for (const [at, partitions] of tableSizes(size).entries()) {
      await scheduler.ask("putTable", { name: idOf("t", at), count: partitions });
    }
    while (!(await scheduler.ask("status")).converged) await client.ask("barrier");
  });
}

interface Measured {
  readonly floor: number;
  readonly subject: number;
  /** Until everybody has had a push. */
  readonly everybody: number;
  readonly bytes: number;
}

async function measureStore(store: string, rounds: number, size: WorldSize): Promise<Measured> {
  const floors: number[] = [];
  const subjects: { readonly first: number; readonly everybody: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    const bytes = files(store).reduce((sum, path) => sum + readFileSync(path).length, 0);
    floors.push(performance.now() - startedAt);
    if (bytes === 0) throw new Error("the store is empty");
    subjects.push(await startAgain(store, size));
  }
  return {
    floor: median(floors),
    subject: median(subjects.map(({ first }) => first)),
    everybody: median(subjects.map(({ everybody }) => everybody)),
    bytes: files(store).reduce((sum, path) => sum + statSync(path).size, 0),
  };
}

/** Milliseconds to the push of the one that is first, and until everybody who comes right after it has one, too. */
async function startAgain(store: string, { executors }: WorldSize) {
  const client = new Peer<ClientCommands>("peers/client");
  // It is running before the time begins.
  await client.ask("automatic", true);
  const startedAt = performance.now();
  const scheduler = new Peer<SchedulerCommands>("peers/scheduler");
  return withPeers([client, scheduler], async () => {
    const port = await scheduler.ask("start", { settings: PATIENT, store });
    const opened = { port, framing: "websocket", upgrade: true, attempts: 1, hello: {} } as const;
    await client.ask("open", { ...opened, ids: "E", count: 1 });
    await client.ask("pushed");
    const first = performance.now() - startedAt;
    await client.ask("open", { ...opened, ids: "E", count: executors - 1, from: 1 });
    await client.ask("pushed");
    return { first, everybody: performance.now() - startedAt };
  });
}

function files(store: string): readonly string[] {
  return [store, `${store}-wal`].filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
}

function figures({ floor, subject, everybody, bytes }: Measured, size: WorldSize): readonly Figure[] {
  const what = `restart, ${size.partitions.toLocaleString("en")} partitions`;
  return [
    { what: `${what}, to the first push`, unit: "ms", floor, subject, goal: { max: 2_000 } },
    {
      what: `${what}, to the push of everybody of ${size.executors.toLocaleString("en")}`,
      unit: "ms",
      subject: everybody,
      goal: {},
    },
    { what: `${what}, size on disk`, unit: "MB", subject: bytes / MB, goal: {} },
  ];
}
