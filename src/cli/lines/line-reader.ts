import { PartitionSet } from "../../model/partition-set.ts";

/** A line of the program that is told what it owns. */
export interface AnswerLine {
  readonly type: "ready" | "released" | "failed";
  readonly table: string;
  readonly partitions: PartitionSet;
  readonly epoch: number;
  /** Of a failure; empty for the others. */
  readonly reason: string;
  readonly retryable: boolean;
}

/** A line that cannot be used; the message says why. */
export class LineError extends Error {
  override readonly name = "LineError";
}

const TYPES = ["ready", "released", "failed"] as const;

/** Reads one line. Members that are not known are ignored, as on the wire. Throws LineError. */
export function readLine(line: string): AnswerLine {
  const members = readObject(line);
  const type = TYPES.find((known) => known === members["type"]);
  if (type === undefined) throw new LineError(`type must be one of ${TYPES.join(", ")}`);
  const { table, epoch, reason = "", retryable = true } = members;
  if (typeof table !== "string") throw new LineError("table must be text");
  if (typeof epoch !== "number" || !Number.isSafeInteger(epoch)) throw new LineError("epoch must be a whole number");
  if (typeof reason !== "string") throw new LineError("reason must be text");
  if (typeof retryable !== "boolean") throw new LineError("retryable must be true or false");
  return { type, table, partitions: readPartitions(members["partitions"]), epoch, reason, retryable };
}

function readObject(line: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new LineError("it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new LineError("it is not a JSON object");
  return value as Readonly<Record<string, unknown>>;
}

function readPartitions(value: unknown): PartitionSet {
  if (typeof value !== "string") throw new LineError('partitions must be text such as "0-3,7"');
  try {
    return PartitionSet.parse(value);
  } catch (error) {
    throw new LineError(error instanceof Error ? error.message : String(error));
  }
}
