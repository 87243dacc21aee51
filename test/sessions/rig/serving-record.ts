/** A time in which one client said that it may serve one partition under one epoch. */
interface Span {
  readonly who: string;
  readonly epoch: number;
  readonly from: number;
  until: number;
  /** Epochs are compared within one store only. */
  readonly store: number;
}

export interface Watched {
  /** Different for each process life. */
  readonly who: string;
  mayServe(table: string, partition: number): number | undefined;
}

/**
 * When each client says that it may serve each partition. All are asked at one moment of one thread, so two that say yes in
 * one look truly overlap. Beside the regular looks one is taken whenever a client starts or ends something.
 */
export class ServingRecord {
  readonly #clients: Watched[] = [];
  readonly #tables = new Map<string, number>();
  readonly #spans = new Map<string, Span[]>();
  #lastLook = 0;
  #store = 0;
  #looks = 0;

  watch(client: Watched): void {
    this.#clients.push(client);
  }

  addTable(table: string, count: number): void {
    this.#tables.set(table, Math.max(count, this.#tables.get(table) ?? 0));
  }

  /** From here on the scheduler has another store, with epochs of its own. */
  changeStore(): void {
    this.#store++;
  }

  look(): void {
    const now = performance.now();
    for (const [table, count] of this.#tables) {
      for (let partition = 0; partition < count; partition++) this.#lookAt(table, partition, now);
    }
    this.#lastLook = now;
    this.#looks++;
  }

  /** Partitions and epochs that a client may serve now. */
  served(who: string, table: string): ReadonlyMap<number, number> {
    const client = this.#clients.find((one) => one.who === who);
    const found = new Map<number, number>();
    for (let partition = 0; partition < (this.#tables.get(table) ?? 0); partition++) {
      const epoch = client?.mayServe(table, partition);
      if (epoch !== undefined) found.set(partition, epoch);
    }
    return found;
  }

  /** All times in which a partition was served, oldest first. */
  spans(table: string, partition: number): readonly Readonly<Span>[] {
    return [...(this.#spans.get(`${table}/${partition}`) ?? [])].sort((a, b) => a.from - b.from);
  }

  /** What the record has against the fleet; empty if all is well. */
  complaints(): readonly string[] {
    if (this.#looks === 0) return ["nobody looked"];
    return [...this.#spans.keys()].flatMap((key) => {
      const [table = "", partition] = key.split("/");
      const spans = this.spans(table, Number(partition));
      return spans.flatMap((span, index) =>
        spans.slice(index + 1).flatMap((later) => {
          const problem = problemOf(span, later);
          return problem === undefined ? [] : [`${key}: ${problem}: ${show(span)}, then ${show(later)}`];
        }),
      );
    });
  }

  #lookAt(table: string, partition: number, now: number): void {
    for (const { who, mayServe } of this.#clients) {
      const epoch = mayServe(table, partition);
      if (epoch === undefined) continue;
      const key = `${table}/${partition}`;
      const spans = this.#spans.get(key) ?? [];
      this.#spans.set(key, spans);
      const last = spans.findLast((span) => span.who === who);
      if (last !== undefined && last.epoch === epoch && last.until === this.#lastLook) last.until = now;
      else spans.push({ who, epoch, from: now, until: now, store: this.#store });
    }
  }
}

function problemOf(span: Span, later: Span): string | undefined {
  if (span.who !== later.who && later.from <= span.until) return "two owners at one time";
  if (span.store !== later.store) return undefined;
  if (later.epoch < span.epoch) return "an epoch that falls";
  if (later.who !== span.who && later.epoch === span.epoch) return "one epoch for two owners";
  return undefined;
}

function show({ who, epoch, from, until }: Span): string {
  return `${who}@${epoch} from ${from.toFixed(1)} to ${until.toFixed(1)}`;
}
