import { dirname, join, normalize } from "node:path";
import type { Import } from "./checkout.ts";

/** Who may import what: the table of folders, in the order of the flow. Everything may import its own folder. */

interface Rule {
  /** Folders of src, or single files of them. */
  readonly own: readonly string[];
  /** Folders of src of which only types may be imported. */
  readonly types?: readonly string[];
  readonly packages: readonly string[];
  /** Whether it does I/O, and so may import `node:…`. */
  readonly node: boolean;
}

const PORTS = "driver/ports.ts";

const RULES: Readonly<Record<string, Rule>> = {
  model: { own: [], packages: [], node: false },
  protocol: { own: ["model"], packages: ["zod"], node: false },
  gateway: { own: ["model", "protocol", PORTS], packages: ["ws"], node: true },
  driver: { own: ["model", "core"], packages: [], node: true },
  core: { own: ["model", "plan", "ledger"], packages: ["immer"], node: false },
  plan: { own: ["model"], packages: [], node: false },
  ledger: { own: ["model"], packages: ["immer"], node: false },
  store: { own: ["model", PORTS], types: ["ledger"], packages: ["@photostructure/sqlite"], node: true },
  http: { own: ["model", PORTS], packages: ["hono", "@hono/node-server", "zod"], node: true },
  auth: { own: ["model", PORTS], packages: ["jose"], node: true },
  config: { own: ["model", PORTS], packages: ["yaml", "zod"], node: true },
  telemetry: { own: ["model", PORTS], packages: ["pino", "pino-pretty", "prom-client"], node: true },
  client: { own: ["model", "protocol"], packages: ["ws"], node: true },
  cli: { own: ["model", "client", "config", "plan"], packages: ["commander", "yaml"], node: true },
  dashboard: { own: ["model", "client"], packages: ["preact", "@preact/signals", "uplot"], node: false },
};

/** The composition root, which builds the adapters, and the commands that run it or what it makes of them. */
const COMPOSITION_ROOT = "server.ts";
const RUN_THE_SERVER = ["cli/commands/serve.ts", "cli/commands/dev.ts", "cli/commands/store.ts"];
/** The kit for tests may use everything but these. */
const NOT_FOR_TESTING = ["cli", "dashboard"];

/** Undefined if `file` (relative to src) may import `wanted`, else why not. */
export function refuse(file: string, wanted: Import): string | undefined {
  const folder = topOf(file);
  if (wanted.from.startsWith(".")) {
    const target = normalize(join(dirname(file), wanted.from));
    if (target.startsWith("..")) return `${wanted.from} is outside of src`;
    return mayImportOwn(file, folder, target, wanted.typeOnly) ? undefined : `${folder} may not import ${target}`;
  }
  const rule = RULES[folder];
  if (rule === undefined) return undefined;
  if (wanted.from.startsWith("node:")) return rule.node ? undefined : `${folder} does no I/O, so no ${wanted.from}`;
  const name = packageOf(wanted.from);
  return rule.packages.includes(name) ? undefined : `${folder} may not import the package ${name}`;
}

/** Folders that the table knows, and the two places that it has rules of their own for. */
export function isKnown(file: string): boolean {
  const folder = topOf(file);
  return folder in RULES || folder === "testing" || file === COMPOSITION_ROOT;
}

export function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}

function mayImportOwn(file: string, folder: string, target: string, typeOnly: boolean): boolean {
  const to = topOf(target);
  if (folder === to) return true;
  if (file === COMPOSITION_ROOT) return to !== "cli";
  if (folder === "testing") return !NOT_FOR_TESTING.includes(to);
  if (target === COMPOSITION_ROOT) return RUN_THE_SERVER.includes(file);
  const rule = RULES[folder];
  if (rule === undefined) return false;
  return rule.own.includes(to) || rule.own.includes(target) || (typeOnly && (rule.types ?? []).includes(to));
}

function topOf(file: string): string {
  return file.split("/")[0] ?? "";
}
