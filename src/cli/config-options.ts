import { type Command, Option } from "commander";
import type { Config } from "../config/config.ts";
import { DEFAULT_FILE, flagOf, KEY_NAMES, KEYS, type Key, type KeyName, variableOf } from "../config/keys.ts";
import type { Context } from "./context.ts";

/** One flag for each key of the configuration, and the file itself. */

const keyOptions = new Map(KEY_NAMES.map((key) => [key, optionOf(key)]));

function optionOf(key: KeyName): Option {
  const { kind, about, default: fallback, idle }: Key<unknown> = KEYS[key];
  const standing = fallback === undefined ? "" : `, default ${kind.show(fallback)}`;
  const remark = idle === undefined ? "" : ` (no effect ${idle})`;
  return new Option(`${flagOf(key)} <value>`, `${about} (${variableOf(key)}${standing})${remark}`);
}

export function addConfigOptions(command: Command): Command {
  command.addOption(
    new Option("--config <file>", `configuration file (default: ${DEFAULT_FILE} if it is there)`).env(
      "EVENKEEL_CONFIG",
    ),
  );
  command.option("--insecure", "listen on an address that others reach, although nobody has to prove who they are");
  for (const option of keyOptions.values()) command.addOption(option);
  return command;
}

/** The configuration that the options, the environment and the file give. Throws ConfigError. */
export async function configOf(options: Readonly<Record<string, unknown>>, context: Context): Promise<Config> {
  // Only here, so that the commands without a configuration do not wait for its parsers.
  const { loadConfig } = await import("../config/load.ts");
  const flags: Partial<Record<KeyName, string>> = {};
  for (const [key, option] of keyOptions) {
    const value = options[option.attributeName()];
    if (typeof value === "string") flags[key] = value;
  }
  const file = options["config"];
  return loadConfig({
    flags,
    environment: context.environment,
    folder: context.folder,
    insecure: options["insecure"] === true,
    ...(typeof file === "string" ? { file } : {}),
  });
}
