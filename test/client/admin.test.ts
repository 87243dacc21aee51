import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { AdminClient, ConnectError } from "../../src/client/admin.ts";
import { EvenkeelError } from "../../src/model/errors.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server that answers everything alike, and what it was asked. */
async function answering(status: number, body: unknown, type = "application/json") {
  const asked: Asked[] = [];
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url, headers } = request;
    asked.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(status, { "content-type": type });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

describe("admin client", () => {
  it("asks for the status with its token", async () => {
    const { url, asked } = await answering(200, { state: "converged", converged: true });
    const admin = new AdminClient({ url: `${url}/`, token: "t0k" });
    expect(await admin.status()).toEqual({ state: "converged", converged: true });
    expect(asked[0]).toMatchObject({ method: "GET", url: "/v1/status", headers: { authorization: "Bearer t0k" } });
  });

  it("puts and deletes tables as JSON, with the name escaped", async () => {
    const { url, asked } = await answering(200, { table: { name: "a b" }, revision: 4 });
    const admin = new AdminClient({ url });
    expect(await admin.putTable("a b", { partitions: 8, stop: "5s" })).toMatchObject({ revision: 4 });
    await admin.deleteTable("a/b");
    expect(asked.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      "PUT /v1/tables/a%20b",
      "DELETE /v1/tables/a%2Fb",
    ]);
    expect(asked[0]?.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(asked[0]?.body ?? "")).toEqual({ partitions: 8, stop: "5s" });
  });

  it("throws what a problem document says, with code, detail and hint", async () => {
    const problem = {
      status: 409,
      code: "table-fixed",
      detail: "partitions cannot shrink",
      hint: "make another table",
    };
    const { url } = await answering(409, problem, "application/problem+json");
    const error = await new AdminClient({ url }).putTable("t", { partitions: 1 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EvenkeelError);
    expect(error).toMatchObject({
      code: "table-fixed",
      detail: "partitions cannot shrink",
      hint: "make another table",
    });
  });

  it.each([
    [404, "not-found"],
    [401, "unauthenticated"],
    [503, "not-ready"],
  ])("takes a bare %i, as from a proxy, for %s", async (status, code) => {
    const { url } = await answering(status, "<html>", "text/html");
    await expect(new AdminClient({ url }).status()).rejects.toMatchObject({ name: "EvenkeelError", code });
  });

  it.each([
    [200, "<html>"],
    [502, "<html>"],
    [200, "null"],
  ])("says that %i %s is no scheduler's answer", async (status, body) => {
    const { url } = await answering(status, body, "text/html");
    await expect(new AdminClient({ url }).status()).rejects.toThrow(ConnectError);
  });

  it("says where nobody listens, and why", async () => {
    const { url } = await answering(200, {});
    for (const cleanup of cleanups.splice(0)) await cleanup();
    const error = await new AdminClient({ url }).status().catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(ConnectError);
    expect((error as Error).message).toMatch(`cannot reach a scheduler at ${url}: connect ECONNREFUSED`);
  });

  it("waits no longer than its time", async () => {
    const server = createServer(() => {});
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(new AdminClient({ url, timeoutMs: 50 }).status()).rejects.toThrow("no answer in time");
  });

  it("refuses an address that is none", () => {
    expect(() => new AdminClient({ url: "localhost:7420" })).toThrow(EvenkeelError);
  });
});
