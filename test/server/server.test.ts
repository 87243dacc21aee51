import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { closeServer, createHttpServer, listen } from "../../src/http/server.ts";
import { PartitionSet } from "../../src/model/partition-set.ts";
import { startServer } from "../../src/server.ts";
import { ask, UPGRADE, until } from "../gateway/harness.ts";
import { QUICK, ServerRig, tableOf } from "./rig.ts";

let rig: ServerRig;
beforeEach(() => {
  rig = new ServerRig();
});
afterEach(() => rig.stop());

const grantOf = (push: Readonly<Record<string, unknown>>) =>
  ((push["grant"] ?? []) as { table: string; partitions: string; epoch: number }[])[0];
const sizeOf = (text = "") => PartitionSet.parse(text).size;

describe("over real sockets", () => {
  test("F1: hello, welcome, one push of a third each when the grace window closes, ack, lease", async () => {
    const startedAt = performance.now();
    await rig.start({ formation: { quietMs: 400, maxMs: 600 } }, { tables: [tableOf("trips", 9)] });
    const executors = [await rig.join("A"), await rig.join("B"), await rig.join("C")];
    for (const executor of executors) {
      expect(await executor.next("welcome")).toMatchObject({
        cluster: "demo",
        term: 1,
        resumed: false,
        status: "pending",
        lease: { durationMs: 3_000, renewMs: 500, clientMarginMs: 200 },
        stamp: expect.stringMatching(/^1\.1\.\d+\./),
      });
    }
    const pushes = await Promise.all(executors.map((executor) => executor.next("push")));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(400);
    expect(pushes.map((push) => push["base"])).toEqual([null, null, null]);
    expect(new Set(pushes.map((push) => push["revision"])).size).toBe(1);
    const shares = pushes.map((push) => PartitionSet.parse(grantOf(push)?.partitions ?? ""));
    expect(shares.map((share) => share.size)).toEqual([3, 3, 3]);
    expect(shares.reduce((all, share) => all.union(share)).toString()).toBe("0-8");
    await rig.converged();
    expect(executors.flatMap((executor) => executor.of("push"))).toHaveLength(3);
    executors[0]?.send({ type: "renew", n: 1 });
    const answer = await executors[0]?.next("lease");
    expect(answer).toMatchObject({ n: 1, durationMs: 3_000, renewMs: 500 });
    expect(answer?.["stamp"]).toContain(`.${pushes[0]?.["revision"]}.`);
  });

  test("each push stands in the log: executor, session, revision, base, sets, bytes and cause", async () => {
    await rig.start({}, { tables: [tableOf("trips", 9)] });
    const a = await rig.join("A");
    const frame = await a.next("push");
    const [line] = rig.logged("push.sent");
    expect(line).toMatchObject({
      level: "info",
      executor: "A",
      session: (await a.next("welcome"))["session"],
      revision: frame["revision"],
      base: null,
      grant: [{ table: "trips", partitions: "0-8", epoch: frame["revision"], count: 9 }],
      revoke: [],
      prepare: [],
      bytes: JSON.stringify(frame).length,
      pages: 1,
      cause: [{ kind: "formation", executors: ["A"] }],
    });
  });

  test("L2: a late joiner gets its share by handoff, when the others have released it", async () => {
    await rig.start({}, { tables: [tableOf("trips", 9)] });
    const [a, b] = [await rig.join("A"), await rig.join("B")];
    await rig.converged();
    const c = await rig.join("C");
    const push = await c.next("push");
    await until("three for C", () => {
      const shares = c.of("push").map((frame) => sizeOf(grantOf(frame)?.partitions));
      return shares.reduce((sum, share) => sum + share, 0) === 3;
    });
    await rig.converged();
    const { executors } = rig.server.api.status();
    expect(executors.map(({ executor, owned, ready }) => [executor, owned, ready])).toEqual([
      ["A", 3, 3],
      ["B", 3, 3],
      ["C", 3, 3],
    ]);
    const revoked = [a, b].flatMap((executor) => executor.of("push").flatMap((frame) => frame["revoke"] ?? []));
    const moved = (revoked as { partitions: string }[]).reduce((sum, entry) => sum + sizeOf(entry.partitions), 0);
    expect(moved).toBe(3);
    expect(grantOf(push)?.epoch ?? push["revision"]).toBeLessThanOrEqual(rig.server.api.revision());
  });

  test("a leave is answered by `left` when all has moved away", async () => {
    await rig.start({}, { tables: [tableOf("trips", 10)] });
    const [a, b] = [await rig.join("A"), await rig.join("B")];
    await rig.converged();
    b.send({ type: "leave", mode: "move" });
    await b.next("left");
    await until("all for A", () => rig.server.api.status().executors.find(({ owned }) => owned === 10));
    b.socket.close(1000);
    await rig.converged();
    expect(a.closed).toBeUndefined();
  });

  test("tables by HTTP: made, the same again without a revision, deleted, unknown", async () => {
    await rig.start();
    const a = await rig.join("A");
    expect((await rig.http("GET", "/v1/status")).body).toMatchObject({ state: "pending", converged: false });
    const made = await rig.http("PUT", "/v1/tables/trips", { partitions: 4 });
    expect(made.status).toBe(200);
    expect(made.body).toMatchObject({ table: { name: "trips", count: 4, stop: "30s", origin: "api" } });
    await a.next("push");
    await rig.converged();
    const before = rig.server.api.revision();
    const again = await rig.http("PUT", "/v1/tables/trips", { partitions: 4 });
    expect([again.status, again.body["revision"]]).toEqual([200, before]);
    expect((await rig.http("PUT", "/v1/tables/trips", { partitions: 3 })).body["code"]).toBe("table-fixed");
    expect((await rig.http("DELETE", "/v1/tables/trips")).status).toBe(200);
    await until("the table to be gone", () => rig.server.api.tables().length === 0);
    expect((await rig.http("DELETE", "/v1/tables/trips")).body["code"]).toBe("not-found");
  });

  test("F7: tables declared as none are an answer: `assigned`, and an empty push", async () => {
    await rig.start({}, { tables: [] });
    const a = await rig.join("A");
    expect((await a.next("welcome"))["status"]).toBe("assigned");
    const push = await a.next("push");
    expect(push).toMatchObject({ base: null });
    expect(grantOf(push)).toBeUndefined();
    await rig.converged();
  });

  test("a share that takes many frames comes whole", async () => {
    await rig.start({}, { tables: [tableOf("big", 300_000)] });
    const [a, b] = [await rig.join("A", { obedient: false }), await rig.join("B", { obedient: false })];
    const shareOf = (frames: readonly Readonly<Record<string, unknown>>[]) =>
      frames
        .flatMap((frame) => (frame["grant"] ?? []) as { partitions: string }[])
        .reduce((all, entry) => all.union(PartitionSet.parse(entry.partitions)), PartitionSet.empty);
    for (const executor of [a, b]) {
      await until("the last page", () => executor.of("push").some((frame) => frame["more"] !== true));
    }
    const [mine, yours] = [shareOf(a.of("push")), shareOf(b.of("push"))];
    expect([mine.size, yours.size]).toEqual([150_000, 150_000]);
    expect(mine.union(yours).toString()).toBe("0-299999");
  });
});

