import { describe, expect, test } from "vitest";
import type { Settings } from "../../src/model/settings.ts";
import { Peer } from "./rig/peer.ts";
import { until } from "./rig/until.ts";
import { QUICK, World } from "./rig/world.ts";

const QUIET_MS = 1_200;

/** The first push comes at most this long after the window closes. */
const SLACK_MS = 1_000;

/** Each setting that has a time in it, far from where it is in the others. */
const VARIANTS: Readonly<Record<string, Partial<Settings>>> = {
  "as they are": {},
  "a short join window": { join: { quietMs: 0, maxMs: 0 } },
  "a long join window": { join: { quietMs: 20_000, maxMs: 60_000 } },
  "no wait for the lost": { loss: { waitMs: 0, returnMs: 0 } },
  "a long wait for the lost": { loss: { waitMs: 60_000, returnMs: 600_000 } },
  "a short lease": { lease: { ...QUICK.lease, durationMs: 1_500, renewMs: 300 } },
  "a long lease": { lease: { ...QUICK.lease, durationMs: 60_000, renewMs: 15_000 } },
  "a short ack time-out": { delivery: { ackTimeoutMs: 100 } },
  "a long ack time-out": { delivery: { ackTimeoutMs: 60_000 } },
  "a short drain and shutdown": { drain: { deadlineMs: 0 }, shutdown: { timeoutMs: 0 } },
  "long back-offs": { rejection: { backoffMs: 60_000, maxBackoffMs: 600_000 }, executors: { forgetMs: 0 } },
  "few moves at once": { moves: { perExecutor: 1, total: 1 } },
};

describe.concurrent("the first push", () => {
  test.each(Object.entries(VARIANTS))("comes when the formation window closes, with %s", async (_name, settings) => {
    const formation = { quietMs: QUIET_MS, maxMs: 20_000 };
    const world = await new World({ kinds: [], settings: { formation, ...settings }, tables: { trips: 6 } }).start();
    try {
      const first = await Peer.join(world.server.wsUrl, "A", { capacity: undefined });
      const second = await Peer.connect(world.server.wsUrl, "B");
      const helloAt = performance.now();
      second.hello({ capacity: undefined });
      await until("the first push", () => first.of("push").length > 0);
      const waitedMs = performance.now() - helloAt;
      await until("the other's", () => second.of("push").length > 0);
      expect(waitedMs).toBeGreaterThanOrEqual(QUIET_MS - 5);
      expect(waitedMs).toBeLessThan(QUIET_MS + SLACK_MS);
      const [a, b] = [first, second].map((peer) => peer.of("push")[0]);
      expect([a?.["base"], b?.["base"]]).toEqual([null, null]);
      expect(a?.["revision"]).toBe(b?.["revision"]);
      expect([a?.["grant"], b?.["grant"]]).toMatchObject([[{ partitions: "0-2" }], [{ partitions: "3-5" }]]);
      first.leave();
      second.leave();
    } finally {
      await world.stop();
    }
  });

  test.each(["pull", "get", "assign", "subscribe", "request", "poll", "sync"])(
    "cannot be asked for: a frame of type `%s` is no part of the protocol",
    async (type) => {
      const world = await new World({ kinds: [], tables: { trips: 6 } }).start();
      try {
        const peer = await Peer.join(world.server.wsUrl, "A");
        peer.send({ type });
        expect(await peer.closed()).toMatchObject({ code: 4400, reason: "type: unknown" });
        expect(peer.of("push")).toEqual([]);
      } finally {
        await world.stop();
      }
    },
  );
});
