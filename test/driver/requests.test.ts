import { describe, expect, test } from "vitest";
import type { Effect } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { FLOOR, Rig, renew, TRIPS } from "./scripted-core.ts";

type Command = Extract<Event, { readonly request: number }>;

/** Answers each command by what the test says of it. */
function answering(rig: Rig, answer: (command: Command) => Extract<Effect, { type: "request.answered" }>["answer"]) {
  rig.script = ({ events }) => ({
    effects: events
      .filter((event): event is Command => "request" in event)
      .map((event) => ({ type: "request.answered", request: event.request, answer: answer(event) })),
  });
}

describe("commands", () => {
  test("each gets its own answer, whatever their order", async () => {
    const rig = new Rig();
    await rig.start();
    answering(rig, (command) => ({ ok: true, revision: FLOOR + command.request }));
    const answers = [rig.driver.putTable(TRIPS, "api"), rig.driver.deleteTable(TRIPS.table)] as const;
    const declared = rig.driver.declareTables([TRIPS]);
    expect(await answers[1]).toEqual({ revision: FLOOR + 2 });
    expect(await answers[0]).toEqual({ table: rig.driver.tables()[0], revision: FLOOR + 1 });
    expect(await declared).toEqual({ revision: FLOOR + 3 });
    expect(rig.turns[0]?.events).toEqual([
      { type: "table.put", request: 1, spec: TRIPS, origin: "api" },
      { type: "table.deleted", request: 2, table: TRIPS.table },
      { type: "tables.declared", request: 3, specs: [TRIPS] },
    ]);
  });

  test("a refusal comes out as its error", async () => {
    const rig = new Rig();
    await rig.start();
    answering(rig, () => ({ ok: false, code: "table-fixed", detail: "the count only grows", hint: "make another" }));
    await expect(rig.driver.putTable(TRIPS, "api")).rejects.toMatchObject({
      name: "EvenkeelError",
      code: "table-fixed",
      detail: "the count only grows",
      hint: "make another",
    });
  });

  test("before a start and after a stop there is nobody to ask", async () => {
    const rig = new Rig();
    await expect(rig.driver.putTable(TRIPS, "api")).rejects.toMatchObject({ code: "not-ready" });
    await rig.start();
    rig.script = () => ({ effects: [{ type: "shutdown.finished" }] });
    await rig.driver.stop();
    await expect(rig.driver.deleteTable(TRIPS.table)).rejects.toMatchObject({ code: "not-ready" });
  });
});

describe("a stop", () => {
  test("asks the core, waits for it to finish, and then gives the store up", async () => {
    const rig = new Rig();
    await rig.start();
    let isFinished = false;
    rig.script = () => ({ effects: isFinished ? [{ type: "shutdown.finished" }] : [] });
    const unanswered = rig.driver.deleteTable(TRIPS.table);
    await settle();
    const stopped = rig.driver.stop();
    expect(rig.driver.ready()).toBe(false);
    await expect(rig.driver.putTable(TRIPS, "api")).rejects.toMatchObject({ code: "not-ready" });
    await rig.clock.advanceAsync(5_000);
    expect(rig.seen).toEqual([["table.deleted"], ["shutdown.requested"]]);
    expect(rig.store.released).toBe(0);
    isFinished = true;
    rig.driver.post(renew(1));
    await stopped;
    expect(rig.store.released).toBe(1);
    expect(rig.clock.pendingTimers).toBe(0);
    await expect(unanswered).rejects.toMatchObject({ code: "not-ready" });
    rig.driver.post(renew(2));
    await settle();
    expect(rig.turns).toHaveLength(3);
  });

  test("is over a second after the core's own time-out, if the core says nothing", async () => {
    const rig = new Rig({ shutdown: { timeoutMs: 3_000 } });
    await rig.start();
    const stopped = rig.driver.stop();
    await rig.clock.advanceAsync(3_999);
    expect(rig.store.released).toBe(0);
    await rig.clock.advanceAsync(1);
    await stopped;
    expect(rig.store.released).toBe(1);
  });

  test("leaves `failed` open", async () => {
    const rig = new Rig();
    await rig.start();
    rig.script = () => ({ effects: [{ type: "shutdown.finished" }] });
    await rig.driver.stop();
    const first = await Promise.race([rig.driver.failed, settle().then(() => "nothing failed")]);
    expect(first).toBe("nothing failed");
  });
});
