import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { EvenkeelError } from "../model/errors.ts";
import { problemAnswer } from "./answers.ts";
import {
  CLOSE_TIMEOUT_MS,
  HEADERS_TIMEOUT_MS,
  MAX_CONNECTIONS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
  TIMEOUT_CHECK_MS,
} from "./limits.ts";

export interface HttpServerOptions {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** How long headers may take. */
  readonly headersTimeoutMs?: number;
}

/** A Node server for the API, with limits. Upgrades and broken requests are for its listeners to answer. */
export function createHttpServer({ fetch, headersTimeoutMs = HEADERS_TIMEOUT_MS }: HttpServerOptions): Server {
  // Requests that cannot be made a Request of: without a Host, or with one or a path that is no part of a URL.
  const errorHandler = () => problemAnswer(new EvenkeelError("invalid", "the request's path or Host is not valid"));
  const server = createServer(
    {
      // Node would answer by itself, without a body.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersTimeoutMs,
      requestTimeout: Math.max(REQUEST_TIMEOUT_MS, headersTimeoutMs),
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, headersTimeoutMs),
    },
    getRequestListener(fetch, { errorHandler }),
  );
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

/** Rejects with Node's error if the address cannot be had. */
export function listen(
  server: Server,
  address: { readonly host: string; readonly port: number },
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      server.removeListener("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Takes no more requests and waits for those under way, but not for ever. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
