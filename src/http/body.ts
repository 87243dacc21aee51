import { EvenkeelError } from "../model/errors.ts";
import { LARGE_BODY_BYTES, MAX_BODY_BYTES } from "./limits.ts";

/** Reads the bodies of writes, within a limit, and large ones one at a time. */
export class BodyReader {
  readonly #maxBytes: number;
  /** Whether a large body is being read or used. */
  #hasLarge = false;

  constructor(maxBytes = MAX_BODY_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Reads JSON and hands it to `use`. Throws EvenkeelError `too-large`; `invalid` if it is not JSON in UTF-8; `not-ready` if
   * it is large while another one is being used.
   */
  async read<T>({ headers, body }: Request, use: (value: unknown) => Promise<T>): Promise<T> {
    let isLarge = false;
    const admit = (bytes: number): void => {
      if (bytes > this.#maxBytes) {
        throw new EvenkeelError("too-large", `the body has more than ${this.#maxBytes} bytes`);
      }
      if (isLarge || bytes <= LARGE_BODY_BYTES) return;
      if (this.#hasLarge) {
        throw new EvenkeelError("not-ready", "another large body is being handled", "try again shortly");
      }
      isLarge = true;
      this.#hasLarge = true;
    };
    try {
      admit(Number(headers.get("content-length") ?? 0));
      return await use(parse(await gather(body, admit)));
    } finally {
      if (isLarge) this.#hasLarge = false;
    }
  }
}

/** All chunks of a body. `admit` is called with the size so far before a chunk is kept, and ends the reading by throwing. */
async function gather(body: ReadableStream<Uint8Array> | null, admit: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = body?.getReader();
  for (;;) {
    const next = await reader?.read().catch(() => {
      throw new EvenkeelError("invalid", "the body did not come whole");
    });
    if (next?.value === undefined) return Buffer.concat(chunks);
    bytes += next.value.length;
    admit(bytes);
    chunks.push(next.value);
  }
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new EvenkeelError("invalid", "the body is not JSON in UTF-8");
  }
}
