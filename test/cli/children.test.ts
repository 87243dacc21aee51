import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Children } from "../../src/cli/exec/children.ts";
import { type ChildGone, type FromGuard, monotonicMs } from "../../src/cli/exec/messages.ts";
import { isGroupGone } from "../../src/cli/exec/process-group.ts";

const LONG_MS = 60_000;

let folder: string;
let told: FromGuard[];
let children: Children;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evenkeel-children-"));
  told = [];
  children = new Children((message) => told.push(message));
  lease(LONG_MS, LONG_MS);
});

afterEach(async () => {
  // A lease that is over kills what a failed test left behind.
  lease(0, 0);
  await vi.waitFor(() => expect(children.count).toBe(0), 5_000);
  rmSync(folder, { recursive: true });
});

function lease(warnInMs: number, lapseInMs: number): void {
  const now = monotonicMs();
  children.lease({ type: "lease", warnAtMs: now + warnInMs, lapseAtMs: now + lapseInMs, marginMs: 1_000 });
}

function start(command: string, environment: Record<string, string> = {}): void {
  children.start({ type: "start", child: 1, command, environment });
}

function stop(killInMs: number): void {
  children.stop({ type: "stop", child: 1, killAtMs: monotonicMs() + killInMs });
}

/** The group of the child that was started. */
function group(): number {
  const [first] = told;
  if (first?.type !== "started") throw new Error("no child was started");
  return first.pid;
}

function gone(withinMs = 5_000): Promise<ChildGone> {
  return vi.waitFor(
    () => {
      const last = told.at(-1);
      if (last?.type !== "gone") throw new Error("the child is not gone");
      expect(isGroupGone(group())).toBe(true);
      return last;
    },
    { timeout: withinMs, interval: 5 },
  );
}

/** Waits until the child's command has got as far as writing the file. */
function written(name: string): Promise<string> {
  return vi.waitFor(() => readFileSync(join(folder, name), "utf8"), { timeout: 5_000, interval: 5 });
}

describe("a child", () => {
  test("is run through a shell with its environment, and its exit code is told", async () => {
    start(`printf %s "$WHAT" > ${folder}/out; exit 3`, { WHAT: "it's $this" });
    expect(await gone()).toMatchObject({ child: 1, end: { kind: "exited", code: 3 }, warned: false });
    expect(await written("out")).toBe("it's $this");
  });

  test("that a signal ends is told with the signal", async () => {
    start("kill -9 $$");
    expect((await gone()).end).toEqual({ kind: "killed", signal: "SIGKILL" });
  });

  test("is gone when its whole group is, not when its first process has ended", async () => {
    start(`(trap '' TERM; touch ${folder}/up; while ! [ -e ${folder}/go ]; do sleep 0.02; done) & exit 0`);
    await written("up");
    await vi.waitFor(() => expect(() => process.kill(group(), 0)).toThrow("ESRCH"));
    stop(LONG_MS);
    expect(isGroupGone(group())).toBe(false);
    expect(told.map(({ type }) => type)).toEqual(["started"]);
    stop(0);
    expect((await gone()).end).toEqual({ kind: "exited", code: 0 });
  });

  test("is asked to end by SIGTERM", async () => {
    start(`trap 'touch ${folder}/asked; exit 0' TERM; touch ${folder}/up; while :; do sleep 0.02; done`);
    await written("up");
    stop(LONG_MS);
    expect((await gone()).end).toEqual({ kind: "exited", code: 0 });
    await written("asked");
  });

  test("that does not listen is killed with all of its group at its stop limit", async () => {
    start(`trap '' TERM; (trap '' TERM; sleep 100) & touch ${folder}/up; while :; do sleep 1; done`);
    await written("up");
    const before = monotonicMs();
    stop(300);
    expect((await gone()).end).toEqual({ kind: "killed", signal: "SIGKILL" });
    expect(monotonicMs() - before).toBeGreaterThanOrEqual(300);
  });

  test("keeps the earliest of its stop limits", async () => {
    start(`trap '' TERM; touch ${folder}/up; while :; do sleep 1; done`);
    await written("up");
    stop(200);
    stop(LONG_MS);
    expect((await gone(3_000)).end).toMatchObject({ signal: "SIGKILL" });
  });
});

describe("the lease", () => {
  test("kills every child when it lapses, and tells them before", async () => {
    start(`trap 'touch ${folder}/warned' TERM; touch ${folder}/up; while :; do sleep 0.02; done`);
    await written("up");
    const before = monotonicMs();
    lease(100, 600);
    await written("warned");
    expect(isGroupGone(group())).toBe(false);
    expect(await gone()).toMatchObject({ end: { kind: "killed", signal: "SIGKILL" }, warned: true });
    expect(monotonicMs() - before).toBeGreaterThanOrEqual(600);
  });

  test("that is extended in time kills nobody; who ended on the warning is told apart", async () => {
    start(`trap 'touch ${folder}/warned; exit 0' TERM; touch ${folder}/up; while :; do sleep 0.02; done`);
    await written("up");
    lease(0, LONG_MS);
    expect(await gone()).toMatchObject({ end: { kind: "exited", code: 0 }, warned: true });
  });

  test("that is over lets no child start", () => {
    lease(0, 0);
    start("sleep 100");
    expect(told).toEqual([
      { type: "gone", child: 1, end: { kind: "not-started", reason: "there is no lease to run under" }, warned: false },
    ]);
  });

  test("nobody can renew ends all, in order if they are quick about it", async () => {
    start(`trap 'touch ${folder}/asked; exit 0' TERM; touch ${folder}/up; while :; do sleep 0.02; done`);
    await written("up");
    children.orphaned();
    await gone();
    await written("asked");
  });

  test("nobody can renew ends also those that do not listen, long before it lapses", async () => {
    start(`trap '' TERM; touch ${folder}/up; while :; do sleep 0.02; done`);
    await written("up");
    children.orphaned();
    expect((await gone(5_000)).end).toMatchObject({ signal: "SIGKILL" });
  });
});
