/** The identifiers of DESIGN's vocabulary. Ids are strings with a brand, so that one kind cannot stand in for another. */

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** Stable id of a worker; it outlives its processes. */
export type ExecutorId = Branded<string, "ExecutorId">;
/** One process life of an executor. */
export type InstanceId = Branded<string, "InstanceId">;
/** Name of a table. `created` tells two lives of one name apart. */
export type TableName = Branded<string, "TableName">;
/** One WebSocket connection, named by the scheduler. */
export type SessionId = Branded<string, "SessionId">;

/** Number of a committed change: gap-free within an incarnation. */
export type Revision = number;
/** Revision that granted a partition: the fencing token. */
export type Epoch = number;

/** Characters an id may have. 128 is enough for a Kubernetes pod name with its namespace. */
export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** The pattern in words, for error messages. */
export const ID_RULE = "1 to 128 of A-Z a-z 0-9 . _ : -, starting with a letter or digit";

export function isId(text: string): boolean {
  return ID_PATTERN.test(text);
}

export const executorId = (text: string): ExecutorId => checked(text) as ExecutorId;
export const instanceId = (text: string): InstanceId => checked(text) as InstanceId;
export const tableName = (text: string): TableName => checked(text) as TableName;
export const sessionId = (text: string): SessionId => checked(text) as SessionId;

/** Orders ids by code unit: the same on every machine and in every locale. */
export function byId(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function checked(text: string): string {
  if (!isId(text)) throw new TypeError(`not an id: ${JSON.stringify(text.slice(0, 140))}; an id is ${ID_RULE}`);
  return text;
}
