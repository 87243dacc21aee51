/** Durations and bounds that the core decides by; all durations are milliseconds, 0 means at once. Defaults are the configuration's. */
export interface Settings {
  readonly cluster: string;
  readonly lease: LeaseSettings;
  /** The grace window of a cold start. `expect` absent or 0: unused. */
  readonly formation: WindowSettings & { readonly expect?: number };
  readonly join: WindowSettings;
  /** `waitMs`: how long a suspect is waited for. `returnMs`: how long a planned restart keeps a place. */
  readonly loss: { readonly waitMs: number; readonly returnMs: number };
  /** Moves in flight: per executor what it is asked to release, and in total. */
  readonly moves: { readonly perExecutor: number; readonly total: number };
  readonly delivery: { readonly ackTimeoutMs: number };
  readonly drain: { readonly deadlineMs: number };
  readonly rejection: { readonly backoffMs: number; readonly maxBackoffMs: number };
  readonly executors: { readonly forgetMs: number };
  readonly shutdown: { readonly timeoutMs: number };
}

/** A bounded wait that gathers events: closes after `quietMs` without another, at the latest `maxMs` after it opened. */
export interface WindowSettings {
  readonly quietMs: number;
  readonly maxMs: number;
}

export interface LeaseSettings {
  readonly durationMs: number;
  readonly renewMs: number;
  /** σ of the lease rule: a client counts itself lapsed this long before its lease ends. */
  readonly clientMarginMs: number;
  /** μ of the lease rule: the scheduler waits this much longer. */
  readonly serverMarginMs: number;
  /** ρ of the lease rule: by how much two clocks may differ in rate, 0 to 0.1. */
  readonly driftRate: number;
}

/** Longest time by the server's clock that `durationMs` of a client's clock can take: d·(1+ρ)/(1−ρ) + μ. */
export function stretched(durationMs: number, lease: LeaseSettings): number {
  return (durationMs * (1 + lease.driftRate)) / (1 - lease.driftRate) + lease.serverMarginMs;
}

export const DEFAULT_SETTINGS: Settings = {
  cluster: "demo",
  lease: { durationMs: 15_000, renewMs: 4_000, clientMarginMs: 1_000, serverMarginMs: 1_000, driftRate: 0.01 },
  formation: { quietMs: 2_000, maxMs: 5_000 },
  join: { quietMs: 250, maxMs: 2_000 },
  loss: { waitMs: 10_000, returnMs: 120_000 },
  moves: { perExecutor: 64, total: 10_000 },
  delivery: { ackTimeoutMs: 10_000 },
  drain: { deadlineMs: 600_000 },
  rejection: { backoffMs: 1_000, maxBackoffMs: 300_000 },
  executors: { forgetMs: 3_600_000 },
  shutdown: { timeoutMs: 20_000 },
};
