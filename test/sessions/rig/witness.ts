import type { Frame, Seen } from "./cable.ts";

/**
 * What must be true of the frames of every session, whatever the test is about: promises of the scheduler (PROTOCOL §9) and
 * duties of an executor (§4, §6).
 */
export function complaintsAbout(who: string, seen: readonly Seen[]): readonly string[] {
  const connections = [...new Set(seen.map((one) => one.connection))].sort((a, b) => a - b);
  let attempt = 0;
  return connections.flatMap((connection) => {
    const witness = new SessionWitness(attempt);
    const found = seen.filter((one) => one.connection === connection).flatMap((one) => witness.hear(one) ?? []);
    attempt = witness.attempt;
    return found.map((problem) => `${who}, connection ${connection}: ${problem}`);
  });
}

interface Entry {
  readonly table: string;
  readonly partitions: string;
  readonly epoch: number;
}

class SessionWitness {
  attempt: number;
  #stage: "new" | "greeted" | "welcomed" | "refused" = "new";
  #resume: number | undefined;
  /** What the client has applied as far as the server knows; null: a push with `base: null` is due. */
  #base: number | null = null;
  #unacked: number | undefined;
  #n = 0;

  constructor(attempt: number) {
    this.attempt = attempt;
  }

  /** Undefined if this frame is as it should be. */
  hear({ from, frame, delivered }: Seen): string | undefined {
    if (frame.type === "close") return undefined;
    if (from === "client") return this.#client(frame, delivered);
    return delivered ? this.#server(frame) : undefined;
  }

  #client(frame: Frame, delivered: boolean): string | undefined {
    if ((frame.type === "hello") !== (this.#stage === "new")) return `${frame.type} when ${this.#stage}`;
    switch (frame.type) {
      case "hello": {
        const attempt = Number(frame["attempt"]);
        const problem = attempt > this.attempt ? undefined : `attempt ${attempt} after ${this.attempt}`;
        this.attempt = attempt;
        this.#stage = "greeted";
        const resume = frame["resume"] as { readonly revision: number } | undefined;
        this.#resume = resume?.revision;
        return problem;
      }
      case "renew":
        this.#n++;
        return frame["n"] === this.#n ? undefined : `renew ${frame["n"]} instead of ${this.#n}`;
      case "ack":
        if (frame["revision"] !== this.#unacked) return `ack of ${frame["revision"]}, out is ${this.#unacked}`;
        if (!delivered) return undefined;
        this.#base = this.#unacked ?? null;
        this.#unacked = undefined;
        return undefined;
      case "report":
      case "leave":
      case "update":
        return undefined;
      default:
        return `a client frame of type ${frame.type}`;
    }
  }

  #server(frame: Frame): string | undefined {
    if (this.#stage === "refused") return `${frame.type} after refused`;
    if (this.#stage === "greeted" && frame.type !== "welcome" && frame.type !== "refused") {
      return `${frame.type} before welcome`;
    }
    switch (frame.type) {
      case "welcome":
        if (this.#stage !== "greeted") return `welcome when ${this.#stage}`;
        this.#stage = "welcomed";
        if (frame["resumed"] === true) this.#base = this.#resume ?? null;
        return undefined;
      case "push":
        return this.#push(frame);
      case "lease":
        return Number(frame["n"]) <= this.#n ? undefined : `lease ${frame["n"]} before its renew`;
      case "refused":
        this.#stage = "refused";
        return undefined;
      case "goaway":
      case "left":
        return undefined;
      default:
        return `a server frame of type ${frame.type}`;
    }
  }

  #push(frame: Frame): string | undefined {
    const revision = Number(frame["revision"]);
    const { base } = frame as { readonly base?: unknown };
    if (this.#unacked !== undefined) return `push ${revision} while ${this.#unacked} is un-acked`;
    this.#unacked = revision;
    if (base !== this.#base) return `push ${revision} from ${base}, the client is at ${this.#base}`;
    if (base !== null && revision <= Number(base)) return `push ${revision} goes back to ${base}`;
    return ["grant", "revoke"]
      .map((list) => wrongIn(list, frame[list] as readonly Entry[] | undefined, revision))
      .find(Boolean);
  }
}

/** Grant lists from the scheduler are ascending by table, then epoch, and no epoch is above the push's revision. */
function wrongIn(list: string, entries: readonly Entry[] = [], revision: number): string | undefined {
  for (const [index, { table, epoch, partitions }] of entries.entries()) {
    const before = entries[index - 1];
    if (partitions === "") return `an empty entry in ${list}`;
    if (epoch > revision) return `epoch ${epoch} in ${list} of push ${revision}`;
    if (before === undefined || before.table < table) continue;
    if (before.table > table || before.epoch >= epoch) return `${list} is not ascending`;
  }
  return undefined;
}
