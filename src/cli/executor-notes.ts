import type { Executor, ExecutorStatus } from "../client/executor.ts";

/** Tells a person how an executor gets on: a line when it is connected, waits, is counted, or loses its connection. */
export async function noteStatuses(executor: Executor, note: (line: string) => void): Promise<void> {
  let last: string | undefined;
  for await (const status of executor.statuses()) {
    const line = describe(status);
    if (line !== last) note(line);
    last = line;
  }
}

function describe({ state, url, waitingFor, lastProblem, leaving }: ExecutorStatus): string {
  const going = leaving === undefined ? "" : ", leaving";
  switch (state) {
    case "connecting":
      return `connecting to ${url}${lastProblem === undefined ? "" : `: ${lastProblem}`}${going}`;
    case "pending":
      return `connected to ${url}; nothing decided yet${waitingFor === undefined ? "" : `: ${waitingFor}`}${going}`;
    case "assigned":
      return `connected to ${url}; counted${going}`;
    case "closed":
      return "closed";
    default:
      return state satisfies never;
  }
}
