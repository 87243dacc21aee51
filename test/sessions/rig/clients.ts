import { connectExecutor } from "../../../src/client/executor.ts";
import { IndependentClient } from "../independent-client.ts";

/** What the session tests need of a client, whoever wrote it. */
export interface FleetClient {
  readonly instance: string;
  /** Epoch under which it says that it may serve the partition now. */
  mayServe(table: string, partition: number): number | undefined;
  status(): {
    readonly state: "connecting" | "pending" | "assigned" | "closed";
    readonly session?: string | undefined;
    readonly waitingFor?: string | undefined;
    readonly revision?: number | undefined;
  };
  leave(mode: "move" | "restart"): void;
  close(): void;
  /** How it ended for good. */
  readonly ended: Promise<string>;
}

export interface ClientOptions {
  readonly url: string;
  readonly executor: string;
  readonly instance: string;
  readonly traits: Readonly<Record<string, unknown>>;
  readonly load: (place: Place) => Promise<void>;
  readonly unload: (place: Place) => Promise<void>;
  /** Something may be served now that was not before, or the other way round. */
  readonly changed: () => void;
}

export interface Place {
  readonly table: string;
  readonly partition: number;
  readonly epoch: number;
}

export interface ClientKind {
  readonly name: string;
  start(options: ClientOptions): FleetClient;
}

/** The SDK as its users have it. */
export const SDK: ClientKind = {
  name: "the SDK",
  start({ url, executor, instance, traits, load, unload, changed }) {
    const client = connectExecutor(
      { url, executor, instance, ...traits },
      {
        onGrant: (grant) => {
          changed();
          return load(grant);
        },
        onRevoke: async (grant) => {
          changed();
          await unload(grant);
        },
      },
    );
    return {
      instance,
      mayServe: (table, partition) => client.owns(table, partition),
      status: () => client.status(),
      leave: (mode) => void client.leave({ mode }).catch(() => {}),
      close: () => void client.close(),
      ended: client.closed.then(({ reason }) => reason),
    };
  },
};

/** The client that was written from the wire document. */
export const INDEPENDENT: ClientKind = {
  name: "an independent client",
  start(options) {
    const client = new IndependentClient(options);
    return {
      instance: client.instance,
      mayServe: (table, partition) => client.mayServe(table, partition),
      status: () => client.status,
      leave: (mode) => client.leave(mode),
      close: () => client.close(),
      ended: client.ended.then(({ reason }) => reason),
    };
  },
};
