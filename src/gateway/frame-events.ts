import type { Event, HelloReceived, Stamps } from "../driver/ports.ts";
import type { SessionId } from "../model/ids.ts";
import type { ClientFrame, ExecutorHelloFrame } from "../protocol/frames.ts";

/** What a frame of an executor tells the core. */

export function helloEvent(session: SessionId, frame: ExecutorHelloFrame, stamps: Stamps): HelloReceived {
  const { type: _type, role: _role, stamp, ...said } = frame;
  const proof = stamp === undefined ? undefined : stamps.verify(stamp);
  return { type: "hello.received", session, ...said, ...(proof === undefined ? {} : { proof }) };
}

/** Frames that may follow a hello. */
export function frameEvent(session: SessionId, frame: Exclude<ClientFrame, { type: "hello" }>): Event {
  switch (frame.type) {
    case "renew":
      return { type: "renew.received", session, n: frame.n };
    case "ack":
      return { type: "ack.received", session, revision: frame.revision };
    case "report":
      return {
        type: "report.received",
        session,
        ready: frame.ready,
        released: frame.released,
        failed: frame.failed,
      };
    case "update": {
      const { type: _type, ...said } = frame;
      return { type: "update.received", session, ...said };
    }
    case "leave":
      return { type: "leave.received", session, mode: frame.mode };
    default:
      return frame satisfies never;
  }
}
