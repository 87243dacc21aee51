import { describe, expect, test } from "vitest";
import type { ClientKind } from "../rig/clients.ts";
import { stays, until } from "../rig/until.ts";
import { inWorld, type Member, QUICK } from "../rig/world.ts";

/** When the first assignments come, and what they look like. */
export function formationTests(kinds: readonly ClientKind[]): void {
  describe("formation", () => {
    test("F1: nothing before the window closes, then a fair share each in one push", async () => {
      const settings = { formation: { quietMs: 2_000, maxMs: 8_000 } };
      await inWorld({ kinds, settings, tables: { trips: 9 } }, async (world) => {
        const fleet = [await world.join("A")];
        await until("A to be welcomed", () => fleet[0]?.client.status().state === "pending");
        expect(fleet[0]?.client.status().waitingFor).toMatch(/formation/);
        fleet.push(await world.join("B"));
        await stays("without any push", 150, () => fleet.every(({ cable }) => cable.of("push").length === 0));
        fleet.push(await world.join("C"));
        await world.shares(fleet.map((member) => [member, 3]));

        const pushes = fleet.flatMap(({ cable }) => cable.of("push"));
        const lastHello = Math.max(...fleet.flatMap(({ cable }) => cable.of("hello", 0).map(({ at }) => at)));
        expect(pushes).toHaveLength(3);
        expect(new Set(pushes.map(({ frame }) => frame["revision"])).size).toBe(1);
        expect(pushes.map(({ frame }) => frame["base"])).toEqual([null, null, null]);
        expect(Math.min(...pushes.map(({ at }) => at)) - lastHello).toBeGreaterThanOrEqual(1_999);
      });
    });

    test("F2: who comes first never holds everything", async () => {
      const settings = { formation: { quietMs: 2_000, maxMs: 8_000 } };
      await inWorld({ kinds, settings, tables: { trips: 10 } }, async (world) => {
        const a = await world.join("A");
        await until("A to be welcomed", () => a.client.status().state === "pending");
        const b = await world.join("B");
        let most = 0;
        await until("all to be owned", () => {
          most = Math.max(most, a.served().size, b.served().size);
          return a.served().size + b.served().size === 10;
        });
        await world.shares([
          [a, 5],
          [b, 5],
        ]);
        expect(most).toBe(5);
        expect([...a.cable.of("push"), ...b.cable.of("push")]).toHaveLength(2);
      });
    });

    test("F4: with `expect`, the decision comes with the last of them, not later", async () => {
      await inWorld({ kinds, expect: 3, tables: { trips: 9 } }, async (world) => {
        const fleet = [await world.join("A"), await world.join("B")];
        await until("both to be welcomed", () => fleet.every(({ client }) => client.status().state === "pending"));
        expect(fleet[0]?.client.status().waitingFor).toMatch(/of 3 expected/);
        fleet.push(await world.join("C"));
        await world.shares(fleet.map((member) => [member, 3]));
        const [first] = fleet.flatMap(({ cable }) => cable.of("push")).sort((a, b) => a.at - b.at);
        const hello = fleet[2]?.cable.of("hello")[0];
        expect(Number(first?.at) - Number(hello?.at)).toBeLessThan(1_000);
      });
    });

    test("F7: without tables an executor is pending, with the reason, and is told no empty truth", async () => {
      await inWorld({ kinds }, async (world) => {
        const a = await world.join("A");
        await until("A to be welcomed", () => a.client.status().state === "pending");
        expect(a.client.status().waitingFor).toMatch(/no tables declared/);
        await stays("pending and without a push", 2 * QUICK.formation.quietMs, () => {
          return a.client.status().state === "pending" && a.cable.of("push").length === 0;
        });
        const madeAt = performance.now();
        await world.putTable("trips", 4);
        await world.shares([[a, 4]]);
        const [push] = a.cable.of("push");
        expect(Number(push?.at) - madeAt).toBeGreaterThanOrEqual(QUICK.formation.quietMs - 1);
        expect(push?.frame["base"]).toBeNull();
      });
    });

    test("F7: tables that are declared as none are an answer, at once", async () => {
      await inWorld({ kinds, tables: {} }, async (world) => {
        const a = await world.join("A");
        await until("A to be told", () => a.client.status().state === "assigned" && a.cable.of("ack").length === 1);
        const [welcome, push] = [a.cable.of("welcome")[0], a.cable.of("push")[0]];
        expect(welcome?.frame["status"]).toBe("assigned");
        expect(push?.frame).toMatchObject({ base: null });
        expect(push?.frame).not.toHaveProperty("grant");
        expect(Number(push?.at) - Number(welcome?.at)).toBeLessThan(QUICK.formation.quietMs);
      });
    });

    test("several tables are shared out at once, each evenly", async () => {
      await inWorld({ kinds, expect: 3, tables: { events: 4, trips: 9 } }, async (world) => {
        const fleet: Member[] = [];
        for (const name of ["A", "B", "C"]) fleet.push(await world.join(name));
        await until(
          "all to be owned",
          () => world.isConverged() && fleet.every(({ served }) => served("trips").size === 3),
        );
        expect(fleet.map(({ served }) => served("events").size).sort()).toEqual([1, 1, 2]);
        expect(fleet.map(({ cable }) => cable.of("push").length)).toEqual([1, 1, 1]);
      });
    });
  });
}
