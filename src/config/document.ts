import { isMap, isNode, isScalar, LineCounter, type Pair, parseDocument } from "yaml";
import { isKeyName, KEY_NAMES } from "./keys.ts";
import { type Given, type Place, type Problem, problemAt } from "./source.ts";
import { didYouMean } from "./suggest.ts";

/** What a file says, key by key, each with its place. */
export interface FileContent {
  readonly given: ReadonlyMap<string, Given>;
  /** Absent: the file has no key `tables`. */
  readonly tables?: TablesNode;
  readonly problems: readonly Problem[];
}

/** The list of tables as plain data, and where each part of it stands. */
export interface TablesNode {
  readonly raw: unknown;
  /** Place of the part at `path`, or of the nearest part around it. */
  place(path: readonly PropertyKey[]): Place;
}

const TABLES = "tables";
/** Aliases of aliases can make a small file huge; no honest configuration has this many. */
const MAX_ALIASES = 100;
const SECTIONS = [...new Set(KEY_NAMES.filter((key) => key.includes(".")).map((key) => key.split(".")[0] ?? ""))];

/** Reads the text of a file. `file` is how messages name it. Never throws: what is wrong is among the problems. */
export function readDocument(text: string, file: string): FileContent {
  return new DocumentReader(text, file).read();
}

class DocumentReader {
  readonly #lines = new LineCounter();
  readonly #given = new Map<string, Given>();
  readonly #problems: Problem[] = [];
  readonly #file: string;
  readonly #document;

  constructor(text: string, file: string) {
    this.#file = file;
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
  }

  read(): FileContent {
    const { errors, warnings, contents } = this.#document;
    for (const error of [...errors, ...warnings]) this.#refuse(this.#placeAt(error.pos[0]), explain(error));
    if (errors.length > 0) return this.#result();
    let tables: TablesNode | undefined;
    if (isMap(contents)) {
      for (const pair of contents.items) {
        if (nameOf(pair) === TABLES) tables = this.#tables();
        else this.#readTop(pair);
      }
    } else if (contents !== null) {
      this.#refuse(this.#placeOf(contents), "the file is not a mapping of keys to values");
    }
    return this.#result(tables);
  }

  #readTop(pair: Pair): void {
    const name = nameOf(pair);
    if (SECTIONS.includes(name)) this.#readSection(name, pair);
    else if (isKeyName(name)) this.#take(name, pair);
    else this.#unknown(pair, name, [...KEY_NAMES.filter((key) => !key.includes(".")), ...SECTIONS, TABLES]);
  }

  #readSection(section: string, pair: Pair): void {
    const members = KEY_NAMES.filter((key) => key.startsWith(`${section}.`)).map((key) =>
      key.slice(section.length + 1),
    );
    const { value } = pair;
    // A section with nothing in it says nothing.
    if (this.#resolved(value) === null) return;
    if (!isMap(value)) {
      this.#refuse(this.#placeOf(value), `${section} has keys of its own: ${members.join(", ")}`);
      return;
    }
    for (const member of value.items) {
      const name = `${section}.${nameOf(member)}`;
      if (isKeyName(name)) this.#take(name, member);
      else this.#unknown(member, name, members);
    }
  }

  #take(key: string, pair: Pair): void {
    const value = this.#resolved(pair.value);
    const place = this.#placeOf(pair.value ?? pair.key);
    if (value === null) this.#refuse(place, `${key} has no value; remove it or give it one`);
    else this.#given.set(key, { raw: value, source: { kind: "file", place } });
  }

  #unknown(pair: Pair, name: string, candidates: readonly string[]): void {
    const last = name.slice(name.lastIndexOf(".") + 1);
    this.#refuse(this.#placeOf(pair.key), `${name} is not a key${didYouMean(last, candidates)}`);
  }

  #tables(): TablesNode {
    return {
      raw: this.#resolved(this.#document.get(TABLES, true)),
      place: (path) => {
        for (let length = path.length; length >= 0; length--) {
          const node = this.#document.getIn([TABLES, ...path.slice(0, length)], true);
          if (node !== undefined) return this.#placeOf(node);
        }
        return this.#placeAt(0);
      },
    };
  }

  #resolved(value: unknown): unknown {
    return isNode(value) ? value.toJS(this.#document, { maxAliasCount: MAX_ALIASES }) : null;
  }

  #placeOf(node: unknown): Place {
    const range = isNode(node) ? node.range : undefined;
    return this.#placeAt(range?.[0] ?? 0);
  }

  #placeAt(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { file: this.#file, line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  #refuse(place: Place, message: string): void {
    this.#problems.push(problemAt({ kind: "file", place }, message));
  }

  #result(tables?: TablesNode): FileContent {
    const content = { given: this.#given, problems: this.#problems };
    return tables === undefined ? content : { ...content, tables };
  }
}

function nameOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : "";
}

function explain({ code, message }: { readonly code: string; readonly message: string }): string {
  const hint =
    code === "BLOCK_AS_IMPLICIT_KEY" || /nested mappings/i.test(message)
      ? '; put a value that ends in ":" in quotes, such as "memory:"'
      : "";
  return message + hint;
}
