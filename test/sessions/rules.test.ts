import { describe, expect, test } from "vitest";
import type { Frame } from "./rig/cable.ts";
import { SDK } from "./rig/clients.ts";
import { Peer } from "./rig/peer.ts";
import { stays, until } from "./rig/until.ts";
import { type Member, QUICK, World } from "./rig/world.ts";

/** What a scheduler makes of reports that no client of ours would send, by PROTOCOL §7. */

interface Scene {
  readonly world: World;
  /** Owns all of `trips` at first; it says nothing by itself but its renews. */
  readonly owner: Peer;
  readonly joiner: Member;
}

/** An owner that speaks by hand, and a newcomer for whom half of it is asked back. */
async function inScene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const world = await new World({ kinds: [SDK], expect: 1, tables: { trips: 4 } }).start();
  let owner: Peer | undefined;
  try {
    owner = await Peer.join(world.server.wsUrl, "owner", { capacity: undefined });
    owner.keepRenewing(QUICK.lease.renewMs);
    const [push] = await pushes(owner, 1);
    owner.send({ type: "ack", revision: push?.["revision"] });
    const joiner = await world.join("joiner");
    await test({ world, owner, joiner });
    expect([...world.record.complaints(), ...world.wireComplaints()]).toEqual([]);
  } finally {
    owner?.leave();
    await world.stop();
  }
}

async function pushes(peer: Peer, count: number): Promise<readonly Frame[]> {
  return until(`push ${count} of ${peer.executor}`, () => peer.of("push").length >= count && peer.of("push"));
}

interface Entry {
  readonly table: string;
  readonly partitions: string;
  readonly epoch: number;
}
const entries = (frame: Frame | undefined, list: string) => frame?.[list] as readonly [Entry, ...Entry[]];

describe.concurrent("PROTOCOL §7: a report counts for exactly the epoch, partition and instance that it names", () => {
  test("H3, P1: `released` counts only while that epoch is being revoked, however often it is said", async () => {
    await inScene(async ({ world, owner, joiner }) => {
      const [first, second] = await pushes(owner, 2);
      const [granted] = entries(first, "grant");
      const [revoked] = entries(second, "revoke");
      const { epoch } = revoked;
      // Of what it keeps, under an epoch before, and under one to come.
      owner.send({ type: "report", released: [{ ...granted, partitions: "0-1" }] });
      owner.send({ type: "report", released: [{ ...revoked, epoch: epoch - 1 }] });
      owner.send({ type: "report", released: [{ ...revoked, epoch: epoch + 1 }] });
      owner.send({ type: "report", released: [{ ...revoked, table: "no-such-table" }] });
      await stays("with nothing granted to the joiner", 400, () => joiner.served().size === 0);
      owner.send({ type: "report", released: [revoked] });
      owner.send({ type: "report", released: [revoked] });
      await until("its share", () => joiner.served().size === 2);
      owner.send({ type: "ack", revision: second?.["revision"] });
      const revision = world.server.api.revision();
      owner.send({ type: "report", released: [revoked] });
      for (const [partition, held] of joiner.served()) {
        owner.send({ type: "report", released: [{ table: "trips", partitions: `${partition}`, epoch: held }] });
      }
      await stays("unmoved by what is said of another's epochs", 400, () => joiner.served().size === 2);
      expect(world.server.api.revision()).toBe(revision);
    });
  });

  test("P21: the stop limit counts from the first ack of the revoke, and a repetition does not extend it", async () => {
    const stopMs = 1_500;
    await inScene(async ({ world, owner, joiner }) => {
      await pushes(owner, 2);
      owner.send({ type: "ack", revision: owner.of("push")[1]?.["revision"] });
      await world.putTable("events", 4, { stop: `${stopMs}ms` });
      const third = (await pushes(owner, 3))[2];
      owner.send({ type: "ack", revision: third?.["revision"] });
      expect((await world.http("DELETE", "/v1/tables/events")).status).toBe(200);
      const fourth = (await pushes(owner, 4))[3];
      const ackedAt = performance.now();
      owner.send({ type: "ack", revision: fourth?.["revision"] });
      expect(entries(fourth, "revoke").map(({ table }) => table)).toContain("events");
      // Something unrelated, whose push names the awaited epochs again.
      await until("half the limit", () => performance.now() - ackedAt > stopMs / 2);
      await world.putTable("more", 2);
      const fifth = (await pushes(owner, 5))[4];
      owner.send({ type: "ack", revision: fifth?.["revision"] });
      expect(entries(fifth, "revoke").map(({ table }) => table)).toContain("events");
      await until("the table to be gone", () => world.server.api.tables().every(({ table }) => table !== "events"));
      const tookMs = performance.now() - ackedAt;
      expect(tookMs).toBeGreaterThanOrEqual(stopMs);
      expect(tookMs).toBeLessThan(stopMs * 1.5);
      expect(joiner.served("more").size).toBeLessThanOrEqual(1);
    });
  });
});
