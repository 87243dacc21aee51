import { describe, expect, test } from "vitest";
import type { ClientKind } from "../rig/clients.ts";
import { stays, until } from "../rig/until.ts";
import { inWorld, type Member, QUICK, type World } from "../rig/world.ts";

/** Who comes and goes moves what it must, and nothing else. */
export function movementTests(kinds: readonly ClientKind[]): void {
  describe("movement", () => {
    test("L1: a lost executor's share is placed when its wait and its lease are over, and nothing else moves", async () => {
      await inWorld({ kinds, expect: 3, tables: { trips: 9 } }, async (world) => {
        const [a, b, c] = await trio(world);
        const before = [a, b].map(({ served }) => new Map(served()));
        const lostShare = new Map(c.served());
        // Its process lives on and serves within its lease, which is harder than one that is gone.
        c.cable.block();
        await until("C to be suspected", () => world.logged("executor.suspected", { executor: "C" }).length > 0);
        await until("C to lapse by its own clock", () => c.served().size === 0);
        expect([a.served().size, b.served().size]).toEqual([3, 3]);
        await until("C's share to be placed", () => a.served().size + b.served().size === 9);
        expect([a.served().size, b.served().size].sort()).toEqual([4, 5]);
        for (const [index, { served }] of [a, b].entries()) {
          for (const [partition, epoch] of before[index] ?? []) expect(served().get(partition)).toBe(epoch);
        }
        for (const partition of lostShare.keys()) expect(world.record.spans("trips", partition)).toHaveLength(2);
      });
    });

    test("L2: a late joiner takes its share, and the others change nothing between them", async () => {
      await inWorld({ kinds, expect: 2, tables: { trips: 9 } }, async (world) => {
        const [a, b] = [await world.join("A"), await world.join("B")];
        await until("two shares", () => a.served().size + b.served().size === 9 && world.isConverged());
        const before = new Map([...a.served(), ...b.served()]);
        const owners = new Map([a, b].flatMap((member) => [...member.served().keys()].map((p) => [p, member])));
        const c = await world.join("C");
        await world.shares([a, b, c].map((member) => [member, 3]));
        for (const member of [a, b]) {
          for (const [partition, epoch] of member.served()) {
            expect(owners.get(partition)).toBe(member);
            expect(epoch).toBe(before.get(partition));
          }
        }
        for (const [partition, epoch] of c.served()) expect(epoch).toBeGreaterThan(before.get(partition) ?? 0);
      });
    });

    test("R3: a socket that drops and comes back costs no revision", async () => {
      await inWorld({ kinds, expect: 3, tables: { trips: 9 } }, async (world) => {
        const [a, b, c] = await trio(world);
        const before = [a, b, c].map(({ served }) => new Map(served()));
        const revision = world.server.api.revision();
        c.cable.cut();
        await until("C to be welcomed again", () => c.cable.of("welcome").length === 2);
        await until("C to be heard again", () => world.isConverged());
        expect(c.cable.of("welcome")[1]?.frame["resumed"]).toBe(true);
        await stays("as it was", QUICK.loss.waitMs, () => c.cable.of("push").length === 1);
        expect([a, b, c].map(({ served }) => served())).toEqual(before);
        expect(world.server.api.revision()).toBe(revision);
        // It was served all the time: the record has one span from the start on.
        for (const partition of c.served().keys()) expect(world.record.spans("trips", partition)).toHaveLength(1);
      });
    });

    test("R3: a table made meanwhile is placed on those who are there, and the absent one's share follows", async () => {
      const settings = { loss: { waitMs: 5_000, returnMs: 5_000 } };
      await inWorld({ kinds, expect: 3, settings, tables: { trips: 9 } }, async (world) => {
        const fleet = await trio(world);
        const [a, b, c] = fleet;
        c.cable.block();
        await until("C to be suspected", () => world.logged("executor.suspected", { executor: "C" }).length > 0);
        await world.putTable("events", 9);
        await until("the new table to be owned", () => a.served("events").size + b.served("events").size === 9);
        expect(c.served().size).toBe(3);
        c.cable.unblock();
        await world.shares(
          fleet.map((member) => [member, 3]),
          "events",
        );
        await world.shares(fleet.map((member) => [member, 3]));
        for (const partition of c.served().keys()) expect(world.record.spans("trips", partition)).toHaveLength(1);
      });
    });

    test("R4: a rolling restart gives each its own share back, and moves nothing of the others", async () => {
      await inWorld({ kinds, expect: 3, tables: { trips: 9 } }, async (world) => {
        const fleet = await trio(world);
        for (const name of ["A", "B", "C"]) {
          const old = fleet.find((member) => member.name === name);
          if (old === undefined) throw new Error(`there is no ${name}`);
          const others = fleet.filter((member) => member !== old);
          const [share, theirs] = [[...old.served().keys()], others.map(({ served }) => new Map(served()))];
          old.client.leave("restart");
          expect(await old.client.ended).toBe("left");
          expect(old.served().size).toBe(0);
          await stays("kept for it", 2 * QUICK.join.quietMs, () => others.every(({ served }) => served().size === 3));
          const fresh = await world.join(name);
          fleet[fleet.indexOf(old)] = fresh;
          await until(`${name} to be back`, () => fresh.served().size === 3 && world.isConverged());
          expect([...fresh.served().keys()]).toEqual(share);
          expect(others.map(({ served }) => served())).toEqual(theirs);
        }
      });
    });

    test("a leave moves everything first, and says `left` when all of it has gone", async () => {
      await inWorld({ kinds, expect: 3, tables: { trips: 9 } }, async (world) => {
        const [a, b, c] = await trio(world);
        const before = [a, b].map(({ served }) => new Map(served()));
        c.client.leave("move");
        expect(await c.client.ended).toBe("left");
        expect(c.served().size).toBe(0);
        await until("the rest to own all", () => a.served().size + b.served().size === 9 && world.isConverged());
        for (const [index, { served }] of [a, b].entries()) {
          for (const [partition, epoch] of before[index] ?? []) expect(served().get(partition)).toBe(epoch);
        }
        const [left] = c.cable.of("left");
        const released = c.cable.of("report").filter(({ frame }) => frame["released"] !== undefined);
        expect(left?.at).toBeGreaterThan(Number(released.at(-1)?.at));
        expect(world.logged("executor.lost")).toEqual([]);
      });
    });
  });
}

/** Three executors with 3 of 9 partitions each. */
async function trio(world: World): Promise<[Member, Member, Member]> {
  const fleet: [Member, Member, Member] = [await world.join("A"), await world.join("B"), await world.join("C")];
  await world.shares(fleet.map((member) => [member, 3]));
  return fleet;
}
