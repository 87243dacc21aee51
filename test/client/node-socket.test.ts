import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocketServer, type WebSocket as WsSocket } from "ws";
import { connectExecutor, type Executor, type ExecutorOptions } from "../../src/client/executor.ts";
import { nodeDial, refusalOf } from "../../src/client/node-socket.ts";
import type { SocketEnd } from "../../src/client/ports.ts";
import { SESSION_PATH, SUBPROTOCOL } from "../../src/protocol/limits.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A bare WebSocket server that gives the test its sockets. */
async function listen(answer?: (response: ServerResponse) => void) {
  const http: Server = createServer();
  const sockets: WsSocket[] = [];
  const headers: NodeJS.Dict<string | string[]>[] = [];
  const server = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOL });
  http.on("upgrade", (request, socket, head) => {
    headers.push(request.headers);
    if (answer === undefined) return server.handleUpgrade(request, socket, head, (ws) => void sockets.push(ws));
    const text: string[] = [];
    const response = { end: (all: string) => text.push(all) } as unknown as ServerResponse;
    answer(response);
    socket.end(text.join(""));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  cleanups.push(() => {
    for (const socket of sockets) socket.terminate();
    http.closeAllConnections();
    return new Promise((resolve) => http.close(resolve));
  });
  return { url: `ws://127.0.0.1:${(http.address() as AddressInfo).port}`, sockets, headers };
}

/** Waits until `read` gives something; fails after five seconds. */
async function until<T>(read: () => T | undefined): Promise<T> {
  const deadline = performance.now() + 5_000;
  while (performance.now() < deadline) {
    const value = read();
    if (value !== undefined) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("it did not come about within 5 s");
}

function connect(options: Partial<ExecutorOptions> & { readonly url: string }, granted: string[] = []): Executor {
  const executor = connectExecutor(
    { executor: "a", instance: "a-1", ...options },
    {
      onGrant: ({ table, partition, epoch }) => void granted.push(`${table}/${partition}@${epoch}`),
      onRevoke: () => {},
    },
  );
  cleanups.push(() => executor.close());
  return executor;
}

const WELCOME = {
  type: "welcome",
  cluster: "demo",
  incarnation: "first",
  term: 1,
  session: "s1",
  resumed: false,
  status: "assigned",
  lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000 },
  stamp: "x",
};

describe("over a real socket", () => {
  it("hello, welcome, push, ack, ready", async () => {
    const { url, sockets, headers } = await listen();
    const granted: string[] = [];
    const executor = connect({ url, token: "t0k" }, granted);
    const socket = await until(() => sockets[0]);
    const frames: { readonly type: string }[] = [];
    socket.on("message", (data) => frames.push(JSON.parse(data.toString())));
    expect(await until(() => frames[0])).toMatchObject({ type: "hello", executor: "a", instance: "a-1", attempt: 1 });
    expect(headers[0]).toMatchObject({ authorization: "Bearer t0k", "sec-websocket-protocol": SUBPROTOCOL });
    expect(headers[0]).not.toHaveProperty("sec-websocket-extensions");
    socket.send(JSON.stringify(WELCOME));
    const tables = [{ table: "trips", count: 8, created: 1, handoff: "exclusive" }];
    const grant = [{ table: "trips", partitions: "0-1", epoch: 7 }];
    socket.send(JSON.stringify({ type: "push", revision: 7, base: null, cause: [], grant, tables }));
    expect(await until(() => frames.find((frame) => frame.type === "ack"))).toEqual({ type: "ack", revision: 7 });
    expect(await until(() => frames.find((frame) => frame.type === "report"))).toEqual({
      type: "report",
      ready: grant,
    });
    expect(granted).toEqual(["trips/0@7", "trips/1@7"]);
    expect(executor.owns("trips", 1)).toBe(7);
    expect(executor.status()).toMatchObject({ state: "assigned", url: `${url}${SESSION_PATH}`, owned: 2, ready: 2 });
  });

  it("a binary frame or one that is too large costs the scheduler its socket, not the process", async () => {
    const { url, sockets } = await listen();
    connect({ url });
    const first = await until(() => sockets[0]);
    first.send(Buffer.from("binary"));
    const [code] = await once(first, "close");
    expect(code).toBe(1003);
    const second = await until(() => sockets[1]);
    second.send("x".repeat(300_000));
    await once(second, "close");
    await until(() => sockets[2]);
  });

  it("a peer that never answers a close is cut all the same", async () => {
    const http = createServer();
    const raw: Duplex[] = [];
    http.on("upgrade", (request, socket) => {
      const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash("sha1").update(key).digest("base64");
      const lines = ["HTTP/1.1 101 OK", "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
      socket.write([...lines, `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`, "", ""].join("\r\n"));
      socket.once("data", () => raw.push(socket));
    });
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    cleanups.push(() => {
      for (const socket of raw) socket.destroy();
      return new Promise((resolve) => http.close(resolve));
    });
    const executor = connect({ url: `ws://127.0.0.1:${(http.address() as AddressInfo).port}` });
    const socket = await until(() => raw[0]);
    socket.resume();
    await executor.close();
    await once(socket, "end");
  });

  it("an upgrade that is refused ends with what the problem document says", async () => {
    const body = JSON.stringify({ title: "Not allowed", status: 403, code: "forbidden", detail: "wrong cluster" });
    const { url } = await listen((response) =>
      response.end(
        `HTTP/1.1 403 Forbidden\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n${body}`,
      ),
    );
    const closed = await connect({ url }).closed;
    expect(closed).toMatchObject({ reason: "refused", error: { refusal: 403 } });
    expect("error" in closed && closed.error.message).toContain("wrong cluster");
  });

  it("a token function is asked for each connection, and its failure is one of the connection", async () => {
    const { url, sockets, headers } = await listen();
    const tokens = ["one", "two"];
    const executor = connect({
      url,
      token: async () => {
        const token = tokens.shift();
        if (token === undefined) throw new Error("vault is sealed");
        return token;
      },
    });
    (await until(() => sockets[0])).close(4401);
    (await until(() => sockets[1])).close(4401);
    expect(headers.map((one) => one["authorization"])).toEqual(["Bearer one", "Bearer two"]);
    const { lastProblem } = await until(() => {
      const status = executor.status();
      return status.lastProblem?.includes("vault") ? status : undefined;
    });
    expect(lastProblem).toContain("the token function failed: vault is sealed");
  });
});

describe("a dial", () => {
  it("to nobody ends as failed, and not at all once it was closed", async () => {
    const ends: SocketEnd[] = [];
    const handlers = { opened() {}, received() {}, ended: (end: SocketEnd) => void ends.push(end) };
    const closedEarly: SocketEnd[] = [];
    const early = nodeDial(undefined)("ws://127.0.0.1:1/v1/session", {
      ...handlers,
      ended: (end) => void closedEarly.push(end),
    });
    early.close(1000, "never mind");
    nodeDial(undefined)("ws://127.0.0.1:1/v1/session", handlers);
    const end = await until(() => ends[0]);
    expect(end).toMatchObject({ kind: "failed" });
    expect(end.kind === "failed" && end.detail).toContain("ECONNREFUSED");
    expect(closedEarly).toEqual([]);
  });
});

describe("a refusal", () => {
  it("has the detail of its problem document, and honours Retry-After within reason", () => {
    expect(refusalOf(503, '{"detail":"not ready"}', "2")).toEqual({
      kind: "refused",
      status: 503,
      detail: "status 503: not ready",
      retryAfterMs: 2_000,
    });
    expect(refusalOf(503, "<html>", "1e9")).toMatchObject({ retryAfterMs: 3_600_000 });
    expect(refusalOf(503, "", "soon")).not.toHaveProperty("retryAfterMs");
  });
});
