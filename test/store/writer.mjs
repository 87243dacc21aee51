/**
 * A process that writes to a store until it is killed: `writer.mjs PATH ROUND [strikes=N] [inline]`. Uses what was built.
 *
 * Each line of standard output is a JSON array: ["held", {revisions loaded, checkpoint}], ["acked", revision, note],
 * ["failed", code, message], ["lost", reason]. A line is written before anything that follows from it is begun.
 */
import { rmSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { realClock } from "../../dist/driver/real-clock.js";
import { realRandom } from "../../dist/driver/real-random.js";
import { emptyChange } from "../../dist/model/change.js";
import { loadSqlite } from "../../dist/store/sqlite/database.js";
import { startInProcess } from "../../dist/store/sqlite/in-process.js";
import { SqliteStore } from "../../dist/store/sqlite/store.js";

const CHECKPOINT_EVERY = 5;
const MAX_CHANGES = 8;
const BALLAST_BYTES = 500_000;
/** Large enough that the log is copied into the file now and then. */
const PADDING = "x".repeat(20_000);

const [, , path, round, ...options] = process.argv;
const optionOf = (name) => options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
let strikes = Number(optionOf("strikes") ?? 0);
let left = Number(optionOf("changes") ?? Number.POSITIVE_INFINITY);

/** Takes half of a small disk, until the store has complained. */
const ballast = options.includes("fill") ? join(dirname(path), "ballast") : undefined;
if (ballast !== undefined) writeFileSync(ballast, Buffer.alloc(BALLAST_BYTES));
const MIN_FAILURES = 3;
let failures = 0;

const say = (...line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** Kills this process at the given one of its calls. */
function strike() {
  if (--strikes === 0) process.kill(process.pid, "SIGKILL");
}

function striking(database) {
  const around = (call) => {
    strike();
    const result = call();
    strike();
    return result;
  };
  return {
    exec: (sql) => around(() => database.exec(sql)),
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        get: (...values) => around(() => statement.get(...values)),
        all: (...values) => statement.all(...values),
        run: (...values) => around(() => statement.run(...values)),
      };
    },
    close: () => database.close(),
  };
}

const open = await loadSqlite();
const inline = startInProcess((file, how) => (strikes > 0 ? striking(open(file, how)) : open(file, how)));
const store = new SqliteStore({
  path,
  clock: realClock,
  random: realRandom,
  ledger: { maxChanges: MAX_CHANGES },
  ...(options.includes("inline") ? { start: inline } : {}),
});

try {
  const reign = await store.acquire();
  void reign.lost.then((reason) => say("lost", reason));
  const { changes, checkpoint, floor } = await store.load(reign);
  const revisions = changes.map(({ revision }) => revision);
  say("held", revisions, checkpoint?.revision ?? null);
  let last = revisions.at(-1) ?? checkpoint?.revision ?? floor;
  while (left-- > 0) {
    const revision = last + 1;
    const note = `${round}: ${revision}`;
    const cause = [
      { kind: "table", note },
      { kind: "table", note: PADDING },
    ];
    try {
      await store.append(reign, { ...emptyChange(revision, reign.term), at: Date.now(), cause });
      last = revision;
      say("acked", revision, note);
      if (revision % CHECKPOINT_EVERY === 0) await store.checkpoint(reign, { revision, state: { revision } });
    } catch (error) {
      say("failed", error.code ?? null, error.message);
      if (error.code !== "not-written") process.exit(3);
      if (++failures === MIN_FAILURES && ballast !== undefined) {
        rmSync(ballast);
        left = 3;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  if (!options.includes("stay")) {
    await store.close();
    say("closed");
  } else setInterval(() => {}, 1_000);
} catch (error) {
  say("failed", error.code ?? null, error.message);
  process.exit(4);
}
