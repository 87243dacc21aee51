import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "vite";

/** The checkout's files, and its code as syntax trees. */

export const ROOT = new URL("../..", import.meta.url).pathname;

/** What git ignores; only needed where there is no git to ask. */
const NOT_TRACKED = new Set([".git", "node_modules", "dist", "coverage"]);

/** Paths of all tracked files, relative to the root, sorted. In an unpacked archive: of all files. */
export function trackedFiles(): readonly string[] {
  return (fromGit() ?? fromFolder("")).filter((file) => existsSync(join(ROOT, file))).sort();
}

export function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

export function readJson(file: string): unknown {
  return JSON.parse(read(file));
}

function fromGit(): readonly string[] | undefined {
  try {
    // Inside of a larger checkout it is that one's git, which knows nothing of this folder alone.
    if (git("rev-parse", "--show-prefix").trim() !== "") return undefined;
    return git("ls-files", "-z").split("\0").filter(Boolean);
  } catch {
    return undefined;
  }
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

function fromFolder(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (NOT_TRACKED.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? fromFolder(path) : [path];
  });
}

/** A node of the syntax tree, as far as these tests look at it. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

export interface Import {
  readonly from: string;
  /** Vanishes in the output: binds no code. */
  readonly typeOnly: boolean;
}

export class Code {
  readonly #tree: Node;

  constructor(
    readonly file: string,
    readonly text: string = read(file),
  ) {
    const parsed = parseSync(file, this.text);
    if (parsed.errors.length > 0) throw new Error(`${file} cannot be parsed: ${parsed.errors[0]?.message}`);
    this.#tree = parsed.program as unknown as Node;
  }

  /** Number of the line, from 1, that holds the given character. */
  lineAt(at: number): number {
    return this.text.slice(0, at).split("\n").length;
  }

  get lines(): number {
    return this.lineAt(this.text.trimEnd().length);
  }

  /** Every import and re-export, written as a statement, as `import("…")` or in a type. */
  imports(): readonly Import[] {
    const found: Import[] = [];
    for (const { node } of this.nodes()) {
      const source = node["source"] as { value?: unknown } | null | undefined;
      if (source === null || source === undefined || typeof source.value !== "string") continue;
      const inType = node.type === "TSImportType";
      found.push({ from: source.value, typeOnly: inType || (node["importKind"] ?? node["exportKind"]) === "type" });
    }
    return found;
  }

  /** Every node with its parent, in the order of the text. */
  *nodes(node: Node = this.#tree, parent?: Node): Generator<{ node: Node; parent: Node | undefined }> {
    yield { node, parent };
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (isNode(child)) yield* this.nodes(child, node);
      }
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

const parsed = new Map<string, Code>();

/** The code of all files below the given folder, each parsed once. */
export function codeBelow(folder: string): readonly Code[] {
  const files = trackedFiles().filter((file) => file.startsWith(folder) && /\.(ts|mjs)$/.test(file));
  return files.map((file) => {
    const code = parsed.get(file) ?? new Code(file);
    parsed.set(file, code);
    return code;
  });
}
