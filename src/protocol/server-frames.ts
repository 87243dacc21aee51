import * as z from "zod";
import {
  causeList,
  grantList,
  integer,
  keyList,
  plainId,
  positiveInteger,
  revokeList,
  serverText,
  tableFactsList,
} from "./values.ts";

/** Frames that a scheduler sends to an executor; some of them to an observer as well. Members not listed are ignored. */

/** Answer to a hello. An observer's has no `lease`; an executor's always has one, which counts from when the hello was sent. */
export const welcome = z.object({
  type: z.literal("welcome"),
  cluster: serverText,
  incarnation: plainId,
  term: positiveInteger,
  session: plainId,
  resumed: z.boolean(),
  status: z.enum(["pending", "assigned"]),
  waitingFor: z.exactOptional(serverText),
  lease: z.exactOptional(z.object({ durationMs: integer, renewMs: integer, clientMarginMs: integer })),
  stamp: serverText,
});

/** Ownership from `base` to `revision`, or one page of it. */
export const push = z.object({
  type: z.literal("push"),
  revision: integer,
  base: integer.nullable(),
  /** On the first page. */
  cause: z.exactOptional(causeList),
  grant: grantList.default([]),
  prepare: grantList.default([]),
  revoke: revokeList.default([]),
  tables: tableFactsList.default([]),
  keys: keyList.default([]),
  /** True on all pages but the last. */
  more: z.exactOptional(z.boolean()),
});

/** Answer to renew `n`: good for `durationMs` from when that was sent. */
export const lease = z.object({
  type: z.literal("lease"),
  n: positiveInteger,
  durationMs: integer,
  renewMs: integer,
  stamp: z.exactOptional(serverText),
});

/** Reconnect after this time; the lease stays valid. */
export const goaway = z.object({ type: z.literal("goaway"), afterMs: integer, reason: serverText });

/** Nothing is owned, prepared or awaited any more. */
export const left = z.object({ type: z.literal("left") });

/** Last frame before a close with `code`. */
export const refused = z.object({
  type: z.literal("refused"),
  code: integer,
  reason: serverText,
  retryAfterMs: z.exactOptional(integer),
  leader: z.exactOptional(serverText),
});
