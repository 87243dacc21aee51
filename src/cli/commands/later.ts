import type { Command } from "commander";
import { CommandFailure, EXIT } from "../failure.ts";

/** Commands of later versions: known, so that nobody takes them for a slip, and refused. */
const LATER = [
  "executors",
  "explain",
  "watch",
  "history",
  "plan",
  "move",
  "pin",
  "unpin",
  "drain",
  "undrain",
  "cordon",
  "uncordon",
  "evict",
  "declare-lost",
  "stoppable",
  "pause",
  "resume",
  "release-hold",
  "release-poison",
  "ensure",
  "export",
  "replay",
  "token",
  "leader",
  "doctor",
] as const;

export function addLater(program: Command): void {
  for (const name of LATER) addUnsupported(program, name);
}

/** A command that answers whatever arguments it is given with "not supported yet". */
export function addUnsupported(parent: Command, name: string): void {
  parent
    .command(name, { hidden: true })
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {
      throw new CommandFailure(EXIT.refused, `${name} is not supported yet`, "evenkeel --help lists what is");
    });
}
