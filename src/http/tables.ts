import type { Context } from "hono";
import type { SchedulerApi } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { ID_RULE, isId, type Revision, type TableName, tableName } from "../model/ids.ts";
import { jsonAnswer } from "./answers.ts";
import { readTableBody, tableView } from "./table-body.ts";

/** `/v1/tables` and `/v1/tables/NAME`. */

export function listTables(api: SchedulerApi): Response {
  const revision = api.revision();
  return jsonAnswer({ tables: api.tables().map(tableView), revision }, etag(revision));
}

export function getTable(api: SchedulerApi, context: Context): Response {
  const name = nameOf(context);
  const record = api.tables().find(({ table }) => table === name);
  if (record === undefined) throw new EvenkeelError("not-found", `there is no table ${name}`);
  const revision = api.revision();
  return jsonAnswer({ table: tableView(record), revision }, etag(revision));
}

export async function putTable(api: SchedulerApi, context: Context): Promise<Response> {
  const spec = readTableBody(nameOf(context), await readJson(context));
  checkMatch(api, context);
  const { table, revision } = await api.putTable(spec, "api");
  return jsonAnswer({ table: tableView(table), revision }, etag(revision));
}

export async function deleteTable(api: SchedulerApi, context: Context): Promise<Response> {
  const name = nameOf(context);
  checkMatch(api, context);
  const { revision } = await api.deleteTable(name);
  return jsonAnswer({ revision }, etag(revision));
}

function nameOf(context: Context): TableName {
  const name = context.req.param("name") ?? "";
  if (!isId(name)) throw new EvenkeelError("invalid", `the table's name must be an id: ${ID_RULE}`);
  return tableName(name);
}

async function readJson(context: Context): Promise<unknown> {
  const text = await context.req.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new EvenkeelError("invalid", "the body is not JSON");
  }
}

function etag(revision: Revision): Readonly<Record<string, string>> {
  return { etag: `"${revision}"` };
}

/** `If-Match` has the revision that the caller last saw, as it came in `ETag` or as a bare number. */
function checkMatch(api: SchedulerApi, context: Context): void {
  const header = context.req.header("if-match");
  if (header === undefined) return;
  const match = /^"?(\d{1,16})"?$/.exec(header.trim());
  if (match === null) throw new EvenkeelError("invalid", "If-Match must be one revision");
  const revision = api.revision();
  if (Number(match[1]) === revision) return;
  throw new EvenkeelError("revision-mismatch", `the revision is ${revision}`, "read again what changed, then retry");
}
