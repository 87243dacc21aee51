import type { ConnectionStatus } from "./connection-state.ts";

/** Hands status changes to any number of readers. A slow reader skips to the newest, so nothing is queued. */
export class StatusFeed {
  readonly #read: () => ConnectionStatus;
  #wake: () => void = () => {};
  #change: Promise<void>;

  constructor(read: () => ConnectionStatus) {
    this.#read = read;
    this.#change = this.#nextChange();
  }

  changed(): void {
    const wake = this.#wake;
    this.#change = this.#nextChange();
    wake();
  }

  /** The status now, then after each change, until it is `closed`. The time left of the lease alone is no change. */
  async *statuses(): AsyncGenerator<ConnectionStatus, void, undefined> {
    let last: string | undefined;
    while (true) {
      const change = this.#change;
      const status = this.#read();
      const text = JSON.stringify({ ...status, leaseLeftMs: status.leaseLeftMs > 0 });
      if (text !== last) yield status;
      last = text;
      if (status.state === "closed") return;
      await change;
    }
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
