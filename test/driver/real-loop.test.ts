import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MAX_DELAY_MS, realClock } from "../../src/driver/real-clock.ts";
import { realRandom } from "../../src/driver/real-random.ts";
import { isId } from "../../src/model/ids.ts";
import { Rig, renew } from "./scripted-core.ts";

/** Keeps the event loop from turning. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe("what waits in the sockets when a busy loop comes back is read first", () => {
  let rig: Rig;
  let server: Server;
  let client: Socket;
  let onData: () => void = () => {};
  beforeEach(async () => {
    rig = new Rig({}, realClock);
    let n = 0;
    server = createServer((socket) => {
      socket.on("data", () => {
        rig.driver.post(renew(++n));
        onData();
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    client = connect((server.address() as AddressInfo).port, "127.0.0.1").setNoDelay();
    await once(client, "connect");
  });
  afterEach(async () => {
    rig.script = () => ({ effects: [{ type: "shutdown.finished" }] });
    await rig.driver.stop();
    client.destroy();
    server.close();
  });

  const firstTurn = async () => {
    while (rig.turns.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    return rig.turns[0]?.events;
  };

  test("before a wake-up that came due", async () => {
    let wakeAt = Number.POSITIVE_INFINITY;
    rig.script = () => ({ wakeAt });
    await rig.start();
    wakeAt = realClock.now() + 20;
    rig.driver.post(renew(0));
    await firstTurn();
    wakeAt = Number.POSITIVE_INFINITY;
    rig.turns.length = 0;
    client.write("x");
    block(60);
    expect(await firstTurn()).toEqual([renew(1)]);
  });

  test("before a turn that was due already", async () => {
    await rig.start();
    onData = () => {
      onData = () => {};
      client.write("y");
      // The second frame reaches the socket while the first one's handler keeps the loop.
      block(60);
    };
    client.write("x");
    expect(await firstTurn()).toEqual([renew(1), renew(2)]);
  });
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
