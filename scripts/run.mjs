/**
 * Runs the command line from a checkout: installs when needed, builds when stale, then becomes `evenkeel`. In the same
 * process, so that signals, standard input and the exit code are the command's own.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { DIST } from "./checkout.mjs";

build();
const main = join(DIST, "cli", "main.js");
process.argv[1] = main;
await import(pathToFileURL(main).href);
