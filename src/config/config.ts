import type { TableSpec } from "../model/change.ts";
import { KEYS, type Key, type KeyName, type ValueOf } from "./keys.ts";
import { DEFAULT, nameSource, type Source } from "./source.ts";

/** A settled value and where it came from. */
export interface Setting {
  readonly value: unknown;
  readonly source: Source;
}

/** A configuration in which every key has its value, checked each for itself. */
export class Config {
  readonly #settings: ReadonlyMap<KeyName, Setting>;

  constructor(
    settings: ReadonlyMap<KeyName, Setting>,
    /** Absent: the file has no key `tables`, which is not the same as an empty list. */
    readonly tables: readonly TableSpec[] | undefined,
    /** Serve on an address that others reach although nobody has to prove who they are. */
    readonly insecure: boolean,
  ) {
    this.#settings = settings;
  }

  get<K extends KeyName>(key: K): ValueOf<K> {
    const setting = this.#settings.get(key);
    return (setting === undefined ? (KEYS[key] as Key<unknown>).default : setting.value) as ValueOf<K>;
  }

  source(key: KeyName): Source {
    return this.#settings.get(key)?.source ?? DEFAULT;
  }

  /** Why the key does nothing here, as the end of a sentence that begins with `no effect`; undefined if it does something. */
  idle(key: KeyName): Key<unknown>["idle"] {
    const { idle } = KEYS[key] as Key<unknown>;
    return idle === "but with sqlite" && this.get("store").kind === "sqlite" ? undefined : idle;
  }

  /** The value in the notation of the file; undefined if the key has none. */
  show(key: KeyName): string | undefined {
    const value: unknown = this.get(key);
    return value === undefined ? undefined : (KEYS[key] as Key<unknown>).kind.show(value);
  }

  /** The value and its source, for messages: `8s (evenkeel.yaml:5)`. */
  cite(key: KeyName): string {
    return `${this.show(key) ?? "none"} (${nameSource(this.source(key))})`;
  }
}
