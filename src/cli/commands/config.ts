import { Argument, type Command } from "commander";
import { warnings } from "../../config/rules.ts";
import { addConfigOptions, configOf } from "../config-options.ts";
import { configView } from "../config-view.ts";
import type { Context } from "../context.ts";
import { addOutput, type OutputOptions } from "../options.ts";
import { format } from "../output.ts";

/** `config check` and `config print`: what `serve` would make of the same file, flags and variables. */
export function addConfig(program: Command, context: Context): void {
  const parent = program.command("config").description("check or print the configuration that serve would use");

  addConfigOptions(parent.command("check").description("find out whether serve would start with it"))
    .addArgument(fileArgument())
    .action(async (file: string | undefined, options: Record<string, unknown>) => {
      const config = await configOf(withFile(options, file), context);
      for (const warning of warnings(config)) context.note(`evenkeel: warning: ${warning}`);
      context.out("the configuration is good\n");
    });

  addOutput(addConfigOptions(parent.command("print").description("print every value, and where it comes from")))
    .addArgument(fileArgument())
    .action(async (file: string | undefined, options: Record<string, unknown> & OutputOptions) => {
      const config = await configOf(withFile(options, file), context);
      for (const warning of warnings(config)) context.note(`evenkeel: warning: ${warning}`);
      context.out(format(configView(config), options.output));
    });
}

function fileArgument(): Argument {
  return new Argument("[file]", "the file, as with --config");
}

function withFile(options: Record<string, unknown>, file: string | undefined): Record<string, unknown> {
  return file === undefined ? options : { ...options, config: file };
}
