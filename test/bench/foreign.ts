import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

/** What other processes of the machine did meanwhile: a figure taken on a busy machine says less. */

/** Unit of the kernel's CPU times, in seconds. */
const TICK_S = 0.01;

export class ForeignLoad {
  readonly #startedAt = performance.now();
  readonly #busy = busySeconds();
  readonly #own = ownSeconds();

  /** CPUs that were busy on average with what is not this process or one it has waited for; undefined where nobody says. */
  cpusSince(): number | undefined {
    const [busy, own] = [busySeconds(), ownSeconds()];
    if (busy === undefined || own === undefined || this.#busy === undefined || this.#own === undefined)
      return undefined;
    const passedS = (performance.now() - this.#startedAt) / 1_000;
    return Math.max(0, (busy - this.#busy - (own - this.#own)) / passedS);
  }
}

export function describeMachine(): string {
  const load = loadavg().map((value) => value.toFixed(1));
  return `${cpus().length} cores, Node ${process.versions.node.split(".")[0]}, load average ${load.join(" ")}`;
}

/** All CPUs but for idling and waiting for disks. */
function busySeconds(): number | undefined {
  const line = read("/proc/stat")?.split("\n")[0];
  if (line === undefined) return undefined;
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) * TICK_S;
}

/** This process and the children that have ended. */
function ownSeconds(): number | undefined {
  const text = read("/proc/self/stat");
  // The name of the program stands in brackets and may hold spaces; times are members 14 to 17.
  const members = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  return members?.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_S, 0);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
