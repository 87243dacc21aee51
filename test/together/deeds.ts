import fc from "fast-check";
import type { DiskMode } from "./disk.ts";
import type { Lanes } from "./wire.ts";
import type { Start } from "./world.ts";

/** One thing that happens to a world. Numbers named `pick` choose among what is there. */
export type Deed =
  | ({ readonly do: "start"; readonly id: number } & Omit<Start, "executor">)
  /** Another process with the id of one that lives. */
  | ({ readonly do: "twin"; readonly pick: number } & Omit<Start, "executor">)
  | { readonly do: "kill"; readonly pick: number; readonly noticeMs: number; readonly isBack: boolean }
  | { readonly do: "leave"; readonly pick: number; readonly mode: "move" | "restart"; readonly timeoutMs?: number }
  | { readonly do: "close"; readonly pick: number }
  /** The connection breaks, and each side notices at its time. */
  | { readonly do: "break"; readonly pick: number; readonly clientMs: number; readonly serverMs: number }
  /** Frames of these directions wait. */
  | { readonly do: "block"; readonly pick: number; readonly lanes: Lanes; readonly forMs: number }
  /** The same, for a process that may doze off first, and then it is cut off for a while. */
  | ({ readonly do: "fade"; readonly pick: number; readonly sleepMs: number } & Fading)
  | { readonly do: "refuse" | "stop" | "sleep"; readonly pick: number; readonly forMs: number }
  | { readonly do: "set-clock"; readonly pick: number; readonly byMs: number }
  | { readonly do: "update"; readonly pick: number; readonly weight: number; readonly capacity?: number }
  | { readonly do: "give-up"; readonly pick: number; readonly partition: number; readonly retryable: boolean }
  | { readonly do: "stall"; readonly forMs: number }
  | { readonly do: "disk"; readonly mode: DiskMode; readonly forMs: number }
  | { readonly do: "table"; readonly pick: number; readonly count: number; readonly stopMs: number }
  | { readonly do: "keys"; readonly keys: readonly string[] }
  | { readonly do: "delete"; readonly pick: number }
  /** Another scheduler takes over after a while: from one that was killed, or asked to stop. */
  | { readonly do: "succeed"; readonly isAsked: boolean; readonly forMs: number; readonly noticeMs: number }
  | { readonly do: "wait"; readonly forMs: number };

interface Fading {
  readonly lanes: Lanes;
  readonly forMs: number;
  readonly thenMs: number;
}

const pick = fc.nat(7);
const one = <const T extends readonly unknown[]>(...values: T) => fc.constantFrom(...(values as readonly T[number][]));
const lanes = one("both", "up", "down");
const stop = one(0, 200, 1_000, 1_000, 3_000, 3_000, 8_000);

const habits = fc.record({
  loadMs: one(0, 0, 100, 2_000),
  unloadMs: one(0, 50, 800, 5_000),
  failing: one(0, 0, 0, 0.1, 0.5),
  failingForGood: one(0, 0, 0.2),
  hanging: one(0, 0, 0.3, 1),
});

const start = {
  weight: one(1, 1, 1, 2, 0.5),
  capacity: one(undefined, undefined, undefined, 3, 1, 0),
  drift: one(0, 1, -1, 0.5),
  wallIsSet: fc.boolean(),
  habits,
  stopTimeoutMs: one(500, 4_000, 30_000),
};

const starts: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: one("start"), id: fc.nat(5), ...start }) },
  { weight: 1, arbitrary: fc.record({ do: one("twin"), pick, ...start }) },
);

/** Processes that end. */
const ends: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: one("kill"), pick, noticeMs: one(0, 5, 600, 25_000), isBack: fc.boolean() }),
  fc.record(
    { do: one("leave"), pick, mode: one("move", "restart"), timeoutMs: one(300, 3_000) },
    { requiredKeys: ["do", "pick", "mode"] },
  ),
  fc.record({ do: one("close"), pick }),
);

