import { AdminClient } from "../client/admin.ts";
import type { ConnectOptions } from "./options.ts";

/** The scheduler that the options name. */
export function adminOf({ url, token, timeout }: ConnectOptions & { readonly timeout?: number }): AdminClient {
  return new AdminClient({
    url,
    ...(token === undefined ? {} : { token }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
  });
}
