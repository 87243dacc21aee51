import { type Context, Hono } from "hono";
import type { Access, LogPort, SchedulerApi } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { jsonAnswer, problemAnswer } from "./answers.ts";
import { BodyReader } from "./body.ts";
import { deleteTable, getTable, listTables, putTable } from "./tables.ts";

export interface AppOptions {
  readonly api: SchedulerApi;
  readonly access: Access;
  readonly log: LogPort;
  readonly version: string;
  /** Path at which WebSockets are served. */
  readonly sessionPath: string;
  readonly maxBodyBytes?: number;
}

type Handler = (context: Context) => Response | Promise<Response>;
type Methods = Readonly<Record<string, Handler>>;

/** The HTTP API of a scheduler (INTERFACES), as a function from request to response. */
export function createApp(options: AppOptions): Hono {
  const app = new Hono();
  app.use("*", (context, next) => {
    const { req } = context;
    const query = new URL(req.url).search.slice(1);
    const refusal = options.access.refuse({ query, origin: req.header("origin"), host: req.header("host") });
    return refusal === undefined ? next() : Promise.resolve(problemAnswer(refusal));
  });
  for (const [path, methods] of Object.entries(routes(options))) app.all(path, (context) => dispatch(context, methods));
  app.notFound(() => problemAnswer(new EvenkeelError("not-found", "there is nothing at this path")));
  app.onError((error) => answerError(error, options.log));
  return app;
}

function routes({ api, version, sessionPath, maxBodyBytes }: AppOptions): Readonly<Record<string, Methods>> {
  const bodies = new BodyReader(maxBodyBytes);
  return {
    "/livez": { GET: () => jsonAnswer({ alive: true }) },
    "/readyz": { GET: () => readiness(api) },
    "/version": { GET: () => jsonAnswer({ name: "evenkeel", version }) },
    "/v1/status": { GET: () => jsonAnswer(api.status()) },
    "/v1/tables": { GET: () => listTables(api) },
    "/v1/tables/:name": {
      GET: (context) => getTable(api, context),
      PUT: (context) => putTable(api, context, bodies),
      DELETE: (context) => deleteTable(api, context),
    },
    [sessionPath]: { GET: refusePlainSession },
  };
}

function dispatch(context: Context, methods: Methods): Response | Promise<Response> {
  const { method } = context.req;
  const handler = methods[method === "HEAD" ? "GET" : method];
  if (handler === undefined) {
    const allow = Object.keys(methods).join(", ");
    const error = new EvenkeelError("method-not-allowed", "the path does not take this method", `it takes ${allow}`);
    return problemAnswer(error, { allow });
  }
  if (isForeign(context)) {
    return problemAnswer(new EvenkeelError("unsupported-media-type", "the Content-Type is not application/json"));
  }
  return handler(context);
}

/** What a browser sends of its own accord for another site is never JSON: a write has to say that it is. */
function isForeign({ req }: Context): boolean {
  const type = req.header("content-type");
  if (req.method === "GET" || req.method === "HEAD" || (req.method === "DELETE" && type === undefined)) return false;
  return !/^application\/json\s*(;|$)/i.test(type ?? "");
}

function readiness(api: SchedulerApi): Response {
  if (api.ready()) return jsonAnswer({ ready: true });
  return problemAnswer(new EvenkeelError("not-ready", "the scheduler does not take sessions at the moment"));
}

function refusePlainSession(): Response {
  const error = new EvenkeelError("upgrade-required", "sessions are WebSockets", "connect with a WebSocket client");
  return problemAnswer(error, { upgrade: "websocket" });
}

function answerError(error: unknown, log: LogPort): Response {
  if (error instanceof EvenkeelError) return problemAnswer(error);
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  log.log("error", "http.failed", { error: message, stack });
  return problemAnswer(new EvenkeelError("internal", "the request could not be handled", "the log says why"));
}
