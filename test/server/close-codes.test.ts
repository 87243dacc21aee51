import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../gateway/harness.ts";
import { QUICK, type RawExecutor, ServerRig, tableOf } from "./rig.ts";

/** The rows of PROTOCOL §5 that the core closes with; those of the gateway are in its own tests. */

let rig: ServerRig;
let bystander: RawExecutor;
let renewing: NodeJS.Timeout;
let renewed = 0;
beforeEach(async () => {
  rig = await new ServerRig().start({ delivery: { ackTimeoutMs: 400 } }, { tables: [tableOf("trips", 8)] });
  bystander = await rig.join("bystander");
  renewed = 0;
  renewing = setInterval(() => bystander.send({ type: "renew", n: ++renewed }), QUICK.lease.renewMs / 2);
});
afterEach(async () => {
  clearInterval(renewing);
  await rig.stop();
});

/** The one that did nothing wrong is still connected, answered and owning. */
async function expectUndisturbed(): Promise<void> {
  const n = renewed + 1;
  await until("an answer to the bystander", () => bystander.of("lease").some((frame) => Number(frame["n"]) >= n));
  expect(bystander.closed).toBeUndefined();
  const own = rig.server.api.status().executors.find(({ executor }) => executor === "bystander");
  expect(own).toMatchObject({ connected: true, suspect: false });
}

describe("PROTOCOL §5: what the core closes, with its code and without touching others", () => {
  test("4400: an ack ahead of what was sent", async () => {
    const a = await rig.join("A");
    a.send({ type: "ack", revision: Number.MAX_SAFE_INTEGER });
    expect((await a.end()).code).toBe(4400);
    await expectUndisturbed();
  });

  test("4408: an attempt that is not higher; and the session that a higher one takes over", async () => {
    const first = await rig.join("A", { attempt: 5 });
    const late = await rig.connect("A", { attempt: 5 });
    late.hello();
    expect((await late.end()).code).toBe(4408);
    expect(first.closed).toBeUndefined();
    const second = await rig.join("A", { attempt: 6 });
    expect((await first.end()).code).toBe(4408);
    expect(second.closed).toBeUndefined();
    await expectUndisturbed();
  });

  test("4409: an instance that was replaced, and each hello of it afterwards", async () => {
    const old = await rig.join("A", { instance: "A-old" });
    await rig.converged();
    await rig.join("A", { instance: "A-new" });
    expect((await old.end()).code).toBe(4409);
    const again = await rig.connect("A", { instance: "A-old", attempt: 2 });
    again.hello();
    expect((await again.end()).code).toBe(4409);
    expect(again.of("refused")[0]).toMatchObject({ code: 4409 });
    await expectUndisturbed();
  });

  test("4410: the lease ended although pings were answered", async () => {
    const a = await rig.join("A");
    await rig.converged();
    const end = await a.end();
    expect(end.code).toBe(4410);
    await until("its share to be placed again", () =>
      rig.server.api.status().executors.find(({ executor, owned }) => executor === "bystander" && owned === 8),
    );
    await expectUndisturbed();
  });

  test("4411: a push that is not acknowledged in time", async () => {
    const a = await rig.join("A", { obedient: false });
    await a.next("push");
    expect((await a.end()).code).toBe(4411);
    await expectUndisturbed();
  });

  test("4503: a hello while the scheduler shuts down", async () => {
    const late = await rig.connect("late");
    // Goodbyes are spread over a renew period, so there is time for a hello between the first and the second.
    await rig.join("A");
    const stopped = rig.server.stop();
    await bystander.next("goaway");
    late.hello();
    expect((await late.end()).code).toBe(4503);
    await stopped;
  });

  test("1000: a peer that says goodbye", async () => {
    const a = await rig.join("A");
    a.socket.close(1000);
    await a.end();
    const [line] = await until("its line in the log", () => {
      const lines = rig.logged("session.closed").filter((entry) => entry["executor"] === "A");
      return lines.length > 0 && lines;
    });
    expect(line?.["code"]).toBe(1000);
    await expectUndisturbed();
  });
});
