import type { Status } from "../client/admin.ts";
import type { Table, View } from "./output.ts";
import { showMs } from "./time.ts";

/** What the scheduler does and why it is not done, the reasons before the details. */
export function statusView(status: Status): View {
  return { data: status, parts: [summary(status), reasons(status), tables(status), executors(status)] };
}

/** One line on why the scheduler is not converged. */
export function whyNot(status: Status): string {
  const { state, waitingFor } = status;
  return waitingFor.length === 0 ? `the scheduler is ${state}` : `the scheduler is ${state}: ${waitingFor.join("; ")}`;
}

function summary({ cluster, state, revision, term, role, incarnation }: Status): Table {
  return {
    columns: [
      { name: "cluster" },
      { name: "state" },
      { name: "revision", align: "right" },
      { name: "term", align: "right" },
      { name: "role" },
      { name: "incarnation", wide: true },
    ],
    rows: [[cluster, state, revision, term, role, incarnation]],
  };
}

function reasons({ waitingFor, windows, alarms }: Status): string {
  return [
    ...alarms.map(({ code, text }) => `ALARM ${code}: ${text}`),
    ...waitingFor.map((text) => `waiting for: ${text}`),
    ...windows.map(({ kind, closesInMs }) => `window: ${kind}, closes in ${showMs(closesInMs)}`),
  ].join("\n");
}

function tables({ tables }: Status): Table {
  return {
    columns: [
      { name: "table" },
      { name: "count", align: "right" },
      { name: "owned", align: "right" },
      { name: "releasing", align: "right" },
      { name: "preparing", align: "right" },
      { name: "unowned" },
    ],
    rows: tables.map(({ table, count, owned, releasing, preparing, unowned }) => {
      const reasons = unowned.map(({ partitions, reason, to, keptMs }) => {
        const whom = to === undefined ? "" : ` for ${to}`;
        const left = keptMs === undefined ? "" : `, kept for another ${showMs(keptMs)}`;
        return `${partitions} ${reason}${whom}${left}`;
      });
      return [table, count, owned, releasing, preparing, reasons.join("; ") || "-"];
    }),
  };
}

function executors({ executors }: Status): Table {
  return {
    columns: [
      { name: "executor" },
      { name: "state" },
      { name: "owned", align: "right" },
      { name: "ready", align: "right" },
      { name: "lease", align: "right" },
      { name: "acked", align: "right" },
      { name: "un-acked" },
      { name: "instance", wide: true },
    ],
    rows: executors.map((executor) => [
      executor.executor,
      stateOf(executor),
      executor.owned,
      executor.ready,
      showMs(executor.leaseLeftMs),
      executor.acked ?? "-",
      executor.unacked === undefined ? "-" : `${executor.unacked.revision} for ${showMs(executor.unacked.sinceMs)}`,
      executor.instance,
    ]),
  };
}

/** The ledger's word for it, and what is wrong or special at the moment. */
function stateOf(executor: Status["executors"][number]): string {
  const { state, suspect, connected, cordoned } = executor;
  const gone = state === "left" || state === "lost";
  return [
    state,
    ...(cordoned && state !== "cordoned" ? ["cordoned"] : []),
    ...(suspect ? ["suspect"] : []),
    ...(connected || gone ? [] : ["disconnected"]),
  ].join(", ");
}
