/** Milliseconds as people read them: `0.4s`, `12.3s`, `4m10s`. For display only. */
export function showMs(ms: number): string {
  if (ms < 60_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)}s`;
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

/** Resolves after the time, or as soon as `signal` aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
