import { expect, it } from "vitest";
import { startExecutor } from "../../src/client/running-executor.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { FakeScheduler } from "../../src/testing/fake-scheduler.ts";

function start() {
  const clock = new FakeClock();
  const scheduler = new FakeScheduler({ automatic: true });
  const handlers = { onGrant() {}, onRevoke() {} };
  const ports = { clock, random: { next: () => 0 }, dial: scheduler.dial };
  const executor = startExecutor({ url: "ws://fake", executor: "a" }, handlers, ports);
  return { clock, scheduler, executor };
}

it("an automatic scheduler opens, welcomes and renews by itself, and pushes what it is told to", async () => {
  const { clock, scheduler, executor } = start();
  await clock.advanceAsync(0);
  scheduler.session.push({ revision: 7, base: null, grant: [["trips", "0-3"]] });
  await clock.advanceAsync(60_000);
  expect(scheduler.sessions.length).toBe(1);
  expect(executor.owns("trips", 3)).toBe(7);
  expect(executor.status()).toMatchObject({ state: "assigned", owned: 4, ready: 4 });
});

it("an automatic scheduler that stops answering renews is left, and the lease lapses while nothing welcomes", async () => {
  const { clock, scheduler, executor } = start();
  await clock.advanceAsync(0);
  const { session } = scheduler;
  session.push({ revision: 7, base: null, grant: [["trips", "0"]] });
  session.answersRenews = false;
  await clock.advanceAsync(1_999);
  expect(session.closed).toBeUndefined();
  scheduler.automatic = false;
  await clock.advanceAsync(1);
  expect(session.closed).toBeDefined();
  expect(executor.owns("trips", 0)).toBe(7);
  await clock.advanceAsync(7_000);
  expect(executor.owns("trips", 0)).toBeUndefined();
});

it("a client that breaks the protocol fails the test that runs it", () => {
  const scheduler = new FakeScheduler();
  const socket = scheduler.dial("ws://fake", { opened() {}, received() {}, ended() {} });
  expect(() => socket.send('{"type":"renew","n":0}')).toThrow(/broke the protocol/);
});
