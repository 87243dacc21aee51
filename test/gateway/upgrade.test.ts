import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LINGER_MS } from "../../src/gateway/limits.ts";
import { MAX_HEADER_BYTES } from "../../src/http/limits.ts";
import { settle } from "../../src/testing/fake-clock.ts";
import { type Answer, ask, dial, GatewayRig, UPGRADE, until } from "./harness.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await new GatewayRig({ headersTimeoutMs: 200 }).start();
});
afterEach(() => rig.stop());

const upgrade = (changes: Record<string, string | undefined> = {}, path?: string): Promise<Answer> =>
  ask(rig.port, { headers: { ...UPGRADE, ...changes }, ...(path === undefined ? {} : { path }) });

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(answer.headers["content-type"]).toBe("application/problem+json");
  expect(answer.body).toMatchObject({ status, code });
  expect(answer.body["title"]).toBeTypeOf("string");
  expect(answer.body["detail"]).toBeTypeOf("string");
}

function connectionCount(): Promise<number> {
  return new Promise((resolve, reject) => {
    rig.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}

test("a proper upgrade is taken, with the subprotocol and without compression", async () => {
  const answer = await upgrade({ "sec-websocket-extensions": "permessage-deflate" });
  expect(answer.status).toBe(101);
  expect(answer.headers["sec-websocket-protocol"]).toBe("evenkeel.v1");
  expect(answer.headers["sec-websocket-extensions"]).toBeUndefined();
});

describe("refused before the upgrade, with problem+json", () => {
  test("400: no or only unknown subprotocols, and the body says which there are", async () => {
    for (const offered of [undefined, "evenkeel.v0", "chat, evenkeel.v2"]) {
      const answer = await upgrade({ "sec-websocket-protocol": offered });
      expectProblem(answer, 400, "invalid");
      expect(answer.body["supported"]).toEqual(["evenkeel.v1"]);
    }
  });

  test("one known subprotocol among others is enough, and is the one that is spoken", async () => {
    const answer = await upgrade({ "sec-websocket-protocol": "evenkeel.v2, evenkeel.v1" });
    expect([answer.status, answer.headers["sec-websocket-protocol"]]).toEqual([101, "evenkeel.v1"]);
  });

  test("400: a token in the URL, which goes to no log and no answer", async () => {
    for (const query of ["token=s3cret", "access_token=s3cret", "a=1&TOKEN=s3cret"]) {
      const answer = await upgrade({}, `/v1/session?${query}`);
      expectProblem(answer, 400, "invalid");
      expect(JSON.stringify([answer.body, rig.lines])).not.toContain("s3cret");
    }
  });

  test("400: headers that are no handshake", async () => {
    for (const key of [undefined, "short", "A".repeat(24)]) {
      expectProblem(await upgrade({ "sec-websocket-key": key }), 400, "invalid");
    }
    expectProblem(await upgrade({ "sec-websocket-protocol": "evenkeel.v1, evenkeel.v1" }), 400, "invalid");
    expectProblem(await upgrade({ "sec-websocket-protocol": "evenkeel.v1, a b" }), 400, "invalid");
  });

  test("403: an Origin that is not this server", async () => {
    for (const origin of ["http://evil.example", "null", `http://127.0.0.1:${rig.port + 1}`]) {
      expectProblem(await upgrade({ origin }), 403, "forbidden");
    }
    expect((await upgrade({ origin: `http://127.0.0.1:${rig.port}` })).status).toBe(101);
  });

  test("403: an Origin that is the Host, where Host is a name that only resolves to loopback", async () => {
    const answer = await upgrade({ origin: `http://evil.example:${rig.port}`, host: `evil.example:${rig.port}` });
    expectProblem(answer, 403, "forbidden");
  });

  test("403: a Host that is not this machine, without any Origin; any port of a loopback name is no matter", async () => {
    for (const host of ["evil.example", `evil.example:${rig.port}`, `0.0.0.0:${rig.port}`]) {
      expectProblem(await upgrade({ host }), 403, "forbidden");
    }
    for (const host of ["localhost:1", "127.0.0.1", "[::1]:7420"]) expect((await upgrade({ host })).status).toBe(101);
  });

  test("400: no Host", async () => {
    const socket = await dial(rig.port);
    const headers = Object.entries(UPGRADE).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET /v1/session HTTP/1.1\r\n${headers.join("")}\r\n`);
    await until("the refusal", () => socket.received.endsWith("}"));
    expect(socket.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(socket.received.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "invalid" });
  });

  test("405: CONNECT, and the connection ends", async () => {
    const socket = await dial(rig.port);
    socket.write("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n");
    await until("the end", () => socket.readableEnded);
    expect(socket.received).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    expect(JSON.parse(socket.received.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "method-not-allowed" });
    while ((await connectionCount()) > 0) await settle();
  });

  test("404: another path", async () => {
    for (const path of ["/", "/v1/sessions", "/v1/session/", "/V1/session", "//v1/session"]) {
      expectProblem(await upgrade({}, path), 404, "not-found");
    }
  });

  test("405: another method", async () => {
    const answer = await ask(rig.port, { method: "POST", headers: UPGRADE });
    expectProblem(answer, 405, "method-not-allowed");
    expect(answer.headers.allow).toBe("GET");
  });

  test("426: an upgrade to something else, or to another version of WebSocket", async () => {
    const other = await upgrade({ upgrade: "h2c" });
    expectProblem(other, 426, "upgrade-required");
    expect(other.headers.upgrade).toBe("websocket");
    const old = await upgrade({ "sec-websocket-version": "8" });
    expectProblem(old, 426, "upgrade-required");
    expect(old.headers["sec-websocket-version"]).toBe("13");
  });

  test("503 with Retry-After: not ready", async () => {
    rig.host.isReady = false;
    const answer = await upgrade();
    expectProblem(answer, 503, "not-ready");
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    rig.host.isReady = true;
    expect((await upgrade()).status).toBe(101);
  });

  test("431: headers one byte too large; as large as they may be is no problem", async () => {
    // Node counts names, values and separators its own way, so the border is looked for within a small span.
    const sizes = Array.from({ length: 20 }, (_, index) => MAX_HEADER_BYTES - 600 + 40 * index);
    const statuses: number[] = [];
    for (const size of sizes) statuses.push((await upgrade({ "x-padding": "x".repeat(size) })).status);
    expect(statuses[0]).toBe(101);
    expect(statuses.at(-1)).toBe(431);
    expectProblem(await upgrade({ "x-padding": "x".repeat(2 * MAX_HEADER_BYTES) }), 431, "headers-too-large");
  });

  test("408: headers that do not come to an end in time", async () => {
    const socket = await dial(rig.port);
    socket.write("GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
    await until("the refusal", () => socket.received.includes("\r\n\r\n{") && socket.received.endsWith("}"));
    expect(socket.received).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(JSON.parse(socket.received.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "request-timeout" });
  });

  test("400: what is not HTTP, once, whatever follows; what follows does not cut the answer off", async () => {
    const socket = await dial(rig.port, { allowHalfOpen: true });
    socket.write("\u0016\u0003garbage\r\n\r\n");
    await until("the refusal", () => socket.received.endsWith("}"));
    let drained = 0;
    for (let n = 0; n < 20; n++) socket.write("more garbage\r\n\r\n", () => drained++);
    await until("the rest to be sent", () => drained === 20);
    for (let n = 0; n < 20; n++) await settle();
    expect(await connectionCount()).toBe(1);
    expect(socket.received.match(/^HTTP\/1\.1 400 Bad Request/gm)).toHaveLength(1);
    rig.clock.advance(LINGER_MS);
    while ((await connectionCount()) > 0) await settle();
  });
});

test("a refused peer that does not leave is cut off", async () => {
  const socket = await dial(rig.port, { allowHalfOpen: true });
  socket.write("GET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await until("the refusal", () => socket.received.endsWith("}"));
  rig.clock.advance(LINGER_MS - 1);
  expect(await connectionCount()).toBe(1);
  rig.clock.advance(1);
  while ((await connectionCount()) > 0) await settle();
  socket.destroy();
});

test("refusals leave no session, no event, and nothing of the URL in the log", async () => {
  await upgrade({}, "/v1/elsewhere?secret=1");
  await upgrade({ origin: "http://evil.example" });
  expect(rig.gateway.sessionCount).toBe(0);
  expect(rig.host.events).toEqual([]);
  expect(rig.logged("upgrade.refused").map(({ fields }) => fields["code"])).toEqual(["not-found", "forbidden"]);
  expect(JSON.stringify(rig.lines)).not.toMatch(/elsewhere|secret|evil/);
});
