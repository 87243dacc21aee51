import type { Access, AccessRequest } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { isLoopback } from "../model/loopback.ts";

/**
 * Access without tokens: whoever reaches the port may come in, but no page of another site through a browser. A request
 * with an Origin is let in only if that has the host of the request; on a loopback port that must be a loopback name too,
 * or a name of the attacker that resolves to loopback would do.
 */
export function createOpenAccess(options: { readonly boundToLoopback: boolean }): Access {
  return {
    refuse({ query, origin, host }: AccessRequest) {
      if (hasToken(query)) {
        const hint = "send it as `Authorization: Bearer …`; URLs end up in logs and histories";
        return new EvenkeelError("invalid", "a token in the URL is not taken", hint);
      }
      if (origin === undefined || isOwnOrigin(origin, host, options.boundToLoopback)) return undefined;
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

function isOwnOrigin(origin: string, host: string | undefined, mustBeLoopback: boolean): boolean {
  const from = parse(origin);
  if (from === undefined || host === undefined || !HOST_PATTERN.test(host)) return false;
  // Both are read as URLs of one scheme, so that its default port may be written or not.
  const to = parse(`${from.protocol}//${host}`);
  if (to === undefined || to.host !== from.host) return false;
  return !mustBeLoopback || isLoopback(to.hostname);
}

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
