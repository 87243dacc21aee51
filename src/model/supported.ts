import type { TableSpec } from "./change.ts";
import { EvenkeelError } from "./errors.ts";

/**
 * Refuses what the protocol has and this version does not do yet, rather than take it for something else. Throws
 * EvenkeelError `not-supported`, naming the member.
 */
export function refuseUnsupported({ handoff, balance, selector }: TableSpec): void {
  const hint = "leave the member out";
  if (handoff === "overlap") {
    throw new EvenkeelError(
      "not-supported",
      "handoff: overlap tables are not supported yet, only exclusive ones",
      hint,
    );
  }
  if (balance === "load") {
    throw new EvenkeelError("not-supported", "balance: balancing by load is not supported yet, only by count", hint);
  }
  if (Object.keys(selector).length > 0) {
    throw new EvenkeelError("not-supported", "selector: tables for some executors only are not supported yet", hint);
  }
}
