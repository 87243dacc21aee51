import { type Command, InvalidArgumentError, Option } from "commander";
import { DURATION_RULE, parseDuration } from "../model/duration.ts";
import { FORMATS, type Format } from "./output.ts";

/** Options that several commands share, and readers of option values. */

export const DEFAULT_URL = "http://127.0.0.1:7420";

export interface ConnectOptions {
  readonly url: string;
  readonly token?: string;
}

export interface OutputOptions {
  readonly output: Format;
}

/** A duration in ms. */
export function readDuration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError(`Write ${DURATION_RULE}.`);
  return ms;
}

/** A whole number from `low`. */
export function readCount(low: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= low)) throw new InvalidArgumentError(`Write a whole number, ${low} or more.`);
    return value;
  };
}

export function addConnectOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--url <url>", "address of the scheduler").default(DEFAULT_URL).env("EVENKEEL_URL").argParser(readUrl),
    )
    .addOption(new Option("--token <token>", "token that the scheduler asks for").env("EVENKEEL_TOKEN"));
}

export function addTimeout(command: Command, defaultMs: number, about: string): Command {
  const option = new Option("--timeout <duration>", about).argParser(readDuration);
  return command.addOption(option.default(defaultMs, `${defaultMs / 1_000}s`));
}

export function addOutput(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "form of the output").choices(FORMATS).default("table" satisfies Format),
  );
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError("Write an address such as http://127.0.0.1:7420.");
  }
  return text;
}
