import type { ExecutorHandlers, PartitionGrant, RevokeNotice } from "../../src/client/handler-runner.ts";
import type { ExecutorOptions } from "../../src/client/options.ts";
import { type Executor, startExecutor } from "../../src/client/running-executor.ts";
import { FakeClock, settle } from "../../src/testing/fake-clock.ts";
import { FakeScheduler, type FakeSession } from "../../src/testing/fake-scheduler.ts";

/** A call of a handler that the test settles. */
export interface Call {
  readonly name: string;
  readonly grant: PartitionGrant;
  readonly notice?: RevokeNotice;
  resolve(): void;
  reject(error: unknown): void;
}

/** Handlers whose calls stay open until the test settles them, unless they are `prompt`. */
export class OpenHandlers implements ExecutorHandlers {
  readonly calls: Call[] = [];
  prompt: boolean;

  constructor(prompt: boolean) {
    this.prompt = prompt;
  }

  onGrant(grant: PartitionGrant): unknown {
    return this.#call("grant", grant);
  }

  onRevoke(grant: PartitionGrant, notice: RevokeNotice): unknown {
    return this.#call("revoke", grant, notice);
  }

  /** Names of the calls so far, such as `grant trips/0@5`. */
  get names(): readonly string[] {
    return this.calls.map((call) => call.name);
  }

  /** The newest call of this name. */
  call(name: string): Call {
    const call = this.calls.findLast((one) => one.name === name);
    if (call === undefined) throw new Error(`no call ${name}; there are ${this.names.join(", ")}`);
    return call;
  }

  #call(kind: string, grant: PartitionGrant, notice?: RevokeNotice): Promise<void> {
    const name = `${kind} ${grant.table}/${grant.partition}@${grant.epoch}`;
    return new Promise((resolve, reject) => {
      this.calls.push({ name, grant, ...(notice && { notice }), resolve, reject });
      if (this.prompt) resolve();
    });
  }
}

/** An executor `a` on a fake scheduler and a fake clock, welcomed and granted `trips 0-1` at revision 5. */
export class ExecutorFixture {
  readonly clock = new FakeClock();
  readonly scheduler = new FakeScheduler();
  readonly handlers: OpenHandlers;
  readonly executor: Executor;
  readonly logged: string[] = [];

  constructor({ prompt = false, ...options }: { readonly prompt?: boolean } & Partial<ExecutorOptions> = {}) {
    this.handlers = new OpenHandlers(prompt);
    const line = (fields: Readonly<Record<string, unknown>>, event: string) =>
      void this.logged.push(`${event} ${fields["partition"] ?? ""}`.trim());
    const logger = { debug: line, info: line, warn: line, error: line };
    const ports = { clock: this.clock, random: { next: () => 0 }, dial: this.scheduler.dial };
    this.executor = startExecutor({ url: "ws://one", executor: "a", logger, ...options }, this.handlers, ports);
  }

  static async granted(options: ConstructorParameters<typeof ExecutorFixture>[0] = {}): Promise<ExecutorFixture> {
    const fixture = new ExecutorFixture(options);
    fixture.session.begin();
    fixture.session.push({ revision: 5, base: null, grant: [["trips", "0-1"]] });
    await fixture.report();
    fixture.session.take();
    return fixture;
  }

  get session(): FakeSession {
    return this.scheduler.session;
  }

  /** Lets promises settle and what is to be reported go out. */
  async report(): Promise<void> {
    await this.clock.advanceAsync(20);
  }

  /** The reports since they were last taken, as plain data without empty lists. */
  takeReports(): readonly unknown[] {
    const reports = this.session.take().filter((frame) => frame.type === "report");
    return JSON.parse(JSON.stringify(reports)).map((report: object) =>
      Object.fromEntries(
        Object.entries(report).filter(([name, list]) => name !== "type" && Array.isArray(list) && list.length > 0),
      ),
    );
  }

  settle(): Promise<void> {
    return settle();
  }
}
