import { readFileSync } from "node:fs";
import { Command } from "commander";
import { addConfig } from "./commands/config.ts";
import { addDev } from "./commands/dev.ts";
import { addExecutor } from "./commands/executor.ts";
import { addLater } from "./commands/later.ts";
import { addServe } from "./commands/serve.ts";
import { addStatus } from "./commands/status.ts";
import { addStore } from "./commands/store.ts";
import { addTables } from "./commands/tables.ts";
import { addWait } from "./commands/wait.ts";
import type { Context } from "./context.ts";
import { judge } from "./failure.ts";
import { plainLines } from "./output.ts";

/** Runs one command line. Resolves with the exit code; everything there was to say has been said. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  try {
    await buildProgram(context).parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    const { exit, text } = judge(error);
    if (text !== undefined) context.note(plainLines(text));
    return exit;
  }
}

function buildProgram(context: Context): Command {
  const program = new Command("evenkeel")
    .description("decides which executor owns which partition, and pushes it to them")
    .version(version(), "-V, --version", "print the version")
    .helpCommand("help [command]", "show what a command does")
    .configureHelp({ showGlobalOptions: false, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.note(text.trimEnd()),
    })
    .showHelpAfterError(false)
    .exitOverride();
  addServe(program, context);
  addDev(program, context);
  addExecutor(program, context);
  addStatus(program, context);
  addTables(program, context);
  addWait(program, context);
  addConfig(program, context);
  addStore(program, context);
  addLater(program);
  nameHelp(program, program.name());
  return program;
}

/** What is wrong with a command line is said with the command whose help tells it right. */
function nameHelp(command: Command, path: string): void {
  command.configureOutput({
    outputError: (text, write) => write(`evenkeel: ${oneLine(text)}; see ${path} --help`),
  });
  for (const child of command.commands) nameHelp(child, `${path} ${child.name()}`);
}

/** `error: unknown option '--x'\n(Did you mean …?)` → one line. */
function oneLine(text: string): string {
  const what = text
    .trim()
    .replace(/^error: /, "")
    .replace(/\.$/, "");
  return what.replaceAll("\n", " ");
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return String((manifest as { readonly version?: unknown }).version);
}
