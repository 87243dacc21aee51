/**
 * An executor that writes down what it may serve: `node recorder.mjs URL ID FILE TABLE=COUNT…`.
 *
 * About every 10 ms, and at each handler call, it asks `owns` for every partition and appends one line to FILE: when the
 * asking began and ended by the machine's monotonic clock, and each answer that differs from the last one. A line is with
 * the system when `round` returns, so a killed process leaves all but its last round behind.
 *
 * Lines on standard input: `leave` has everything moved away first, then ends the process; `halt` stops this process between two rounds, `halt-on-revoke` does so as soon as a partition is
 * asked back, which is then never released. In both cases no turn of the event loop lies between the two rounds, so
 * that neither a timer nor a frame can have told the client what the clock says. On standard output it says why the
 * executor has ended; the process lives on and says no, unless it was to leave.
 *
 * RECORDER_ROUND_MS: time between two rounds, for fleets that share few cores.
 */
import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { connectExecutor, leaveOnSigterm } from "evenkeel/executor";

const ROUND_MS = Number(process.env.RECORDER_ROUND_MS ?? 10);

const [url, id, file, ...tables] = process.argv.slice(2);
const places = tables.flatMap((text) => {
  const [table, count] = text.split("=");
  return Array.from({ length: Number(count) }, (_, partition) => ({ table, partition, name: `${table}/${partition}` }));
});
const record = openSync(file, "a");
const said = new Map();
let haltsOnRevoke = false;

const executor = connectExecutor(
  { url, executor: id },
  {
    async onGrant({ partition }) {
      round();
      await delay(5 + (partition % 8) * 5);
    },
    async onRevoke({ partition }, { reason }) {
      if (haltsOnRevoke && reason === "revoked") {
        haltsOnRevoke = false;
        halt();
        return new Promise(() => {});
      }
      // Served until the very end of the unload, so that a successor that starts too early would be seen.
      await delay(5 + (partition % 8) * 10);
      round();
    },
  },
);
leaveOnSigterm(executor);
void executor.closed.then(({ reason }) => console.log(`closed: ${reason}`));
setInterval(() => round(), ROUND_MS);

const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  if (line === "leave") void executor.leave({ mode: "move" }).then(() => process.exit(0));
  if (line === "halt") halt();
  if (line === "halt-on-revoke") haltsOnRevoke = true;
});
// Whoever started this is gone.
input.on("close", () => process.exit(1));

function round(halt) {
  const from = now();
  const says = {};
  for (const { table, partition, name } of places) {
    const epoch = executor.owns(table, partition) ?? null;
    if (epoch === (said.get(name) ?? null)) continue;
    said.set(name, epoch);
    says[name] = epoch;
  }
  writeSync(record, `${JSON.stringify({ from, to: now(), says, halt })}\n`);
}

/** Stops the whole process, as `kill -STOP` from outside does, at a place that a test can rely on. */
function halt() {
  round("before");
  process.kill(process.pid, "SIGSTOP");
  round("after");
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}
