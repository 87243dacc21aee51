import type { Fleet, Recorder } from "./fleet.ts";
import { findEnded, type Run } from "./record.ts";

/** Times between which something happened to a fleet, and what it did to those that lived on. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Lets something happen while these live on. */
export async function during(fleet: Fleet, living: readonly Recorder[], deeds: () => Promise<void>): Promise<Stretch> {
  const from = await fleet.moment(...living);
  await deeds();
  return { from, to: await fleet.moment(...living) };
}

/** What these did not serve all the time, and under one epoch, of what they had at the start. */
export function endedOf(recorders: readonly Recorder[], { from, to }: Stretch): readonly Run[] {
  return recorders.flatMap((recorder) => findEnded(recorder.runs(), from, to));
}

/** Partitions that this process could serve at that time. */
export function placesOf(recorder: Recorder, at: number): readonly string[] {
  return [...epochsOf(recorder, at).keys()].sort();
}

/** Epochs of the partitions that this process could serve at that time, by place. */
export function epochsOf(recorder: Recorder, at: number): ReadonlyMap<string, number> {
  const open = recorder.runs().filter(({ first, last }) => first <= at && last >= at);
  return new Map(open.map(({ place, epoch }) => [place, epoch]));
}
