import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { MAX_DELAY_MS, realClock } from "../../src/driver/real-clock.ts";
import { realRandom } from "../../src/driver/real-random.ts";
import { isId } from "../../src/model/ids.ts";
import { Rig, renew } from "./scripted-core.ts";

/** Keeps the event loop from turning. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("what waits in the sockets when a busy loop comes back is read before the wake-up that came due", async () => {
  const rig = new Rig({}, realClock);
  const server = createServer((socket) => {
    let n = 0;
    socket.on("data", () => rig.driver.post(renew(++n)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(client, "connect");
  let wakeAt = Number.POSITIVE_INFINITY;
  rig.script = () => ({ wakeAt });
  await rig.start();
  wakeAt = realClock.now() + 20;
  rig.driver.post(renew(0));
  await new Promise<void>((resolve) => setTimeout(resolve, 5));
  wakeAt = Number.POSITIVE_INFINITY;
  rig.turns.length = 0;
  client.write("x");
  block(60);
  while (rig.turns.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(rig.turns[0]?.events).toEqual([renew(1)]);
  rig.script = () => ({ effects: [{ type: "shutdown.finished" }] });
  await rig.driver.stop();
  client.destroy();
  server.close();
});

test("the real clock gives whole milliseconds and keeps its timers", async () => {
  expect(Number.isInteger(realClock.now())).toBe(true);
  expect(Math.abs(realClock.wall() - Date.now())).toBeLessThan(1_000);
  const before = performance.now();
  await new Promise<void>((resolve) => realClock.setTimer(20.4, resolve));
  expect(performance.now() - before).toBeGreaterThanOrEqual(19.9);
  let isFired = false;
  const timer = realClock.setTimer(1, () => {
    isFired = true;
  });
  timer.cancel();
  await new Promise<void>((resolve) => realClock.setTimer(10, resolve));
  expect(isFired).toBe(false);
});

test.each([-1, Number.NaN, MAX_DELAY_MS + 1])(
  "a delay of %d ms, which Node would cut to 1 ms, is refused",
  (delayMs) => {
    expect(() => realClock.setTimer(delayMs, () => {})).toThrow("delay");
  },
);

test("ids of the real random are ids, and differ", () => {
  const ids = Array.from({ length: 1_000 }, () => realRandom.id());
  expect(new Set(ids).size).toBe(1_000);
  expect(ids.every(isId)).toBe(true);
});
