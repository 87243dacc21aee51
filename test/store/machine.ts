import { spawnSync } from "node:child_process";
import type { TestContext } from "vitest";

/** What some tests need of the machine beside Node, and how they say so where it is not there. */

export interface Need {
  readonly name: string;
  /** A command that ends with 0 where the machine can do it. */
  readonly probe: readonly [string, ...string[]];
}

/** Lets system calls of a process fail. */
export const STRACE: Need = { name: "strace", probe: ["strace", "-o", "/dev/null", "-e", "trace=none", "true"] };

/**
 * Goes before a command some of whose system calls are to fail or to be slow: `how` as in `strace -e inject`, each thread
 * counted for itself. The command stays the child that was started, so that it can be killed as any other.
 */
export function injecting(calls: string, how: string): readonly string[] {
  return ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", `inject=${calls}:${how}`];
}

/** A file system that is soon full, seen by one process alone. */
export const SMALL_DISK: Need = {
  name: "unshare",
  probe: [...smallDisk("1m", "/mnt"), "true"] as unknown as [string, ...string[]],
};

/** Goes before a command that is to find an empty file system of that size in the folder. */
export function smallDisk(size: string, folder: string): readonly string[] {
  const script = `mount -t tmpfs -o size=${size},mode=0777 none "$0" && exec "$@"`;
  return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, folder];
}

/**
 * Skips the test where the machine cannot do what it needs, with the reason in the report; where EVENKEEL_REQUIRE is `all`
 * or names it, the test fails instead.
 */
export function requireMachine(context: TestContext, { name, probe: [command, ...args] }: Need): void {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  const reason = `this machine has no working ${name}: ${error?.message ?? stderr.trim()}`;
  const required = (process.env["EVENKEEL_REQUIRE"] ?? "").split(",");
  if (required.includes("all") || required.includes(name)) throw new Error(`${reason}; EVENKEEL_REQUIRE asks for it`);
  console.warn(`skipped: ${context.task.name}: ${reason}`);
  context.skip(reason);
}
