import { KEY_NAMES, type KeyName, variableOf } from "./keys.ts";
import type { Given, Problem } from "./source.ts";
import { didYouMean } from "./suggest.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "EVENKEEL_";

/** Variables that are no keys: those of the client commands, of the checks, and what a child of `executor --exec` is told. */
const OTHER_VARIABLES = new Set(
  ["URL", "TOKEN", "CONFIG", "REQUIRE", "TABLE", "PARTITION", "KEY", "EPOCH"].map((name) => PREFIX + name),
);

/**
 * Kubernetes sets such variables in every pod for a service that happens to be called `evenkeel` or `evenkeel-…`; they
 * are nobody's attempt to configure anything.
 */
const SERVICE_LINK =
  /^EVENKEEL_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PORT|PROTO|ADDR))?)?)$/;

/** The values that variables give. An unknown variable with the prefix is a problem: it would be a setting without effect. */
export function readVariables(environment: Environment): {
  readonly given: ReadonlyMap<KeyName, Given>;
  readonly problems: readonly Problem[];
} {
  const keys = new Map(KEY_NAMES.map((key) => [variableOf(key), key]));
  const given = new Map<KeyName, Given>();
  const problems: Problem[] = [];
  for (const variable of Object.keys(environment).sort()) {
    const raw = environment[variable];
    if (!variable.startsWith(PREFIX) || raw === undefined) continue;
    const key = keys.get(variable);
    if (key !== undefined) given.set(key, { raw, source: { kind: "variable", variable } });
    else if (!OTHER_VARIABLES.has(variable) && !SERVICE_LINK.test(variable)) {
      problems.push({ message: `${variable} is not a variable of any key${didYouMean(variable, [...keys.keys()])}` });
    }
  }
  return { given, problems };
}
