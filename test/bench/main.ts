import { parseArgs } from "node:util";
import { describeMachine, ForeignLoad } from "./foreign.ts";
import { Peer } from "./peer.ts";
import { LATER, type RowResult, replaceFigures, writeJson, writeMarkdown, writeTable } from "./report.ts";
import type { RowOptions } from "./row.ts";
import { isMet } from "./row.ts";
import type { RowCommands } from "./row-process.ts";
import { ROWS } from "./rows.ts";

/** `npm run bench`: measures each row against its floor and says which goals are met. */

const HELP = `npm run bench -- [options]
  --only ROW     one row, or several: --only plan-cold --only inbound-ack
  --rounds N     rounds of floor and subject, 3 or more (default 5, with --quick 3)
  --quick        less work in each round: to see that all runs, not to be quoted
  --large        sizes for which the whole run has no time
  --gate         exit code 1 if a goal is missed or a row fails
  --json         one JSON document
  --markdown     as a table; of all rows, it takes the place of the figures in test/bench/RESULTS.md
rows: ${ROWS.map(({ name }) => name).join(", ")}
`;

/** In the checkout: this file runs from where it was compiled to. */
const RESULTS = new URL("../../../../../test/bench/RESULTS.md", import.meta.url);

/** A row that takes longer has hung, and must not keep the others from being measured. */
const ROW_LIMIT_MS = 150_000;
const LARGE_ROW_LIMIT_MS = 900_000;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    rounds: { type: "string" },
    quick: { type: "boolean", default: false },
    large: { type: "boolean", default: false },
    gate: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    markdown: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { quick, large } = values;
  const rounds = values.rounds === undefined ? (quick ? 3 : 5) : Number(values.rounds);
  const unknown = (values.only ?? []).filter((name) => !ROWS.some((row) => row.name === name));
  if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 3) {
    process.stderr.write(unknown.length > 0 ? `no row ${unknown.join(", ")}\n${HELP}` : HELP);
    return 2;
  }
  const machine = describeMachine();
  const results: RowResult[] = [];
  for (const { name } of ROWS) {
    if (values.only !== undefined && !values.only.includes(name)) continue;
    process.stderr.write(`${name} … `);
    const result = await measure(name, { rounds, quick, large });
    process.stderr.write(`${(result.tookMs / 1_000).toFixed(1)} s\n`);
    results.push(result);
  }
  const report = { machine, date: new Date().toISOString().slice(0, 10), rounds, quick, large, results };
  const isWhole = values.only === undefined;
  const write = values.json ? writeJson : values.markdown ? writeMarkdown : writeTable;
  const text = write(report, isWhole ? LATER : []);
  process.stdout.write(text);
  if (values.markdown && isWhole && !quick) replaceFigures(RESULTS, text);
  const failed = results.some(
    ({ figures, error }) => error !== undefined || figures.some((each) => isMet(each) === false),
  );
  return values.gate && failed ? 1 : 0;
}

async function measure(name: string, options: RowOptions): Promise<RowResult> {
  const startedAt = performance.now();
  const load = new ForeignLoad();
  const peer = new Peer<RowCommands>("row-process");
  const limitMs = options.large ? LARGE_ROW_LIMIT_MS : ROW_LIMIT_MS;
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limitMs / 1_000} s`)), limitMs);
  });
  const outcome = await Promise.race([peer.ask("measure", { name, options }), limit]).then(
    (figures) => ({ figures }),
    (error: Error) => ({ figures: [], error: error.message }),
  );
  clearTimeout(timer);
  await peer.stop();
  return { name, ...outcome, foreignCpus: load.cpusSince(), tookMs: performance.now() - startedAt };
}

process.exitCode = await main();
