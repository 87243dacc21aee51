import type { Revision } from "../model/ids.ts";
import type { ExecutorHelloFrame, WelcomeFrame } from "../protocol/frames.ts";

interface Store {
  readonly cluster: string;
  readonly incarnation: string;
  /** The highest seen in this incarnation. */
  readonly term: number;
}

/** Which store this client follows: what its hello says of it, and which welcomes it takes. */
export class Following {
  #store: Store | undefined;
  #stamp: string | undefined;

  /** True once there was a welcome. */
  get isKnown(): boolean {
    return this.#store !== undefined;
  }

  get incarnation(): string | undefined {
    return this.#store?.incarnation;
  }

  /** The members of a hello that claim what is still held from `revision`, with the last stamp. */
  claim(revision: Revision | undefined): Pick<ExecutorHelloFrame, "stamp" | "resume"> {
    return {
      ...(this.#stamp !== undefined && { stamp: this.#stamp }),
      ...(this.#store && revision !== undefined && { resume: { incarnation: this.#store.incarnation, revision } }),
    };
  }

  /**
   * Judges a welcome. One of the same store and a term not below is taken. One of another store makes that the one that is
   * followed, and this session of no use. One of a lower term comes from a scheduler that was deposed.
   */
  judge({ cluster, incarnation, term, stamp }: WelcomeFrame): "taken" | "other-store" | "deposed" {
    const store = this.#store;
    const same = store === undefined || (store.cluster === cluster && store.incarnation === incarnation);
    if (same && store !== undefined && term < store.term) return "deposed";
    this.#store = { cluster, incarnation, term };
    // A stamp of the store before would only be one that does not verify.
    this.#stamp = same ? stamp : undefined;
    return same ? "taken" : "other-store";
  }

  /** Keeps the stamp of an answer that has one. */
  stampedWith(stamp: string | undefined): void {
    this.#stamp = stamp ?? this.#stamp;
  }
}
