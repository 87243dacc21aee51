import type { Context } from "hono";
import type { SchedulerApi } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { ID_RULE, isId, type Revision, type TableName, tableName } from "../model/ids.ts";
import { jsonAnswer } from "./answers.ts";
import type { BodyReader } from "./body.ts";
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

/** What costs nothing to look at is judged before the body is read. */
export async function putTable(api: SchedulerApi, context: Context, bodies: BodyReader): Promise<Response> {
  const name = nameOf(context);
  const match = ifMatch(context);
  return bodies.read(context.req.raw, async (body) => {
    const { table, revision } = await api.putTable(readTableBody(name, body), "api", match);
    return jsonAnswer({ table: tableView(table), revision }, etag(revision));
  });
}

export async function deleteTable(api: SchedulerApi, context: Context): Promise<Response> {
  const { revision } = await api.deleteTable(nameOf(context), ifMatch(context));
  return jsonAnswer({ revision }, etag(revision));
}

function nameOf(context: Context): TableName {
  const name = context.req.param("name") ?? "";
  if (!isId(name)) throw new EvenkeelError("invalid", `the table's name must be an id: ${ID_RULE}`);
  return tableName(name);
}

function etag(revision: Revision): Readonly<Record<string, string>> {
  return { etag: `"${revision}"` };
}

/** `If-Match` has the revision that the caller last saw, as it came in `ETag` or as a bare number. */
function ifMatch(context: Context): Revision | undefined {
  const header = context.req.header("if-match");
  if (header === undefined) return undefined;
  const match = /^"?(\d{1,16})"?$/.exec(header.trim());
  if (match === null) throw new EvenkeelError("invalid", "If-Match must be one revision");
  return Number(match[1]);
}
