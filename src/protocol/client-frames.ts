import * as z from "zod";
import type { TableName } from "../model/ids.ts";
import { MAX_ADDRESS_CHARS, MAX_STAMP_CHARS } from "./limits.ts";
import {
  executorIdValue,
  failureList,
  grantList,
  idList,
  instanceIdValue,
  integer,
  labelsValue,
  loadList,
  plainId,
  positiveInteger,
  text,
  traitMembers,
  weightValue,
} from "./values.ts";

/** Frames that a client sends. Members that are not listed here are ignored. */

const resume = { incarnation: plainId, revision: integer };

/** First frame of an executor: who it is, and, with `resume`, what it still holds. */
export const executorHello = z.object({
  type: z.literal("hello"),
  role: z.literal("executor"),
  executor: executorIdValue,
  instance: instanceIdValue,
  attempt: integer,
  stamp: z.exactOptional(text(MAX_STAMP_CHARS)),
  resume: z.exactOptional(z.object(resume)),
  ...traitMembers,
  weight: weightValue.default(1),
});

/** First frame of an observer: which tables it follows; absent: all. */
export const observerHello = z.object({
  type: z.literal("hello"),
  role: z.literal("observer"),
  tables: z.exactOptional(idList<TableName>()),
  resume: z.exactOptional(z.object({ ...resume, tables: z.exactOptional(idList<TableName>()) })),
  events: z.exactOptional(z.boolean()),
});

/** Asks for the lease to be extended. `n` rises within the session. */
export const renew = z.object({ type: z.literal("renew"), n: positiveInteger });

/** The push of this revision was applied. */
export const ack = z.object({ type: z.literal("ack"), revision: integer });

/** What became of granted, prepared and revoked partitions. */
export const report = z.object({
  type: z.literal("report"),
  ready: grantList.default([]),
  released: grantList.default([]),
  failed: failureList.default([]),
  load: loadList.default([]),
});

/** Changes what hello said; a member that is absent stays as it is. */
export const update = z.object({
  type: z.literal("update"),
  address: z.exactOptional(text(MAX_ADDRESS_CHARS)),
  labels: z.exactOptional(labelsValue),
  weight: z.exactOptional(weightValue),
  capacity: z.exactOptional(integer),
});

export const leave = z.object({ type: z.literal("leave"), mode: z.enum(["move", "restart"]) });

export const hello = z.discriminatedUnion("role", [executorHello, observerHello]);
