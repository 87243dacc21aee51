import * as z from "zod";
import { ack, type executorHello, hello, leave, type observerHello, renew, report, update } from "./client-frames.ts";
import { change, event, progress, reset, snapshot } from "./observer-frames.ts";
import { goaway, lease, left, push, refused, welcome } from "./server-frames.ts";

/** Every frame of the protocol, by direction, with the types that follow from the schemas. PROTOCOL.md says what they mean. */

export const clientFrame = z.discriminatedUnion("type", [hello, renew, ack, report, update, leave]);

export const serverFrame = z.discriminatedUnion("type", [
  welcome,
  push,
  lease,
  goaway,
  left,
  refused,
  snapshot,
  change,
  progress,
  reset,
  event,
]);

export type ClientFrame = z.infer<typeof clientFrame>;
export type ServerFrame = z.infer<typeof serverFrame>;

export type ExecutorHelloFrame = z.infer<typeof executorHello>;
export type ObserverHelloFrame = z.infer<typeof observerHello>;
export type HelloFrame = z.infer<typeof hello>;
export type RenewFrame = z.infer<typeof renew>;
export type AckFrame = z.infer<typeof ack>;
export type ReportFrame = z.infer<typeof report>;
export type UpdateFrame = z.infer<typeof update>;
export type LeaveFrame = z.infer<typeof leave>;

export type WelcomeFrame = z.infer<typeof welcome>;
export type PushFrame = z.infer<typeof push>;
export type LeaseFrame = z.infer<typeof lease>;
export type GoawayFrame = z.infer<typeof goaway>;
export type LeftFrame = z.infer<typeof left>;
export type RefusedFrame = z.infer<typeof refused>;

export type SnapshotFrame = z.infer<typeof snapshot>;
export type ChangeFrame = z.infer<typeof change>;
export type ProgressFrame = z.infer<typeof progress>;
export type ResetFrame = z.infer<typeof reset>;
export type EventFrame = z.infer<typeof event>;
