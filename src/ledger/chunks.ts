import { assert } from "../model/errors.ts";
import type { Epoch } from "../model/ids.ts";
import { CHUNK_SIZE, type Chunk, STATE_UNOWNED } from "./state.ts";

/** A chunk in which nobody owns anything. */
export function emptyChunk(): Chunk {
  return {
    state: new Uint8Array(CHUNK_SIZE),
    holder: new Int32Array(CHUNK_SIZE).fill(-1),
    epoch: new Float64Array(CHUNK_SIZE),
  };
}

export function chunkCount(partitions: number): number {
  return Math.ceil(partitions / CHUNK_SIZE);
}

/** State, holder's slot and epoch of one partition. */
export interface Cell {
  readonly state: number;
  readonly holder: number;
  readonly epoch: Epoch;
}

export function readCell(chunks: readonly Chunk[], partition: number): Cell {
  const chunk = chunks[Math.floor(partition / CHUNK_SIZE)];
  assert(chunk !== undefined, `partition ${partition} is beyond the table`);
  const index = partition % CHUNK_SIZE;
  return {
    state: chunk.state[index] ?? STATE_UNOWNED,
    holder: chunk.holder[index] ?? -1,
    epoch: chunk.epoch[index] ?? 0,
  };
}

/** Writes to copies: a chunk is copied at its first write, so that those who hold the old list see nothing of it. */
export class ChunkWriter {
  readonly #chunks: Chunk[];
  readonly #copied = new Set<number>();

  constructor(chunks: readonly Chunk[]) {
    this.#chunks = [...chunks];
  }

  grow(partitions: number): void {
    while (this.#chunks.length < chunkCount(partitions)) {
      this.#copied.add(this.#chunks.length);
      this.#chunks.push(emptyChunk());
    }
  }

  read(partition: number): Cell {
    return readCell(this.#chunks, partition);
  }

  write(partition: number, cell: Cell): void {
    const chunk = this.#writable(Math.floor(partition / CHUNK_SIZE));
    const index = partition % CHUNK_SIZE;
    chunk.state[index] = cell.state;
    chunk.holder[index] = cell.holder;
    chunk.epoch[index] = cell.epoch;
  }

  get chunks(): readonly Chunk[] {
    return this.#chunks;
  }

  #writable(at: number): Chunk {
    const chunk = this.#chunks[at];
    assert(chunk !== undefined, `chunk ${at} is beyond the table`);
    if (this.#copied.has(at)) return chunk;
    const copy = { state: chunk.state.slice(), holder: chunk.holder.slice(), epoch: chunk.epoch.slice() };
    this.#chunks[at] = copy;
    this.#copied.add(at);
    return copy;
  }
}
