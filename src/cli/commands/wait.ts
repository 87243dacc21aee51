import { type Command, Option } from "commander";
import type { AdminClient, Status } from "../../client/admin.ts";
import { adminOf } from "../admin.ts";
import type { Context } from "../context.ts";
import { CommandFailure, EXIT, isPassing } from "../failure.ts";
import { addConnectOptions, addOutput, addTimeout, type ConnectOptions, type OutputOptions } from "../options.ts";
import { format } from "../output.ts";
import { statusView, whyNot } from "../status-view.ts";
import { sleep } from "../time.ts";

/** Often enough that a script loses nothing by it, rare enough to cost the scheduler nothing. */
const POLL_MS = 200;

/** A scheduler that does not answer for so long is asked anew. */
const ANSWER_MS = 5_000;

type Options = ConnectOptions & OutputOptions & { readonly timeout: number; readonly for: "converged" };

export function addWait(program: Command, context: Context): void {
  const command = program
    .command("wait")
    .description("wait until everything is owned, acknowledged and loaded, and nothing is in flight")
    .addOption(new Option("--for <state>", "what to wait for").choices(["converged"]).default("converged"));
  addOutput(addTimeout(addConnectOptions(command), 60_000, "longest wait")).action(async (options: Options) => {
    const status = await waitUntilConverged(
      adminOf({ ...options, timeout: Math.min(options.timeout, ANSWER_MS) }),
      options.timeout,
    );
    context.out(format(statusView(status), options.output));
  });
}

/** Asks again and again, also while nobody answers yet: a script may start the scheduler and wait at once. */
async function waitUntilConverged(admin: AdminClient, timeoutMs: number): Promise<Status> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask(admin);
    if (answer instanceof Error) {
      if (!isPassing(answer) || performance.now() >= deadline) throw answer;
    } else if (answer.converged) return answer;
    else if (performance.now() >= deadline)
      throw new CommandFailure(EXIT.failed, `not converged in time: ${whyNot(answer)}`);
    await sleep(Math.min(POLL_MS, Math.max(0, deadline - performance.now())));
  }
}

async function ask(admin: AdminClient): Promise<Status | Error> {
  try {
    return await admin.status();
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}
