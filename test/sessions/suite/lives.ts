import { describe, expect, test } from "vitest";
import type { ClientKind } from "../rig/clients.ts";
import { stays, until } from "../rig/until.ts";
import { inWorld, QUICK } from "../rig/world.ts";

/** Sockets, processes and schedulers that come and go. */
export function livesTests(kinds: readonly ClientKind[]): void {
  describe("lives", () => {
    test("P13: an ack that was lost: one push is out at a time, and the client resumes from what it has applied", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const a = await world.join("A");
        await world.shares([[a, 4]]);
        a.cable.swallowFrom = (frame) => frame.type === "ack";
        await world.putTable("events", 2);
        await until("the ack to be swallowed", () => a.cable.of("ack").length === 2);
        a.cable.swallowFrom = undefined;
        expect(a.served("events").size).toBe(2);
        await world.putTable("later", 1);
        await stays("without a push beside the one that is out", 300, () => a.cable.of("push").length === 2);
        const applied = a.cable.of("push").at(-1)?.frame["revision"];
        a.cable.cut();
        await until("A to be told the rest", () => a.served("later").size === 1 && world.isConverged());
        expect(a.cable.of("hello", 1)[0]?.frame["resume"]).toMatchObject({ revision: applied });
        expect(a.cable.of("welcome", 1)[0]?.frame["resumed"]).toBe(true);
        expect(a.cable.of("push", 1).map(({ frame }) => [frame["base"], frame["grant"]])).toEqual([
          [applied, [expect.objectContaining({ table: "later", partitions: "0" })]],
        ]);
        expect([a.served().size, a.served("events").size]).toEqual([4, 2]);
      });
    });

    test("H8: what becomes of a half-open socket does not touch the session after it", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const a = await world.join("A");
        await world.shares([[a, 4]]);
        const before = new Map(a.served());
        const revision = world.server.api.revision();
        const old = a.client.status().session;
        const breakServersSide = a.cable.leaveHalfOpen();
        const fresh = await until("A to have another session", () => {
          const { session } = a.client.status();
          return session !== undefined && session !== old && session;
        });
        expect(a.cable.of("welcome", 1)[0]?.frame["resumed"]).toBe(true);
        await until("the old session to be closed", () => world.logged("session.closed", { session: old }).length > 0);
        breakServersSide();
        await stays("on its new session", 2 * QUICK.lease.renewMs + QUICK.loss.waitMs, () => {
          return a.client.status().session === fresh && a.served().size === 4;
        });
        expect(a.served()).toEqual(before);
        expect(world.server.api.revision()).toBe(revision);
        expect(world.logged("session.closed", { session: fresh })).toEqual([]);
        expect(world.logged("executor.suspected")).toEqual([]);
      });
    });

    test("P19: a socket on which renews stay unanswered is left after one renew period, whatever else it brings", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const a = await world.join("A");
        await world.shares([[a, 4]]);
        a.cable.keepBack = (frame) => frame.type === "lease";
        await until("an answer to be kept back", () => a.cable.seen.some(({ delivered }) => !delivered));
        const unanswered = a.cable.of("renew").at(-1);
        await until("A to say hello again", () => a.cable.of("hello").length === 2);
        a.cable.keepBack = undefined;
        const hello = a.cable.of("hello", 1)[0];
        const waitedMs = Number(hello?.at) - Number(unanswered?.at);
        expect(waitedMs).toBeGreaterThan(QUICK.lease.renewMs / 2);
        expect(hello?.frame["resume"]).toBeDefined();
        await until("A to be welcomed again", () => a.client.status().state === "assigned" && world.isConverged());
        // Long before its lease ended, so that it served all the time.
        for (const partition of a.served().keys()) expect(world.record.spans("trips", partition)).toHaveLength(1);
        expect(a.served().size).toBe(4);
      });
    });

    test("H10: of two processes with one id the later wins once, and the loser stops for good with 4409", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const loser = await world.join("X", { instance: "X-first" });
        await world.shares([[loser, 4]]);
        const revision = world.server.api.revision();
        const winner = await world.join("X", { instance: "X-second" });
        expect(await loser.client.ended).toBe("replaced");
        expect(loser.served().size).toBe(0);
        expect(loser.cable.of("close").filter(({ from }) => from === "server")[0]?.frame["code"]).toBe(4409);
        // The first process never said that it has ended, so its lease has to.
        await world.shares([[winner, 4]]);
        await stays(
          "with one owner",
          500,
          () => winner.cable.connectionCount === 1 && loser.cable.connectionCount === 1,
        );
        expect(world.server.api.revision() - revision).toBeLessThanOrEqual(3);
        expect(world.logged("executor.replaced")).toHaveLength(1);
      });
    });

    test("P14: a process that wakes after it was replaced is refused 4409 at its hello", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const sleeper = await world.join("X", { instance: "X-first" });
        await world.shares([[sleeper, 4]]);
        sleeper.cable.block();
        const winner = await world.join("X", { instance: "X-second" });
        await until("the second to be welcomed", () => winner.client.status().session !== undefined);
        const { session } = winner.client.status();
        sleeper.cable.unblock();
        expect(await sleeper.client.ended).toBe("replaced");
        const last = sleeper.cable.connectionCount - 1;
        expect(sleeper.cable.of("refused", last)[0]?.frame).toMatchObject({ code: 4409 });
        await world.shares([[winner, 4]]);
        expect(winner.client.status().session).toBe(session);
        expect(winner.cable.connectionCount).toBe(1);
      });
    });

    test("P9: a scheduler with another store is another life: all stop, say hello afresh and are told anew", async () => {
      // Longer than any wait of a client that holds a lease, so that both are back before the decision: nothing is
      // exclusive across such a restart.
      const settings = { formation: { quietMs: 1_500, maxMs: 8_000 } };
      await inWorld({ kinds, settings, tables: { trips: 6 } }, async (world) => {
        const fleet = [await world.join("A"), await world.join("B")];
        await world.shares(fleet.map((member) => [member, 3]));
        const lives = fleet.map(({ cable }) => cable.of("welcome")[0]?.frame["incarnation"]);
        const pushes = fleet.map(({ cable }) => cable.of("push").length);
        await world.restartOnAnEmptyStore();
        await until("both to say hello afresh", () =>
          fleet.every(
            ({ cable }) => cable.of("hello").at(-1)?.frame["resume"] === undefined && cable.connectionCount > 2,
          ),
        );
        expect(fleet.map(({ served }) => served().size)).toEqual([0, 0]);
        await world.shares(fleet.map((member) => [member, 3]));
        for (const [index, { cable }] of fleet.entries()) {
          const hellos = cable.of("hello").slice(-2);
          expect(hellos[0]?.frame["resume"]).toMatchObject({ incarnation: lives[index] });
          expect(hellos[1]?.frame).not.toHaveProperty("stamp");
          const welcomes = cable.of("welcome").slice(-2);
          expect(welcomes.every(({ frame }) => frame["incarnation"] !== lives[index])).toBe(true);
          expect(cable.of("push")).toHaveLength(Number(pushes[index]) + 1);
          expect(cable.of("push").at(-1)?.frame["base"]).toBeNull();
        }
      });
    });

    test("a shutdown says goaway and 1001, and what is held is served on within the lease", async () => {
      await inWorld({ kinds, expect: 2, tables: { trips: 6 } }, async (world) => {
        const fleet = [await world.join("A"), await world.join("B")];
        await world.shares(fleet.map((member) => [member, 3]));
        await world.server.stop();
        for (const { cable, served } of fleet) {
          expect(cable.of("goaway")[0]?.frame["afterMs"]).toBeLessThanOrEqual(QUICK.lease.renewMs);
          expect(cable.of("close")).not.toEqual([]);
          expect(served().size).toBe(3);
        }
        const codes = fleet.flatMap(({ cable }) => cable.of("close").filter(({ from }) => from === "server"));
        expect(codes.map(({ frame }) => frame["code"])).toContain(1001);
        await stays("served within the lease", QUICK.lease.durationMs / 3, () =>
          fleet.every(({ served }) => served().size === 3),
        );
        await until("all to lapse", () => fleet.every(({ served }) => served().size === 0));
      });
    });
  });
}
