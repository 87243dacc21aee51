import { type PlannedTable, type PlanTable, UNOWNED } from "./types.ts";

/**
 * Among equally good plans, the one that gives executors back what they last had.
 *
 * A plan says how many partitions each executor takes from whom; which ones is free. So where an executor G is given a
 * partition that it never had, out of the same hands (an owner's, or nobody's) as one that it last had, the two are
 * exchanged. Counts per executor and table stay as they are, and so does the number of moves.
 *
 * `last` gives, per partition, the index of the executor that had it last, or UNOWNED. Partitions in `excluded` stay
 * where the plan has them. One pass to gather, one to exchange: O(partitions).
 */
export function preferLastOwner(table: PlanTable, planned: PlannedTable, last: Int32Array): PlannedTable {
  const owner = Int32Array.from(planned.owner);
  const spare = new Map<string, number[]>();
  const movable = (partition: number) => table.excluded?.has(partition) !== true;
  for (let partition = 0; partition < owner.length; partition++) {
    const to = owner[partition] as number;
    const from = table.owner[partition] as number;
    if (to < 0 || to === from || from < UNOWNED || last[partition] === to || !movable(partition)) continue;
    const key = `${from} ${to}`;
    const partitions = spare.get(key);
    if (partitions === undefined) spare.set(key, [partition]);
    else partitions.push(partition);
  }
  if (spare.size === 0) return planned;
  for (let partition = 0; partition < owner.length; partition++) {
    const former = last[partition] as number;
    const from = table.owner[partition] as number;
    const to = owner[partition] as number;
    if (former < 0 || former === to || from < UNOWNED || to < UNOWNED || !movable(partition)) continue;
    const other = takeSpare(spare.get(`${from} ${former}`), owner, former);
    if (other === undefined) continue;
    owner[partition] = former;
    owner[other] = to;
    // What now stands in its place may itself be exchanged with a partition that its new executor last had.
    if (to >= 0 && to !== from && last[other] !== to)
      spare.set(`${from} ${to}`, [...(spare.get(`${from} ${to}`) ?? []), other]);
  }
  return { owner, unowned: exchangeReasons(planned, owner) };
}

/** A partition that `former` is still given and never had: those that were exchanged meanwhile are passed over. */
function takeSpare(partitions: number[] | undefined, owner: Int32Array, former: number): number | undefined {
  for (let other = partitions?.pop(); other !== undefined; other = partitions?.pop()) {
    if (owner[other] === former) return other;
  }
  return undefined;
}

/** Unowned partitions after the exchange: as many as before, for the same reasons, maybe others. */
function exchangeReasons(planned: PlannedTable, owner: Int32Array): PlannedTable["unowned"] {
  if (planned.unowned.length === 0) return planned.unowned;
  const reasons = new Map(planned.unowned.map(({ partition, reason }) => [partition, reason]));
  const unowned: { partition: number; reason: PlannedTable["unowned"][number]["reason"] }[] = [];
  owner.forEach((to, partition) => {
    if (to === UNOWNED) unowned.push({ partition, reason: reasons.get(partition) ?? "capacity" });
  });
  return unowned;
}
