import { type Holdings, holdingsOf, type Item } from "./holdings.ts";
import { type PlanInput, UNOWNED } from "./types.ts";

/**
 * Makes the best of what a plan under exclusions left wrong, in the order of what matters: nobody above capacity, as much
 * placed as can be, totals within their bounds.
 *
 * The last two are matchings of partitions and executors, so both are found by alternating paths: A gives B a partition
 * that B may have, B gives C one of its own, until somebody has room. Where there is no such path, there is no better
 * matching (Berge); who was reached in vain is not looked at again.
 *
 * `before` is the ownership that the plan began with: what an executor had then it may have. Evenness of tables is kept
 * where a step can choose, not sought.
 */
export function repair(placed: PlanInput, before: PlanInput): PlanInput {
  const holdings = holdingsOf(placed, before);
  if (holdings === undefined) return placed;
  shed(holdings);
  place(holdings);
  balance(holdings);
  return { executors: placed.executors, tables: holdings.tables };
}

/** Nobody may hold more than its capacity, whatever fairness would need for that. */
function shed(holdings: Holdings): void {
  holdings.held.forEach((held, executor) => {
    while ((holdings.total[executor] as number) > holdings.capacityOf(executor)) {
      holdings.give(held.at(-1) as Item, UNOWNED);
    }
  });
}

function place(holdings: Holdings): void {
  let alive = [...holdings.held.keys()];
  for (const item of holdings.unowned()) {
    const takers = holdings.mayOwnOf(item, alive);
    if (takers.length === 0) continue;
    const search = new Search(holdings, alive);
    const chain = search.from(takers, (executor) => holdings.hasRoom(executor), item);
    if (chain === undefined) alive = search.unseen;
    else for (const { item, to } of chain) holdings.give(item, to);
  }
}

/** Takes from who has too much to who may have one more, then from who can spare one to who has too little. */
function balance(holdings: Holdings): void {
  const executors = [...holdings.held.keys()];
  const over = (executor: number): number => holdings.over(executor);
  const under = (executor: number): number => holdings.under(executor);
  const rounds = [
    { gives: (executor: number) => over(executor) > 0, takes: (executor: number) => over(executor) < 0 },
    { gives: (executor: number) => under(executor) < 0, takes: (executor: number) => under(executor) > 0 },
  ];
  for (const { gives, takes } of rounds) {
    for (;;) {
      const givers = executors.filter(gives);
      if (givers.length === 0 || !executors.some(takes)) break;
      const chain = new Search(holdings, executors).from(
        givers,
        (executor) => takes(executor) && holdings.hasRoom(executor),
      );
      if (chain === undefined) break;
      for (const { item, to } of chain) holdings.give(item, to);
    }
  }
}

interface Step {
  readonly item: Item;
  readonly to: number;
}

/** Breadth-first over executors; an edge is a partition that one has and the other may have. */
class Search {
  /** Who was not reached yet, ascending. */
  unseen: number[];
  readonly #holdings: Holdings;
  /** Who gave what to whom on the way. */
  readonly #via = new Map<number, { readonly from: number; readonly item: Item }>();

  constructor(holdings: Holdings, among: number[]) {
    this.#holdings = holdings;
    this.unseen = among;
  }

  /**
   * A shortest chain of gifts from one of `starts`, ascending, to one who `takes`, last gift first, so that nobody is above
   * capacity in between. With `item`, the starts are those who may be given that partition, and giving it is the first gift.
   */
  from(starts: readonly number[], takes: (executor: number) => boolean, item?: Item): Step[] | undefined {
    const holdings = this.#holdings;
    if (item !== undefined) {
      const taker = this.#best(item, UNOWNED, starts.filter(takes));
      if (taker !== undefined) return [{ item, to: taker }];
    }
    this.#see(starts);
    const queue = [...starts];
    for (const from of queue) {
      const held = holdings.held[from] ?? [];
      for (let at = held.length - 1; at >= 0 && this.unseen.length > 0; at--) {
        const each = held[at] as Item;
        const reached = holdings.mayOwnOf(each, this.unseen);
        if (reached.length === 0) continue;
        this.#see(reached);
        for (const to of reached) this.#via.set(to, { from, item: each });
        queue.push(...reached);
        const taker = this.#best(each, from, reached.filter(takes));
        if (taker !== undefined) return this.#chainTo(taker, item);
      }
    }
    return undefined;
  }

  #see(reached: readonly number[]): void {
    const seen = new Set(reached);
    this.unseen = this.unseen.filter((each) => !seen.has(each));
  }

  /** Whose total stays within its bounds, then where the table stays even, then who has the least for its weight. */
  #best(item: Item, from: number, takers: readonly number[]): number | undefined {
    const holdings = this.#holdings;
    const rank = (taker: number): number =>
      (holdings.over(taker) < 0 ? 0 : 2) + (holdings.isEven(item, from, taker) ? 0 : 1);
    const compare = (a: number, b: number): number =>
      rank(a) - rank(b) || holdings.levelOf(a) - holdings.levelOf(b) || a - b;
    return takers.length === 0 ? undefined : takers.reduce((best, each) => (compare(each, best) < 0 ? each : best));
  }

  #chainTo(taker: number, item: Item | undefined): Step[] {
    const holdings = this.#holdings;
    const chain: Step[] = [];
    let to = taker;
    for (let via = this.#via.get(to); via !== undefined; via = this.#via.get(to)) {
      const { from } = via;
      const even = holdings.held[from]?.findLast(
        (each) => holdings.mayOwn(each, to) && holdings.isEven(each, from, to),
      );
      chain.push({ item: even ?? via.item, to });
      to = from;
    }
    return item === undefined ? chain : [...chain, { item, to }];
  }
}
