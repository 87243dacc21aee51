import { StoreError } from "../../driver/ports.ts";
import { type ErrorCode, EvenkeelError } from "../../model/errors.ts";
import type { OperationName, Operations } from "./operations.ts";

/** What goes between the threads. */

export interface Request<K extends OperationName = OperationName> {
  readonly id: number;
  readonly name: K;
  readonly args: Parameters<Operations[K]>;
}

export type Message =
  | { readonly type: "answer"; readonly id: number; readonly value: unknown }
  | { readonly type: "failure"; readonly id: number; readonly failure: Failure }
  /** The thread can do nothing more. */
  | { readonly type: "lost"; readonly reason: string };

/** An error as plain data: classes do not survive the way between threads. */
export type Failure =
  | { readonly kind: "store"; readonly code: StoreError["code"]; readonly message: string }
  | { readonly kind: "evenkeel"; readonly code: ErrorCode; readonly detail: string; readonly hint?: string | undefined }
  | { readonly kind: "other"; readonly message: string };

export function toFailure(error: unknown): Failure {
  if (error instanceof StoreError) return { kind: "store", code: error.code, message: error.message };
  if (error instanceof EvenkeelError) {
    return { kind: "evenkeel", code: error.code, detail: error.detail, hint: error.hint };
  }
  return { kind: "other", message: error instanceof Error ? error.message : String(error) };
}

export function toError(failure: Failure): Error {
  switch (failure.kind) {
    case "store":
      return new StoreError(failure.code, failure.message);
    case "evenkeel":
      return new EvenkeelError(failure.code, failure.detail, failure.hint);
    case "other":
      return new Error(failure.message);
    default:
      return failure satisfies never;
  }
}
