import { SimExecutor, type SimOptions } from "./sim-executor.ts";
import { World, type WorldOptions } from "./world.ts";

type Named = string | readonly [string, SimOptions];

/** A world with tables and executors, five seconds after they came: formation is over, and everything is owned and ready. */
export function formed(ids: readonly Named[], tables: Record<string, number>, options: WorldOptions = {}) {
  const world = new World(options);
  for (const [name, count] of Object.entries(tables)) world.table(name, count);
  const executors = ids.map((id) =>
    (typeof id === "string" ? new SimExecutor(world, id) : new SimExecutor(world, ...id)).connect(),
  );
  world.advance(5_000);
  return { world, executors: executors as [SimExecutor, ...SimExecutor[]], revision: world.revision };
}
