import type { Effect, Push } from "../../src/core/effects.ts";
import type { Event } from "../../src/core/events.ts";
import { createState } from "../../src/core/start.ts";
import type { CoreState } from "../../src/core/state.ts";
import { step } from "../../src/core/step.ts";
import type { Change } from "../../src/model/change.ts";
import { executorId, instanceId, type SessionId, sessionId, tableName } from "../../src/model/ids.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";
import { type Cost, timed } from "./rounds.ts";
import { idOf, tableSizes, type WorldSize } from "./worlds.ts";

/** No window waits, and a whole share moves at once: what is measured is work, not waiting. */
const SETTINGS: Settings = {
  ...DEFAULT_SETTINGS,
  formation: { quietMs: 0, maxMs: 0 },
  join: { quietMs: 0, maxMs: 0 },
  moves: { perExecutor: 1_000_000, total: 1_000_000 },
};

/** What the turns took until nothing was left to do. */
export interface Cycle {
  /** The turn that decided (events, plan and change) and the one in which that was committed (fold, comparison, pushes). */
  readonly decided: Cost;
  /** All turns, until what was asked back was released, given on and acknowledged. */
  readonly all: Cost;
  readonly turns: number;
  readonly pushes: number;
}

/**
 * The core with executors that do at once what they are told, and a store that is done at once. The clock stands still, so
 * nothing is due but what events bring.
 */
export class Fleet {
  state: CoreState;
  #sessions = 0;

  constructor() {
    this.state = createState({ settings: SETTINGS, incarnation: "life", term: 1, floor: 0, now: 0 });
  }

  /** A formed fleet: everything owned, acknowledged and ready. */
  form(size: WorldSize): void {
    const hellos = Array.from({ length: size.executors }, (_, at) => this.hello(idOf("E", at)));
    const specs = tableSizes(size).map(
      (count, at) =>
        ({
          table: tableName(idOf("t", at)),
          count,
          handoff: "exclusive",
          stopMs: 30_000,
          balance: "count",
          selector: {},
        }) as const,
    );
    this.run([...hellos, { type: "tables.declared", request: 1, specs }]);
  }

  hello(id: string): Event {
    const session = sessionId(`s${++this.#sessions}`);
    const executor = executorId(id);
    return { type: "hello.received", session, executor, instance: instanceId(`${id}-1`), attempt: 1, weight: 1 };
  }

  /** Turns until nothing happens any more. */
  run(events: readonly Event[]): Cycle {
    const took: Cost[] = [];
    let pushes = 0;
    let effects: readonly Effect[] = [];
    for (let inbox = [...events]; inbox.length > 0; inbox = effects.flatMap(follow)) {
      const turn = timed(() => {
        ({ state: this.state, effects } = step(this.state, inbox, 0));
      });
      took.push(turn);
      pushes += effects.filter(({ type }) => type === "session.push").length;
    }
    return { decided: sum(took.slice(0, 2)), all: sum(took), turns: took.length, pushes };
  }
}

function sum(costs: readonly Cost[]): Cost {
  return costs.reduce((all, { cpu, wall }) => ({ cpu: all.cpu + cpu, wall: all.wall + wall }), { cpu: 0, wall: 0 });
}

/** What a store and an obedient executor make of an effect. */
function follow(effect: Effect): Event[] {
  if (effect.type === "store.append") return [{ type: "change.committed", change: effect.change satisfies Change }];
  return effect.type === "session.push" ? obey(effect.session, effect) : [];
}

function obey(session: SessionId, { grant, revoke, revision }: Push): Event[] {
  return [
    { type: "report.received", session, ready: grant, released: revoke, failed: [] },
    { type: "ack.received", session, revision },
  ];
}
