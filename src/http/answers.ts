import type { EvenkeelError } from "../model/errors.ts";
import { PROBLEM_TYPE, problemHeaders, problemOf } from "../model/problem.ts";

type Headers = Readonly<Record<string, string>>;

/** Headers of every answer: it is data of this moment, and never to be taken for a page or a script. */
const ALWAYS: Headers = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** Partition sets in `body` become their text. */
export function jsonAnswer(body: object, headers: Headers = {}, status = 200): Response {
  const all = { "content-type": "application/json", ...ALWAYS, ...headers };
  return new Response(JSON.stringify(body), { status, headers: all });
}

export function problemAnswer(error: EvenkeelError, headers: Headers = {}): Response {
  const problem = problemOf(error);
  const all = { "content-type": PROBLEM_TYPE, ...ALWAYS, ...problemHeaders(problem.status), ...headers };
  return new Response(JSON.stringify(problem), { status: problem.status, headers: all });
}
