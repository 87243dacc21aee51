import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Access, LogPort, SchedulerApi } from "../driver/ports.ts";
import { EvenkeelError } from "../model/errors.ts";
import { jsonAnswer, problemAnswer } from "./answers.ts";
import { MAX_BODY_BYTES } from "./limits.ts";
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
  app.use("*", refuseForeignBodies);
  const maxSize = options.maxBodyBytes ?? MAX_BODY_BYTES;
  const tooLarge = () => problemAnswer(new EvenkeelError("too-large", `the body has more than ${maxSize} bytes`));
  app.use("*", bodyLimit({ maxSize, onError: tooLarge }));
  for (const [path, methods] of Object.entries(routes(options))) app.all(path, (context) => dispatch(context, methods));
  app.notFound(() => problemAnswer(new EvenkeelError("not-found", "there is nothing at this path")));
  app.onError((error) => answerError(error, options.log));
  return app;
}

function routes({ api, version, sessionPath }: AppOptions): Readonly<Record<string, Methods>> {
  return {
    "/livez": { GET: () => jsonAnswer({ alive: true }) },
    "/readyz": { GET: () => readiness(api) },
    "/version": { GET: () => jsonAnswer({ name: "evenkeel", version }) },
    "/v1/status": { GET: () => jsonAnswer(api.status()) },
    "/v1/tables": { GET: () => listTables(api) },
    "/v1/tables/:name": {
      GET: (context) => getTable(api, context),
      PUT: (context) => putTable(api, context),
      DELETE: (context) => deleteTable(api, context),
    },
    [sessionPath]: { GET: refusePlainSession },
  };
}

function dispatch(context: Context, methods: Methods): Response | Promise<Response> {
  const { method } = context.req;
  const handler = methods[method === "HEAD" ? "GET" : method];
  if (handler !== undefined) return handler(context);
  const allow = Object.keys(methods).join(", ");
  const error = new EvenkeelError("method-not-allowed", "the path does not take this method", `it takes ${allow}`);
  return problemAnswer(error, { allow });
}

function readiness(api: SchedulerApi): Response {
  if (api.ready()) return jsonAnswer({ ready: true });
  return problemAnswer(new EvenkeelError("not-ready", "the scheduler does not take sessions at the moment"));
}

function refusePlainSession(): Response {
  const error = new EvenkeelError("upgrade-required", "sessions are WebSockets", "connect with a WebSocket client");
  return problemAnswer(error, { upgrade: "websocket" });
}

/** What a browser sends of its own accord for another site is never JSON: a write has to say that it is. */
async function refuseForeignBodies({ req }: Context, next: () => Promise<void>): Promise<Response | undefined> {
  const isRead = req.method === "GET" || req.method === "HEAD" || req.method === "OPTIONS";
  const type = req.header("content-type");
  const isBare = req.method === "DELETE" && type === undefined;
  if (!isRead && !isBare && !/^application\/json\s*(;|$)/i.test(type ?? "")) {
    return problemAnswer(new EvenkeelError("unsupported-media-type", "the Content-Type is not application/json"));
  }
  await next();
  return undefined;
}

function answerError(error: unknown, log: LogPort): Response {
  if (error instanceof EvenkeelError) return problemAnswer(error);
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  log.log("error", "http.failed", { error: message, stack });
  return problemAnswer(new EvenkeelError("internal", "the request could not be handled", "the log says why"));
}
