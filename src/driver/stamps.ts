import { createHmac } from "node:crypto";
import type { Revision } from "../model/ids.ts";
import type { Stamps } from "./ports.ts";

/**
 * Stamps of PROTOCOL §4: strings that only a scheduler with the store's key can make. Term and revision stand in clear, so
 * that whoever verifies one knows what it proves; the MAC covers the incarnation as well.
 */
export function createStamps(key: Uint8Array, incarnation: string, term: number): Stamps {
  // One per revision, the same for all: a change that touches all sessions costs one MAC.
  let last: { readonly revision: Revision; readonly stamp: string } | undefined;
  return {
    mint(revision) {
      if (last?.revision !== revision) {
        const mac = createHmac("sha256", key).update(`${incarnation}\n${term}\n${revision}`).digest("base64url");
        last = { revision, stamp: `1.${term}.${revision}.${mac}` };
      }
      return last.stamp;
    },
  };
}
