/**
 * Public entry `evenkeel/testing`: what users test their own executors and stores with. A clock that moves only when told,
 * a scripted scheduler to connect to without sockets, and the suite that every store must pass.
 */

export { startExecutor } from "../client/running-executor.ts";
export * from "./fake-clock.ts";
export * from "./fake-scheduler.ts";
export * from "./store-conformance.ts";