/** What moves partitions and ends nothing. */
const moves: fc.Arbitrary<Deed> = fc.oneof(
  fc.record(
    { do: one("update"), pick, weight: one(1, 2, 0.25), capacity: one(0, 1, 2, 50) },
    { requiredKeys: ["do", "pick", "weight"] },
  ),
  fc.record({ do: one("give-up"), pick, partition: fc.nat(11), retryable: fc.boolean() }),
);

const tables: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: one("table"), pick: fc.nat(2), count: fc.integer({ min: 1, max: 10 }), stopMs: stop }),
  fc.record({ do: one("delete"), pick: fc.nat(3) }),
  fc.record({ do: one("keys"), keys: fc.subarray(["a", "b", "c", "d", "e"], { minLength: 1 }) }),
);

/** Times around the renew period, the loss wait, the lease and the stop limits. */
const while_ = one(100, 600, 850, 1_500, 2_000, 2_900, 4_500, 9_000, 30_000);

const network: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    do: one("break"),
    pick,
    clientMs: one(0, 10, 700, 5_000, 60_000),
    serverMs: one(0, 10, 700, 5_000, 25_000),
  }),
  fc.record({ do: one("block"), pick, lanes, forMs: while_ }),
  fc.record({
    do: one("fade"),
    pick,
    sleepMs: one(0, 0, 280),
    lanes,
    forMs: one(400, 700, 800, 3_500),
    thenMs: while_,
  }),
  fc.record({ do: one("refuse"), pick, forMs: while_ }),
);

/** What befalls the machine of a process. */
const machines: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: one("stop"), pick, forMs: while_ }),
  fc.record({ do: one("stop"), pick, forMs: while_ }),
  fc.record({ do: one("sleep"), pick, forMs: one(190, 280) }),
  fc.record({ do: one("sleep"), pick, forMs: one(100, 310, 900, 5_000) }),
  fc.record({ do: one("set-clock"), pick, byMs: one(50, 200, 5_000, -200, -10_000) }),
);

/** What befalls the scheduler. */
const outages: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: one("stall"), forMs: one(60, 500, 1_000, 2_000, 4_000, 12_000) }),
  fc.record({
    do: one("disk"),
    mode: one("slow", "hanging", "failing", "gone"),
    forMs: one(20, 500, 2_500, 7_000),
  }),
  fc.record({ do: one("succeed"), isAsked: fc.boolean(), forMs: one(1, 400, 3_000), noticeMs: one(0, 500, 5_000) }),
);

const wait: fc.Arbitrary<Deed> = fc.record({
  do: one("wait"),
  forMs: one(5, 60, 300, 900, 900, 2_000, 4_000, 9_000),
});

/** Histories that dwell on some kinds of trouble: each kind alone goes further than all of them at once. */
function mix(
  weights: readonly [number, number, number, number, number, number, number],
): fc.Arbitrary<readonly Deed[]> {
  const [ofEnds, ofMoves, ofTables, ofNetwork, ofMachines, ofOutages, ofWaits] = weights;
  const deed = fc.oneof(
    { weight: 5, arbitrary: starts },
    { weight: ofEnds, arbitrary: ends },
    { weight: ofMoves, arbitrary: moves },
    { weight: ofTables, arbitrary: tables },
    { weight: ofNetwork, arbitrary: network },
    { weight: ofMachines, arbitrary: machines },
    { weight: ofOutages, arbitrary: outages },
    { weight: ofWaits, arbitrary: wait },
  );
  return fc.array(deed, { minLength: 5, maxLength: 50, size: "max" });
}

export const deeds: fc.Arbitrary<readonly Deed[]> = fc.oneof(
  { weight: 3, arbitrary: mix([3, 2, 3, 3, 3, 2, 10]) },
  { weight: 1, arbitrary: mix([1, 6, 2, 0, 8, 0, 10]) },
  { weight: 1, arbitrary: mix([1, 5, 1, 9, 0, 0, 10]) },
  { weight: 1, arbitrary: mix([4, 3, 3, 1, 0, 7, 10]) },
);
