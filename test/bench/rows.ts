import type { Row } from "./row.ts";
import { hello } from "./rows/hello.ts";
import { inboundAck } from "./rows/inbound.ts";
import { memory } from "./rows/memory.ts";
import { planCold, planJoin, planTenth } from "./rows/plan.ts";
import { push } from "./rows/push.ts";
import { renewals } from "./rows/renewals.ts";
import { restart } from "./rows/restart.ts";
import { touchAll } from "./rows/touch-all.ts";
import { turnJoin } from "./rows/turn.ts";
import { helloWindow } from "./rows/window.ts";

/** All rows, in the order of DESIGN §5. */
export const ROWS: readonly Row[] = [
  planCold,
  planJoin,
  planTenth,
  turnJoin,
  push,
  inboundAck,
  hello,
  touchAll,
  helloWindow,
  memory,
  renewals,
  restart,
];
