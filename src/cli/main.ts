#!/usr/bin/env node
import { processContext } from "./context.ts";
import { run } from "./program.ts";

/** Commands whose output somebody is to read for as long as they run. */
const LASTING: readonly (string | undefined)[] = ["serve", "dev", "executor"];

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough, such as `head`, closes the pipe; that is no failure.
  if (error.code === "EPIPE" && !LASTING.includes(process.argv[2])) process.exit(0);
  processContext.note(`evenkeel: standard output cannot be written: ${error.message}`);
  process.exit(1);
});

const code = await run(process.argv.slice(2), processContext);
// What a pipe has not taken yet would be lost with the process.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
// Whatever a command leaves open must not keep the process: it ends when its command has.
process.exit(code);
