import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { TableSpec } from "../model/change.ts";
import { Config, type Setting } from "./config.ts";
import { type FileContent, readDocument } from "./document.ts";
import { DEFAULT_FILE, flagOf, KEY_NAMES, KEYS, type Key, type KeyName } from "./keys.ts";
import { BadValue } from "./kinds.ts";
import { contradictions } from "./rules.ts";
import { ConfigError, DEFAULT, type Given, type Problem, problemAt } from "./source.ts";
import { readTables } from "./tables.ts";
import { type Environment, readVariables } from "./variables.ts";

export interface ConfigInput {
  /** Path of the file, which must be there. Absent: DEFAULT_FILE if there is one, else none. */
  readonly file?: string;
  /** Values of flags, by key, as written. */
  readonly flags?: Readonly<Partial<Record<KeyName, string>>>;
  /** Default: none. */
  readonly environment?: Environment;
  /** Folder that paths of flags and variables, and the file itself, are relative to. Default: the process's. */
  readonly folder?: string;
  readonly insecure?: boolean;
}

/** Settles every key: flag before variable before file before default. Throws ConfigError with all that is wrong. */
export function loadConfig(input: ConfigInput = {}): Config {
  const folder = input.folder ?? process.cwd();
  const content = readFile(input.file, folder);
  const variables = readVariables(input.environment ?? {});
  const problems = [...content.problems, ...variables.problems];
  const settler = new Settler(problems);
  for (const key of KEY_NAMES) {
    settler.settleDefault(key, folder);
    // Each is checked, also where a stronger one hides it: a bad value is a mistake wherever it stands.
    settler.take(key, content.given.get(key), dirname(resolve(folder, input.file ?? DEFAULT_FILE)));
    settler.take(key, variables.given.get(key), folder);
    settler.take(key, givenByFlag(key, input.flags), folder);
  }
  const config = new Config(settler.settings, readTablesOf(content, problems), input.insecure ?? false);
  problems.push(...contradictions(config, settler.unread));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

class Settler {
  readonly settings = new Map<KeyName, Setting>();
  /** Keys with a value that could not be read. They stand at a weaker value now, which may contradict others for no reason. */
  readonly unread = new Set<KeyName>();
  readonly #problems: Problem[];

  constructor(problems: Problem[]) {
    this.#problems = problems;
  }

  /** A default that is a path is taken from `folder`; the others stand in the table of keys. */
  settleDefault(key: KeyName, folder: string): void {
    const { kind, default: value } = KEYS[key] as Key<unknown>;
    if (value !== undefined && kind.within !== undefined) {
      this.settings.set(key, { value: kind.within(value, folder), source: DEFAULT });
    }
  }

  take(key: KeyName, given: Given | undefined, folder: string): void {
    if (given === undefined) return;
    const { kind } = KEYS[key] as Key<unknown>;
    try {
      const value = kind.read(given.raw);
      this.settings.set(key, { value: kind.within?.(value, folder) ?? value, source: given.source });
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      this.unread.add(key);
      this.#problems.push(problemAt(given.source, `${key} ${error.message}`));
    }
  }
}

function readFile(file: string | undefined, folder: string): FileContent {
  const name = file ?? DEFAULT_FILE;
  try {
    return readDocument(readFileSync(resolve(folder, name), "utf8"), name);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (isMissing && file === undefined) return { given: new Map(), problems: [] };
    const why = isMissing ? "there is no such file" : (error as Error).message;
    throw new ConfigError([{ message: `${name} cannot be read: ${why}` }]);
  }
}

function readTablesOf(content: FileContent, problems: Problem[]): readonly TableSpec[] | undefined {
  if (content.tables === undefined) return undefined;
  const read = readTables(content.tables);
  problems.push(...read.problems);
  return read.specs;
}

function givenByFlag(key: KeyName, flags: ConfigInput["flags"]): Given | undefined {
  const raw = flags?.[key];
  return raw === undefined ? undefined : { raw, source: { kind: "flag", flag: flagOf(key) } };
}
