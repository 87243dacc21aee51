import type { Command } from "commander";
import { warnings } from "../../config/rules.ts";
import { toServerConfig } from "../../config/server-config.ts";
import { addConfigOptions, configOf } from "../config-options.ts";
import type { Context } from "../context.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import { listenFailure } from "../listen-failure.ts";
import { StopSignals } from "../signals.ts";

/** `serve`: the scheduler, until a signal ends it. Logs to standard output. */
export function addServe(program: Command, context: Context): void {
  addConfigOptions(program.command("serve").description("run the scheduler"))
    .addHelpText("after", "\nA flag wins over a variable, a variable over the file, the file over the default.")
    .action(async (options: Record<string, unknown>) => {
      const config = await configOf(options, context);
      for (const warning of warnings(config)) context.note(`evenkeel: warning: ${warning}`);
      const signals = new StopSignals(context.note);
      const { listen, ...rest } = toServerConfig(config);
      // Only here, so that no other command pays for loading the server.
      const { startServer } = await import("../../server.ts");
      const server = await startServer({ listen, ...rest }).catch((error: unknown) => {
        throw listenFailure(error, listen);
      });
      const failure = await Promise.race([signals.first.then(() => undefined), server.failed]);
      if (failure !== undefined) throw new CommandFailure(EXIT.failed, `the scheduler failed: ${failure.message}`);
      await server.stop();
      signals.dispose();
    });
}
