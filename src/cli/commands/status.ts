import type { Command } from "commander";
import { adminOf } from "../admin.ts";
import type { Context } from "../context.ts";
import { addConnectOptions, addOutput, addTimeout, type ConnectOptions, type OutputOptions } from "../options.ts";
import { format } from "../output.ts";
import { statusView } from "../status-view.ts";

type Options = ConnectOptions & OutputOptions & { readonly timeout: number };

export function addStatus(program: Command, context: Context): void {
  const command = program.command("status").description("show what the scheduler does, and why it is not done");
  addOutput(addTimeout(addConnectOptions(command), 10_000, "longest wait for the answer")).action(
    async (options: Options) => {
      const status = await adminOf(options).status();
      context.out(format(statusView(status), options.output));
    },
  );
}