describe("the server", () => {
  test("says where it listens, in the log and in its url", async () => {
    await rig.start();
    const [line] = rig.logged("server.listening");
    expect(line?.["url"]).toBe(rig.server.url);
    expect(rig.server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(rig.server.wsUrl).toBe(rig.server.url.replace("http", "ws"));
    expect((await rig.http("GET", "/readyz")).status).toBe(200);
    expect((await rig.http("GET", "/livez")).status).toBe(200);
    expect((await rig.http("GET", "/version")).body["version"]).toMatch(/^\d+\.\d+\.\d+/);
    expect((await rig.http("GET", "/v1/session")).status).toBe(426);
  });

  test("an address that others reach is refused, unless insecure is said", async () => {
    const listen = { host: "0.0.0.0", port: 0 };
    await expect(rig.start({}, { listen })).rejects.toMatchObject({ code: "invalid", hint: /--insecure/ });
    await rig.start({}, { listen, insecure: true });
    expect((await rig.http("GET", "/readyz")).status).toBe(200);
  });

  test("an address that is taken rejects with Node's code, and leaves nothing running", async () => {
    await rig.start();
    const port = Number(new URL(rig.server.url).port);
    const folder = await mkdtemp(join(tmpdir(), "evenkeel-server-"));
    const said: string[] = [];
    const second = startServer({
      settings: QUICK,
      listen: { host: "127.0.0.1", port },
      store: { kind: "sqlite", path: join(folder, "evenkeel.db") },
      log: { level: "debug", pretty: "never", sink: { write: (line) => said.push(line) } },
      tables: [tableOf("trips", 9)],
    });
    await expect(second).rejects.toMatchObject({ code: "EADDRINUSE" });
    // It did not lead, and the store was not touched.
    expect(said).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true });
  });

  test("until the store is there and the tables are declared, everything is answered 503", async () => {
    const probe = createHttpServer({ fetch: () => new Response() });
    const { port } = await listen(probe, { host: "127.0.0.1", port: 0 });
    await closeServer(probe);
    const folder = await mkdtemp(join(tmpdir(), "evenkeel-server-"));
    let isOpen = false;
    const starting = rig
      .start(
        {},
        {
          listen: { host: "127.0.0.1", port },
          store: { kind: "sqlite", path: join(folder, "evenkeel.db") },
          tables: [tableOf("trips", 9)],
        },
      )
      .then(() => {
        isOpen = true;
      });
    const early = new Set<number>();
    while (!isOpen) {
      const asked = [ask(port, { headers: UPGRADE }), ask(port, { path: "/v1/status" })].map((answer) =>
        answer.then(({ status }) => status).catch(() => 0),
      );
      const statuses = await Promise.all(asked);
      if (!isOpen) for (const status of statuses) early.add(status);
    }
    await starting;
    expect(early).toContain(503);
    early.delete(0);
    expect([...early]).toEqual([503]);
    expect((await ask(port, { headers: UPGRADE })).status).toBe(101);
    await rig.stop();
    await rm(folder, { recursive: true });
  });

  test("R6: an overlap table is refused at the start, until there are any", async () => {
    const tables = [{ ...tableOf("trips", 9), handoff: "overlap" as const }];
    await expect(rig.start({}, { tables })).rejects.toMatchObject({ code: "not-supported" });
  });

  test("tables that contradict each other are refused at the start", async () => {
    const tables = [tableOf("trips", 9), tableOf("trips", 4)];
    await expect(rig.start({}, { tables })).rejects.toMatchObject({ code: "table-fixed" });
  });

  test("a stop asks each session to go at its own time, closes it 1001, and is over soon after", async () => {
    await rig.start({}, { tables: [tableOf("trips", 9)] });
    const executors = [await rig.join("A"), await rig.join("B"), await rig.join("C")];
    const silent = await rig.connect("silent");
    await rig.converged();
    const { port } = new URL(rig.server.url);
    const stopped = rig.server.stop();
    expect(rig.server.stop()).toBe(stopped);
    await executors[2]?.next("goaway");
    const refused = await ask(Number(port), { headers: UPGRADE });
    expect(refused.status).toBe(503);
    expect((await ask(Number(port), { path: "/readyz" })).status).toBe(503);
    for (const executor of executors) expect((await executor.end()).code).toBe(1001);
    expect((await silent.end()).code).toBe(1001);
    await stopped;
    const waits = executors.map((executor) => executor.of("goaway")[0]?.["afterMs"] as number);
    expect(new Set(waits).size).toBe(3);
    expect(Math.max(...waits)).toBeLessThanOrEqual(QUICK.lease.renewMs);
    expect(rig.lines.at(-1)?.["event"]).toBe("server.stopped");
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
  });
});
