import pretty from "pino-pretty";
import { escapeJson } from "../model/escape.ts";

/** Text that cannot be mistaken for anything else stands without quotes. */
const PLAIN = /^[A-Za-z0-9._:/@+,…()%-]+$/;

/** Turns a line of JSON into one for people: time, level, event, then `key=value` for each field. */
export function prettyPrinter(options: { readonly colors: boolean }): (line: string) => string {
  const print = pretty.prettyFactory({ colorize: options.colors, translateTime: "SYS:HH:MM:ss.l", hideObject: true });
  return (line) => {
    const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${writeValue(value)}`);
    return print({ level, time, msg: `${writeValue(event)}${pairs.join("")}` });
  };
}

function writeValue(value: unknown): string {
  if (typeof value === "string") return PLAIN.test(value) ? value : escapeJson(JSON.stringify(value));
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(writeValue).join(" ")}]`;
  const { table, partitions, epoch } = value as Readonly<Record<string, unknown>>;
  if (table !== undefined && partitions !== undefined && epoch !== undefined) {
    return `${writeValue(table)}[${writeValue(partitions)}]@${writeValue(epoch)}`;
  }
  const pairs = Object.entries(value).map(([key, member]) => `${writeValue(key)}=${writeValue(member)}`);
  return `{${pairs.join(" ")}}`;
}
