import { readdirSync, readFileSync } from "node:fs";

/** Signals to whole process groups, and whether anything of one is left. A group is named by the pid of its first process. */

/** Sends a signal to every process of the group; does nothing if there is none. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** True when no process of the group runs any more. */
export function isGroupGone(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  return process.platform === "linux" && hasOnlyZombies(group);
}

/**
 * A process that has ended and that nobody has asked about still counts for kill. In a container whose first process
 * does not reap, it would do so for ever.
 */
function hasOnlyZombies(group: number): boolean {
  return readdirSync("/proc").every((entry) => {
    if (!/^\d+$/.test(entry)) return true;
    const found = readProcess(entry);
    return found === undefined || found.group !== group || /[ZXx]/.test(found.state);
  });
}

function readProcess(pid: string): { readonly state: string; readonly group: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in the second field may hold spaces and brackets; the fields after it do not.
    const [state = "", , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, group: Number(group) };
  } catch {
    return undefined;
  }
}
