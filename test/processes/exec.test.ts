import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { isGroupGone } from "../../src/cli/exec/process-group.ts";
import { build, endAll, evenkeel, Running, serve } from "../cli/processes.ts";

/**
 * Children of `evenkeel executor --exec`, as what serves a partition. They hear no SIGTERM, and while they live they write
 * down when: time since the machine's start, in steps of 10 ms. A file for each child is named by its partition, epoch,
 * executor and process group.
 */

const PARTITIONS = 4;

/** The guard is a process like any other: on a busy machine it kills late, and only the margins make up for that. */
const SETTINGS = [
  "--lease-duration=4s",
  "--lease-renew=600ms",
  "--lease-client-margin=2s",
  "--lease-server-margin=1s",
  "--loss-wait=1500ms",
];

let folder: string;

beforeAll(build, 120_000);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-served-"));
});
afterEach(async () => {
  const left = children().map(({ group }) => group);
  await endAll();
  // The guards see to that, whatever became of the test.
  await vi.waitFor(() => expect(left.filter((group) => !isGroupGone(group))).toEqual([]), 10_000);
  rmSync(folder, { recursive: true });
});

interface Child {
  readonly partition: number;
  readonly epoch: number;
  readonly executor: string;
  readonly group: number;
  readonly first: number;
  readonly last: number;
}

/** Every child that has written, by partition, then in the order in which they were granted and started. */
function children(): readonly Child[] {
  const found = readdirSync(folder).flatMap((name) => {
    const [partition, epoch, executor = "", group] = name.split("-");
    // What follows the last line break is empty, or a line that was not written to its end.
    const times = readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1).map(Number);
    const [first, last] = [times[0], times.at(-1)];
    if (first === undefined || last === undefined) return [];
    return [{ partition: Number(partition), epoch: Number(epoch), executor, group: Number(group), first, last }];
  });
  return found.sort((a, b) => a.partition - b.partition || a.epoch - b.epoch || a.first - b.first);
}

function executor(id: string, url: string): Running {
  const write = `cut -d " " -f 1 /proc/uptime >> ${folder}/$EVENKEEL_PARTITION-$EVENKEEL_EPOCH-${id}-$$`;
  const command = `trap "" TERM; while :; do ${write}; sleep 0.05; done`;
  return new Running(["executor", "--id", id, "--url", url, "--exec", command]);
}

/** Waits until of all partitions so many are served by each: by the child that was started last, and which still runs. */
async function served(shares: Readonly<Record<string, number>>): Promise<void> {
  await vi.waitFor(
    () => {
      const newest = new Map(children().map((child) => [child.partition, child]));
      const counts: Record<string, number> = {};
      for (const { executor, group } of newest.values()) {
        if (!isGroupGone(group)) counts[executor] = (counts[executor] ?? 0) + 1;
      }
      expect(counts).toEqual(shares);
    },
    { timeout: 30_000, interval: 50 },
  );
}

test("children of a stopped, then of a killed executor have ended before another's start", async () => {
  const { url } = await serve(...SETTINGS);
  const a = executor("a", url);
  await evenkeel(["tables", "create", "trips", `--partitions=${PARTITIONS}`, "--stop=1s", "--url", url]);
  await served({ a: PARTITIONS });
  const b = executor("b", url);
  await served({ a: PARTITIONS / 2, b: PARTITIONS / 2 });

  a.signal("SIGSTOP");
  await served({ b: PARTITIONS });
  a.signal("SIGCONT");
  await served({ a: PARTITIONS / 2, b: PARTITIONS / 2 });
  b.signal("SIGKILL");
  await served({ a: PARTITIONS });

  const all = children();
  expect(all.length).toBeGreaterThanOrEqual(PARTITIONS * 3);
  for (const [i, child] of all.entries()) {
    const next = all[i + 1];
    if (next?.partition !== child.partition) continue;
    expect(next.first).toBeGreaterThanOrEqual(child.last);
    if (next.executor !== child.executor) expect(next.epoch).toBeGreaterThan(child.epoch);
  }
}, 150_000);
