import { INDEPENDENT, SDK } from "./rig/clients.ts";
import { sessionSuite } from "./suite.ts";

// Clients of one fleet need not come from one hand: what one releases, the other is granted.
sessionSuite(SDK, INDEPENDENT);
