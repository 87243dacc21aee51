import { pino, stdTimeFunctions } from "pino";
import type { LogLevel, LogPort } from "../driver/ports.ts";
import { escapeJson } from "../model/escape.ts";
import { prettyPrinter } from "./pretty.ts";
import { shape } from "./shape.ts";

/** Where lines go: process.stdout, or anything like it. */
export interface LogSink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

export interface LogOptions {
  /** Lowest level that is written. */
  readonly level: LogLevel | "silent";
  /** `auto`: lines for people on a terminal, JSON elsewhere. */
  readonly pretty: "auto" | "always" | "never";
  readonly sink: LogSink;
  /** Default: whether the sink is a terminal. */
  readonly colors?: boolean;
}

/**
 * Log lines with a stable `event` name: one JSON object a line, or a readable line. Each is written before `log` returns,
 * so that the last words of a process are not lost.
 */
export function createLog({ level, pretty, sink, colors = sink.isTTY === true }: LogOptions): LogPort {
  const isPretty = pretty === "always" || (pretty === "auto" && sink.isTTY === true);
  const print = isPretty ? prettyPrinter({ colors }) : escapeJson;
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => void sink.write(print(line)) },
  );
  return {
    log(lineLevel, event, fields) {
      // Shaping long sets costs more than a level check.
      if (logger.isLevelEnabled(lineLevel)) logger[lineLevel]({ event, ...(shape(fields) as object) });
    },
  };
}
