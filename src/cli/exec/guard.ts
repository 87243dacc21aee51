import { Children } from "./children.ts";
import type { FromGuard, ToGuard } from "./messages.ts";

/**
 * A process of its own that holds the children of `evenkeel executor --exec` to their lease. It goes on counting when its
 * parent is stopped, killed or too busy to look at the clock, and ends when the parent is gone and so are the children.
 */

const children = new Children((message: FromGuard) => {
  // The parent may be gone by now; `disconnect` says so, and what could not be told does not matter then.
  if (process.connected) process.send?.(message, () => {});
  endWhenDone();
});

function endWhenDone(): void {
  if (!process.connected && children.count === 0) process.exit(0);
}

function obey(message: ToGuard): void {
  switch (message.type) {
    case "start":
      return children.start(message);
    case "stop":
      return children.stop(message);
    case "lease":
      return children.lease(message);
    default:
      return message satisfies never;
  }
}

process.on("message", (message) => obey(message as ToGuard));
process.on("disconnect", () => {
  children.orphaned();
  endWhenDone();
});

// Whoever ends a whole tree of processes by signal must not end this one before what it guards.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
