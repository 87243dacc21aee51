import { createHmac, timingSafeEqual } from "node:crypto";
import type { Revision } from "../model/ids.ts";
import type { Stamps } from "./ports.ts";

/**
 * Stamps of PROTOCOL §4: strings that only a scheduler with the store's key can make. Term and revision stand in clear, so
 * that whoever verifies one knows what it proves; the MAC covers the incarnation as well.
 */
export function createStamps(key: Uint8Array, incarnation: string, term: number): Stamps {
  // One per revision, the same for all: a change that touches all sessions costs one MAC.
  let last: { readonly revision: Revision; readonly stamp: string } | undefined;
  const make = (ofTerm: number, revision: Revision) => {
    const mac = createHmac("sha256", key).update(`${incarnation}\n${ofTerm}\n${revision}`).digest("base64url");
    return `1.${ofTerm}.${revision}.${mac}`;
  };
  return {
    mint(revision) {
      if (last?.revision !== revision) last = { revision, stamp: make(term, revision) };
      return last.stamp;
    },
    verify(stamp) {
      const [, ofTerm, revision] = /^1\.(\d{1,16})\.(\d{1,16})\./.exec(stamp) ?? [];
      if (ofTerm === undefined || revision === undefined) return undefined;
      const proof = { term: Number(ofTerm), revision: Number(revision) };
      const [given, made] = [Buffer.from(stamp), Buffer.from(make(proof.term, proof.revision))];
      return given.length === made.length && timingSafeEqual(given, made) ? proof : undefined;
    },
  };
}
