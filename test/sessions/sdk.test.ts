import { SDK } from "./rig/clients.ts";
import { sessionSuite } from "./suite.ts";

sessionSuite(SDK);
