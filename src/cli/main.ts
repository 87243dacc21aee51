#!/usr/bin/env node
import { processContext } from "./context.ts";
import { run } from "./program.ts";

// A reader that has seen enough, such as `head`, closes the pipe; that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

const code = await run(process.argv.slice(2), processContext);
// What a pipe has not taken yet would be lost with the process.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
// Whatever a command leaves open must not keep the process: it ends when its command has.
process.exit(code);
