import type { TableName } from "../model/ids.ts";
import type { Handle, OpenHandle } from "./handle.ts";

/** All handles of one partition of one table. */
export interface Place {
  readonly table: TableName;
  readonly partition: number;
  /** What is to be served; absent once revoked. */
  current: OpenHandle | undefined;
  /** What was told to stop and has not ended, oldest first. */
  ending: readonly OpenHandle[];
}

/** For the many places at which nothing ends. */
const NONE: readonly OpenHandle[] = [];

/** The places at which there is a handle. */
export class Places {
  readonly #tables = new Map<TableName, Map<number, Place>>();

  find(table: TableName, partition: number): Place | undefined {
    return this.#tables.get(table)?.get(partition);
  }

  /** The place, made if there is none. */
  at(table: TableName, partition: number): Place {
    const places = this.#tables.get(table) ?? new Map<number, Place>();
    this.#tables.set(table, places);
    const place = places.get(partition) ?? { table, partition, current: undefined, ending: NONE };
    places.set(partition, place);
    return place;
  }

  /** The kept form of a handle that was given out, with its place; nothing if it has ended. */
  open(handle: Handle): { readonly place: Place; readonly open: OpenHandle } | undefined {
    const place = this.find(handle.table, handle.partition);
    const open = place?.current === handle ? place.current : place?.ending.find((one) => one === handle);
    return place && open && { place, open };
  }

  /** Forgets a place without handles. */
  drop(place: Place): void {
    if (place.current !== undefined || place.ending.length > 0) return;
    const places = this.#tables.get(place.table);
    places?.delete(place.partition);
    if (places?.size === 0) this.#tables.delete(place.table);
  }

  /** Every place; the one just given may be dropped before the next is asked for. */
  *[Symbol.iterator](): IterableIterator<Place> {
    for (const places of this.#tables.values()) yield* places.values();
  }
}
