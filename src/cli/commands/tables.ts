import { type Command, InvalidArgumentError, Option } from "commander";
import type { TableRequest, TableView } from "../../client/admin.ts";
import { adminOf } from "../admin.ts";
import type { Context } from "../context.ts";
import { usage } from "../failure.ts";
import {
  addConnectOptions,
  addOutput,
  addTimeout,
  type ConnectOptions,
  type OutputOptions,
  readCount,
} from "../options.ts";
import { format, type Table } from "../output.ts";
import { addUnsupported } from "./later.ts";

type Options = ConnectOptions & OutputOptions & { readonly timeout: number };

/** Longer than a request that only reads: a table is answered for when it is committed. */
const TIMEOUT_MS = 30_000;

export function addTables(program: Command, context: Context): void {
  const parent = program.command("tables").description("list, create and delete tables");
  addCreate(parent, context);
  addDelete(parent, context);
  addList(parent, context);
  addUnsupported(parent, "apply");
}

interface CreateOptions extends Options, Pick<TableRequest, "partitions" | "keys" | "handoff" | "stop" | "balance"> {
  readonly selector?: Readonly<Record<string, string>>;
}

function addCreate(parent: Command, context: Context): void {
  const command = parent
    .command("create")
    .description("make a table, or change what of a table may change")
    .argument("<name>", "name of the table")
    .option("--partitions <n>", "how many partitions", readCount(1))
    .option("--keys <a,b,…>", "a partition for each of these keys; may be given again", readKeys)
    .addOption(new Option("--handoff <kind>", "how partitions change hands").choices(["exclusive", "overlap"]))
    .option("--stop <duration>", "longest time that a revoked partition may still be served (default: 30s)")
    .addOption(new Option("--balance <by>", "what is shared evenly").choices(["count", "load"]))
    .option("--selector <label=value>", "only executors with this label; may be given again", readPair);
  withCommon(command).action(async (name: string, options: CreateOptions) => {
    const { table, revision } = await adminOf(options).putTable(name, requestOf(options));
    context.out(format({ data: { table, revision }, parts: [tableOf([table])] }, options.output));
  });
}

function addDelete(parent: Command, context: Context): void {
  const command = parent
    .command("delete")
    .description("delete a table; its partitions are asked back first")
    .argument("<name>", "name of the table");
  withCommon(command).action(async (name: string, options: Options) => {
    const { revision } = await adminOf(options).deleteTable(name);
    context.out(format({ data: { revision }, parts: [`${name} is deleted at revision ${revision}`] }, options.output));
  });
}

function addList(parent: Command, context: Context): void {
  const command = parent.command("list").description("list the tables");
  withCommon(command).action(async (options: Options) => {
    const tables = await adminOf(options).tables();
    if (tables.length === 0) context.note("there are no tables");
    context.out(format({ data: { tables }, items: tables, parts: [tableOf(tables)] }, options.output));
  });
}

function withCommon(command: Command): Command {
  return addOutput(addTimeout(addConnectOptions(command), TIMEOUT_MS, "longest wait for the answer"));
}

function requestOf({ partitions, keys, handoff, stop, balance, selector }: CreateOptions): TableRequest {
  if ((partitions === undefined) === (keys === undefined)) {
    throw usage("say either --partitions N or --keys a,b", "see evenkeel tables create --help");
  }
  return {
    ...(partitions === undefined ? {} : { partitions }),
    ...(keys === undefined ? {} : { keys }),
    ...(handoff === undefined ? {} : { handoff }),
    ...(stop === undefined ? {} : { stop }),
    ...(balance === undefined ? {} : { balance }),
    ...(selector === undefined ? {} : { selector }),
  };
}

function tableOf(tables: readonly TableView[]): Table {
  return {
    columns: [
      { name: "table" },
      { name: "count", align: "right" },
      { name: "handoff" },
      { name: "stop" },
      { name: "balance" },
      { name: "origin" },
      { name: "state" },
      { name: "created", align: "right", wide: true },
      { name: "keys", wide: true },
    ],
    rows: tables.map(({ name, count, handoff, stop, balance, origin, removing, created, keys }) => [
      name,
      // As the status counts them: a removed key is no partition any more, although its number stays taken.
      keys?.filter((key) => key !== null).length ?? count,
      handoff,
      stop,
      balance,
      origin,
      removing === true ? "removing" : "present",
      created,
      keys?.map((key) => key ?? "(retired)").join(",") ?? "-",
    ]),
  };
}

function readKeys(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",")];
}

function readPair(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write LABEL=VALUE.");
  return Object.fromEntries([...Object.entries(before), [text.slice(0, at), text.slice(at + 1)]]);
}
