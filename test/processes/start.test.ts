import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { endAll, Running } from "../cli/processes.ts";

const RUN = fileURLToPath(new URL("../../scripts/run.mjs", import.meta.url));

afterEach(endAll);

test("what npm start runs builds what is stale, and shows a first push soon after", async () => {
  const start = new Running(["dev", "--listen=127.0.0.1:0", "--for=4s"], {}, RUN);
  await start.line('"server.listening"', 120_000);
  await start.line('"push.sent"', 10_000);
  expect(await start.exit).toEqual({ code: 0, signal: null });
}, 150_000);
