import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { build, endAll, evenkeel, Running, serve } from "./processes.ts";

beforeAll(build, 120_000);
afterEach(endAll);

describe("serve", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("ends in order on %s, with 0", async (signal) => {
    const { process } = await serve();
    process.signal(signal);
    expect(await process.exit).toEqual({ code: 0, signal: null });
    expect(process.out.at(-1)).toContain('"server.stopped"');
  });

  test("logs to standard output, and warnings to standard error", async () => {
    const { process } = await serve();
    process.signal("SIGTERM");
    await process.exit;
    for (const line of process.out) expect(JSON.parse(line)).toHaveProperty("event");
    expect(process.complaints).toEqual([expect.stringContaining("warning: store memory:")]);
  });

  test("says what to do when the port is in use, and ends with 1", async () => {
    const { url } = await serve();
    const { host } = new URL(url);
    const second = await evenkeel(["serve", "--listen", host]);
    expect(second.code).toBe(1);
    expect(second.complaints.at(-1)).toBe(
      `evenkeel: ${host} is in use by another program, perhaps another evenkeel; end that one, or listen elsewhere: --listen HOST:PORT, port 0 for a free one`,
    );
  });

  test("refuses an address that others reach, unless that is said to be wanted", async () => {
    const refused = await evenkeel(["serve", "--listen=0.0.0.0:0"]);
    expect(refused.code).toBe(2);
    expect(refused.complaints.join()).toContain("listen 0.0.0.0:0 (--listen) can be reached from other machines");
    const wanted = new Running(["serve", "--listen=0.0.0.0:0", "--insecure"]);
    await wanted.line('"server.listening"');
  });

  test("is asked by the other commands", async () => {
    const { url } = await serve();
    const at = ["--url", url];
    expect(await evenkeel(["status", ...at])).toMatchObject({
      code: 0,
      out: expect.stringContaining("no tables declared"),
    });
    expect(await evenkeel(["tables", "create", "trips", "--partitions=8", "--output=json", ...at])).toMatchObject({
      code: 0,
    });
    expect(await evenkeel(["tables", "list", "--output=jsonl", ...at])).toMatchObject({
      out: expect.stringContaining('"name":"trips"'),
    });
    expect(await evenkeel(["tables", "create", "trips", "--partitions=7", ...at])).toMatchObject({ code: 6 });
    expect(await evenkeel(["tables", "delete", "nope", ...at])).toMatchObject({ code: 4 });
    expect(await evenkeel(["tables", "create", "a b", "--partitions=7", ...at])).toMatchObject({ code: 2 });
    expect(await evenkeel(["status"], { EVENKEEL_URL: url })).toMatchObject({ code: 0 });
  });

  test("a log that nobody can read any more ends it with 1, and says so", async () => {
    const { process, url } = await serve();
    process.process.stdout.destroy();
    await evenkeel(["tables", "create", "trips", "--partitions=8", "--url", url]);
    expect(await process.exit).toMatchObject({ code: 1 });
    expect(process.complaints.at(-1)).toContain("standard output cannot be written");
  });

  test("a reader that has seen enough of another command is no failure", async () => {
    const many = new Running(["config", "print"]);
    many.process.stdout.destroy();
    expect((await many.exit).code).toBe(0);
  });
});
