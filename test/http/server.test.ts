import { once } from "node:events";
import type { Server } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createOpenAccess } from "../../src/auth/open-access.ts";
import type { SchedulerApi } from "../../src/driver/ports.ts";
import { createApp } from "../../src/http/app.ts";
import { closeServer, createHttpServer, listen } from "../../src/http/server.ts";

let server: Server;
let port: number;
const calls: string[] = [];

beforeEach(async () => {
  const api = {
    ready: () => true,
    putTable: () => calls.push("put"),
    deleteTable: () => calls.push("delete"),
  } as unknown as SchedulerApi;
  const app = createApp({
    api,
    access: createOpenAccess({ boundToLoopback: true }),
    log: { log: () => {} },
    version: "1.2.3",
    sessionPath: "/v1/session",
  });
  server = createHttpServer({ fetch: (request) => app.fetch(request) });
  ({ port } = await listen(server, { host: "127.0.0.1", port: 0 }));
});
afterEach(() => closeServer(server));

/** Sends what no library would, and reads until the server ends the connection. */
async function say(...lines: readonly string[]): Promise<{ readonly status: number; readonly body: unknown }> {
  const socket = connect({ port, host: "127.0.0.1" });
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  socket.write([...lines, "Connection: close", "", ""].join("\r\n"));
  await once(socket, "close");
  const [head = "", body = ""] = received.split("\r\n\r\n");
  expect(head).toMatch(/^content-type: application\/(problem\+)?json$/im);
  return { status: Number(head.split(" ")[1]), body: JSON.parse(body) };
}

test("a request with its Host is answered", async () => {
  expect(await say("GET /livez HTTP/1.1", `Host: 127.0.0.1:${port}`)).toEqual({ status: 200, body: { alive: true } });
});

test.each(["HTTP/1.1", "HTTP/1.0"])("400 with a problem body without a Host: %s", async (version) => {
  expect(await say(`GET /livez ${version}`)).toMatchObject({ status: 400, body: { code: "invalid" } });
  expect(await say(`GET http://127.0.0.1:${port}/livez ${version}`)).toMatchObject({ status: 400 });
});

test("403 for the Host of another site", async () => {
  const answer = await say("GET /v1/status HTTP/1.1", `Host: evil.example:${port}`);
  expect(answer).toMatchObject({ status: 403, body: { code: "forbidden" } });
});

test.each(["TRACE", "PURGE", "PATCH", "OPTIONS"])("405 for a method that no path takes: %s", async (method) => {
  const answer = await say(`${method} /v1/tables/trips HTTP/1.1`, "Host: localhost");
  expect(answer).toMatchObject({ status: 405, body: { code: "method-not-allowed" } });
  expect(calls).toEqual([]);
});
