import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { formatDuration } from "../../model/duration.ts";
import type { StoreReport } from "../../server.ts";
import type { Context } from "../context.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import { addOutput, type OutputOptions, readDuration } from "../options.ts";
import { format, type Table, type View } from "../output.ts";

/** `store check|backup|restore`: on the file itself. The first two also beside the scheduler that has it open. */
export function addStore(program: Command, context: Context): void {
  const parent = program.command("store").description("check, back up or restore an sqlite store");
  addCheck(parent, context);
  addBackup(parent, context);
  addRestore(parent, context);
}

function addCheck(parent: Command, context: Context): void {
  const command = parent
    .command("check")
    .description("compare every record with its checksum; exit code 7 if any is damaged")
    .argument("<path>", "file of the store or of a backup", pathIn(context));
  addOutput(command).action(async (path: string, options: OutputOptions) => {
    const { checkStore } = await import("../../server.ts");
    const report = await checkStore(path);
    context.out(format(reportView(report), options.output));
    const { length } = report.problems;
    if (length === 0) return;
    const what = length === 1 ? "a problem" : `${length} problems`;
    throw new CommandFailure(
      EXIT.unhealthy,
      `${path} has ${what}`,
      "take the last good backup: evenkeel store restore",
    );
  });
}

function addBackup(parent: Command, context: Context): void {
  const command = parent
    .command("backup")
    .description("copy a store as it is at this moment, and check the copy")
    .argument("<path>", "file of the store", pathIn(context))
    .argument("<to>", "file to make", pathIn(context));
  addOutput(addForce(command)).action(async (from: string, to: string, { output, force }: OutputOptions & Force) => {
    const { backupStore } = await import("../../server.ts");
    const report = await backupStore({ from, to, force });
    context.out(format(reportView(report), output));
  });
}

interface Force {
  readonly force: boolean;
}

interface RestoreOptions extends OutputOptions, Force {
  readonly maxLease?: number;
}

function addRestore(parent: Command, context: Context): void {
  const command = parent
    .command("restore")
    .description("make a new store, another incarnation, of a backup or of a store that nobody has open")
    .argument("<from>", "file of the backup", pathIn(context))
    .argument("<to>", "file to make", pathIn(context))
    .addOption(
      new Option(
        "--max-lease <duration>",
        "largest lease that the lost store may have issued: so long nothing is granted (default: the largest it knew)",
      ).argParser(readDuration),
    );
  addOutput(addForce(command)).action(async (from: string, to: string, options: RestoreOptions) => {
    const { maxLease, force, output } = options;
    const { restoreStore } = await import("../../server.ts");
    const restored = await restoreStore({
      from,
      to,
      force,
      ...(maxLease === undefined ? {} : { maxLeaseMs: maxLease }),
    });
    for (const warning of restored.warnings) context.note(`evenkeel: warning: ${warning}`);
    const { incarnation, upTo, first, quarantineMs } = restored;
    const lines = [
      `${to} is incarnation ${incarnation}: all up to revision ${upTo} of ${from}`,
      `its own revisions begin at ${first}`,
      `the scheduler that is started on it grants nothing for ${formatDuration(quarantineMs)} and a margin`,
    ];
    context.out(format({ data: { path: to, ...restored }, parts: [lines.join("\n")] }, output));
  });
}

function addForce(command: Command): Command {
  return command.option("--force", "replace the file if it is there", false);
}

/** Reads a path, also one that is written as in the configuration. */
function pathIn({ folder }: Context): (text: string) => string {
  return (text) => resolve(folder, text.replace(/^sqlite:/, ""));
}

function reportView(report: StoreReport): View {
  const { path, bytes, store, changes, checkpoints, problems } = report;
  const facts: Table = {
    columns: [
      { name: "store" },
      { name: "bytes", align: "right" },
      { name: "changes", align: "right" },
      { name: "first", align: "right" },
      { name: "last", align: "right" },
      { name: "term", align: "right" },
      { name: "max-lease", align: "right" },
      { name: "incarnation", wide: true },
    ],
    rows: [
      [
        path,
        bytes,
        changes.count,
        changes.first ?? "-",
        changes.last ?? "-",
        store?.term ?? "-",
        store === undefined ? "-" : formatDuration(store.maxLeaseMs),
        store?.incarnation ?? "-",
      ],
    ],
  };
  const kept: Table = {
    columns: [{ name: "checkpoint", align: "right" }, { name: "bytes", align: "right" }, { name: "state" }],
    rows: checkpoints.map((checkpoint) => [
      checkpoint.revision,
      checkpoint.bytes,
      checkpoint.good ? "good" : "damaged",
    ]),
  };
  const verdict = problems.length === 0 ? "no damage found" : problems.map((problem) => `DAMAGE ${problem}`).join("\n");
  return { data: report, parts: [facts, kept, [...standing(store), verdict].join("\n")] };
}

function standing(store: StoreReport["store"]): readonly string[] {
  const { holder, backedUp, quarantineMs } = store ?? {};
  const at = (ms: number): string => new Date(ms).toISOString();
  return [
    ...(backedUp === undefined ? [] : [`a backup of ${at(backedUp)}: store restore makes a store of it`]),
    ...(holder === undefined
      ? []
      : [`open, or not closed, by process ${holder.pid} on ${holder.host} since ${at(holder.since)}`]),
    ...(quarantineMs === undefined
      ? []
      : [`in quarantine: the next start grants nothing for ${formatDuration(quarantineMs)}`]),
  ];
}
