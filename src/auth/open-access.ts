import type { Access, AccessRequest } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { isLoopback } from "../model/loopback.ts";

/**
 * Access without tokens: whoever reaches the port may come in, but no page of another site through a browser. A request
 * with an Origin is let in only if that has the host of the request. On a loopback port the host must be a loopback name,
 * with an Origin or without: a name of an attacker may be made to resolve to loopback, and for a browser the pages of that
 * name then are this server's own, whose reads need no Origin.
 */
export function createOpenAccess({ boundToLoopback }: { readonly boundToLoopback: boolean }): Access {
  return {
    refuse({ query, origin, host }: AccessRequest) {
      if (hasToken(query)) {
        const hint = "send it as `Authorization: Bearer …`; URLs end up in logs and histories";
        return new EvenkeelError("invalid", "a token in the URL is not taken", hint);
      }
      if (host === undefined) return new EvenkeelError("invalid", "the request has no Host");
      if (boundToLoopback && !isLoopbackHost(host)) {
        const hint = "ask for it as 127.0.0.1 or localhost; a proxy in front has to send that name on";
        return new EvenkeelError("forbidden", "the Host of the request is not this machine", hint);
      }
      if (origin === undefined || isOwnOrigin(origin, host)) return undefined;
      const hint = "a page may only use the scheduler that served it";
      return new EvenkeelError("forbidden", "the Origin of the request is not this server", hint);
    },
  };
}

const TOKEN_NAMES = new Set(["token", "access_token", "ticket", "authorization"]);

function hasToken(query: string): boolean {
  return [...new URLSearchParams(query).keys()].some((name) => TOKEN_NAMES.has(name.toLowerCase()));
}

/** A name or address, and perhaps a port: nothing that the URL parser would read as another part of a URL. */
const HOST_PATTERN = /^[A-Za-z0-9._:[\]-]+$/;

function isLoopbackHost(host: string): boolean {
  const to = parseHost(host, "http:");
  return to !== undefined && isLoopback(to.hostname);
}

function isOwnOrigin(origin: string, host: string): boolean {
  const from = parse(origin);
  // Both are read as URLs of one scheme, so that its default port may be written or not.
  return from !== undefined && parseHost(host, from.protocol)?.host === from.host;
}

function parseHost(host: string, protocol: string): URL | undefined {
  return HOST_PATTERN.test(host) ? parse(`${protocol}//${host}`) : undefined;
}

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
