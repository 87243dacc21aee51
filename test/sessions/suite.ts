import { describe } from "vitest";
import type { ClientKind } from "./rig/clients.ts";
import { formationTests } from "./suite/formation.ts";
import { handoffTests } from "./suite/handoff.ts";
import { livesTests } from "./suite/lives.ts";
import { movementTests } from "./suite/movement.ts";

/**
 * What any executor goes through with a scheduler, over real sockets: the same tests whoever wrote the client. With several
 * kinds the members of each fleet take turns.
 */
export function sessionSuite(...kinds: readonly ClientKind[]): void {
  describe.concurrent(`sessions of ${kinds.map(({ name }) => name).join(" and ")}`, () => {
    formationTests(kinds);
    movementTests(kinds);
    handoffTests(kinds);
    livesTests(kinds);
  });
}
