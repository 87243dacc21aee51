import { connectExecutor, type ExecutorHandlers, leaveOnSigterm } from "../../client/executor.ts";
import { sleep } from "../time.ts";

/** One executor of `evenkeel dev`, a process of its own. It ends with its parent: their channel closes, however the parent went. */

/** About as long as loading a small partition takes, so that a move can be watched. */
const LOAD_MS = 150;
const UNLOAD_MS = 100;

const [, , url = "", id = ""] = process.argv;

const handlers: ExecutorHandlers = {
  onGrant: ({ signal }) => sleep(LOAD_MS, signal),
  onRevoke: (_grant, { stopMs }) => sleep(Math.min(UNLOAD_MS, stopMs)),
};

const executor = connectExecutor({ url, executor: id }, handlers);

// A Ctrl-C is for the parent to answer; it ends its executors in its own order.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit(0));
leaveOnSigterm(executor);
process.on("message", (message) => {
  // How it ends comes as `closed`, below.
  if (message === "leave") executor.leave({ mode: "move" }).catch(() => {});
});
const { reason } = await executor.closed;
process.exit(reason === "left" ? 0 : 1);
