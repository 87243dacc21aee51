import { describe, expect, test } from "vitest";
import type { ClientKind } from "../rig/clients.ts";
import { Gate, stays, until } from "../rig/until.ts";
import { inWorld, QUICK } from "../rig/world.ts";

/** One partition, from one owner to the next. */
export function handoffTests(kinds: readonly ClientKind[]): void {
  describe("handoff", () => {
    test("H1: the next owner is granted a partition only after the release", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 6 } }, async (world) => {
        const gate = new Gate();
        const a = await world.join("A", { unload: gate.pass });
        await world.shares([[a, 6]]);
        const b = await world.join("B");
        await until("A to be winding down", () => gate.count === 3);
        await stays("served by A alone", 500, () => a.served().size === 6 && b.served().size === 0);
        const openedAt = performance.now();
        gate.open();
        await world.shares([
          [a, 3],
          [b, 3],
        ]);
        for (const partition of b.served().keys()) {
          const [first, second] = world.record.spans("trips", partition);
          expect(second?.from).toBeGreaterThan(openedAt);
          expect(second?.from).toBeGreaterThan(Number(first?.until));
        }
      });
    });

    test("H1: if the owner is lost meanwhile, only after its lease", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 6 } }, async (world) => {
        const gate = new Gate();
        const a = await world.join("A", { unload: gate.pass });
        await world.shares([[a, 6]]);
        const b = await world.join("B");
        await until("A to be winding down", () => gate.count === 3);
        const heardAt = Math.max(...a.cable.of("renew").map(({ at }) => at), Number(a.cable.of("hello")[0]?.at));
        a.cable.block();
        await until("the first grant to B", () => b.served().size > 0);
        // By the scheduler's clock A's lease ends no earlier than its whole length after the last answer.
        expect(performance.now() - heardAt).toBeGreaterThanOrEqual(QUICK.lease.durationMs);
        expect(a.served().size).toBe(0);
        await until("B to own all", () => b.served().size === 6);
        gate.open();
      });
    });

    test("H1: who is lost while it leaves holds what it was asked back until its lease ends", async () => {
      await inWorld({ kinds, expect: 2, tables: { trips: 6 } }, async (world) => {
        const gate = new Gate();
        const [a, b] = [await world.join("A", { unload: gate.pass }), await world.join("B")];
        await world.shares([
          [a, 3],
          [b, 3],
        ]);
        a.client.leave("move");
        await until("A to be winding down", () => gate.count === 3);
        a.cable.block();
        await until("A to be counted lost", () => world.logged("executor.lost", { executor: "A" }).length > 0);
        await until("the first of it to be granted to B", () => b.served().size > 3);
        expect(a.served().size).toBe(0);
        await until("B to own all", () => b.served().size === 6);
        gate.open();
      });
    });

    test("P4: a deleted table's name is refused until every owner has ended", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const gate = new Gate();
        const a = await world.join("A", { unload: gate.pass });
        await world.shares([[a, 4]]);
        const before = new Map(a.served());
        expect((await world.http("DELETE", "/v1/tables/trips")).status).toBe(200);
        await until("A to be winding down", () => gate.count === 4);
        const refused = await world.http("PUT", "/v1/tables/trips", { partitions: 4 });
        expect(refused).toMatchObject({ status: 409, body: { code: "table-removing" } });
        expect(a.served().size).toBe(4);
        gate.open();
        await until("the table to be gone", () => world.server.api.tables().length === 0);
        expect(a.served().size).toBe(0);
        await world.putTable("trips", 4);
        await world.shares([[a, 4]]);
        for (const [partition, epoch] of a.served()) expect(epoch).toBeGreaterThan(before.get(partition) ?? 0);
      });
    });

    test("P10: a partition that is never stopped is cut at its limit, and it alone", async () => {
      const stopMs = 600;
      await inWorld({ kinds, expect: 1 }, async (world) => {
        const stuck = new Gate();
        const a = await world.join("A", { unload: stuck.pass });
        await world.putTable("trips", 4, { stop: `${stopMs}ms` });
        await world.shares([[a, 4]]);
        const session = a.client.status().session;
        const before = new Map(a.served());
        const b = await world.join("B");
        await until("B to be granted its share", () => b.served().size === 2);
        expect(stuck.count).toBe(2);
        expect(a.served().size).toBe(2);
        for (const [partition, epoch] of a.served()) expect(epoch).toBe(before.get(partition));
        const [revoked] = a.cable.of("push").filter(({ frame }) => frame["revoke"] !== undefined);
        for (const partition of b.served().keys()) {
          const [first] = world.record.spans("trips", partition);
          const servedMs = Number(first?.until) - Number(revoked?.at);
          expect(servedMs).toBeGreaterThan(stopMs / 2);
          expect(servedMs).toBeLessThan(stopMs + 150);
        }
        expect(world.logged("handoff.timeout", { executor: "A" })).toHaveLength(1);
        await stays("on its one session", 500, () => a.client.status().session === session);
        expect(a.cable.connectionCount).toBe(1);
        stuck.open();
      });
    });

    test("P11: a `released` that was lost with its socket is repeated after the welcome", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const gate = new Gate();
        const a = await world.join("A", { unload: gate.pass });
        await world.shares([[a, 4]]);
        const b = await world.join("B");
        await until("A to be winding down", () => gate.count === 2);
        await until("A's ack of the revoke", () => a.cable.of("ack").length === 2);
        a.cable.swallowFrom = (frame) => frame.type === "report" && frame["released"] !== undefined;
        gate.open();
        await until("the release to be swallowed", () => a.cable.seen.some(({ delivered }) => !delivered));
        a.cable.swallowFrom = undefined;
        expect(b.served().size).toBe(0);
        a.cable.cut();
        await world.shares([
          [a, 2],
          [b, 2],
        ]);
        const [hello, welcome] = [a.cable.of("hello", 1)[0], a.cable.of("welcome", 1)[0]];
        expect(hello?.frame["resume"]).toMatchObject({ revision: a.cable.of("push", 0).at(-1)?.frame["revision"] });
        expect(welcome?.frame["resumed"]).toBe(true);
        expect(a.cable.of("report", 1)[0]?.frame).toHaveProperty("released");
      });
    });

    test("P23: a failure that was lost with its socket is repeated, and the partition placed elsewhere", async () => {
      await inWorld({ kinds, expect: 1, tables: { trips: 4 } }, async (world) => {
        const a = await world.join("A", {
          load: ({ partition }) => (partition === 1 ? Promise.reject(new Error("disk full")) : Promise.resolve()),
        });
        a.cable.swallowFrom = (frame) => frame.type === "report" && frame["failed"] !== undefined;
        await until("the failure to be swallowed", () => a.cable.seen.some(({ delivered }) => !delivered));
        expect(a.served().has(1)).toBe(false);
        a.cable.swallowFrom = undefined;
        const b = await world.join("B");
        a.cable.cut();
        await until("partition 1 to be placed on B", () => b.served().has(1));
        expect(a.cable.of("report", 1).some(({ frame }) => frame["failed"] !== undefined)).toBe(true);
      });
    });
  });
}
