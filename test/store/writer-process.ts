import { fileURLToPath } from "node:url";
import { type Exit, Running } from "../cli/processes.ts";

const WRITER = fileURLToPath(new URL("./writer.mjs", import.meta.url));

export type Line =
  | readonly ["held", readonly number[], number | null]
  | readonly ["acked", number, string]
  | readonly ["failed", string | null, string]
  | readonly ["lost", string]
  | readonly ["closed"];

/** A process that writes to a store. */
export class Writer {
  readonly process: Running;

  constructor(path: string, round: number | string, options: readonly string[] = [], under: readonly string[] = []) {
    this.process = new Running([path, String(round), ...options], {}, WRITER, under);
  }

  get exit(): Promise<Exit> {
    return this.process.exit;
  }

  lines(): readonly Line[] {
    return this.process.out.map((line) => JSON.parse(line) as Line);
  }
}
