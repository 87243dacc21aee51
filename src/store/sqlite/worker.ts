import { parentPort } from "node:worker_threads";
import { present } from "../../model/errors.ts";
import { type Message, type Request, toFailure } from "./answers.ts";
import { loadSqlite } from "./database.ts";
import { Engine } from "./engine.ts";

/** The thread that has the file: an fsync blocks nothing else here. One request after the other. */

const port = present(parentPort ?? undefined, "the thread that started this one");
const engine = new Engine(await loadSqlite());

port.on("message", ({ id, name, args }: Request) => {
  try {
    send({ type: "answer", id, value: engine.run(name, args) });
  } catch (error) {
    send({ type: "failure", id, failure: toFailure(error) });
  }
  try {
    engine.tidy();
  } catch (error) {
    send({ type: "lost", reason: error instanceof Error ? error.message : String(error) });
  }
});

function send(message: Message): void {
  port.postMessage(message);
}
