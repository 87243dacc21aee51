import { DEFAULT_SETTINGS, type Settings } from "../../src/model/settings.ts";

/** Leases so long that nothing is renewed or suspected during a row, and windows that do not wait. */
export const PATIENT: Partial<Settings> = {
  lease: { ...DEFAULT_SETTINGS.lease, durationMs: 3_600_000, renewMs: 1_000_000 },
  formation: { quietMs: 0, maxMs: 0 },
  join: { quietMs: 0, maxMs: 0 },
  delivery: { ackTimeoutMs: 600_000 },
};
