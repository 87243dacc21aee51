import { describe, expect, it } from "vitest";
import { MARGIN, PATIENCE, STOP, Subject } from "./holdings-fixture.ts";

/** A subject that was granted partitions 0 and 1 at epoch 5 and has loaded them. */
function loaded(): Subject {
  const subject = new Subject();
  subject.apply({ grant: [["0-1", 5]] });
  subject.loaded("0@5");
  subject.loaded("1@5");
  return subject;
}

describe("grants", () => {
  it("starts what is granted, and serves it from the grant on", () => {
    const subject = new Subject();
    expect(subject.apply({ grant: [["0-1", 5]] })).toEqual({ start: ["0@5", "1@5"] });
    expect(subject.serves(0)).toBe(5);
    expect(subject.serves(2)).toBeUndefined();
  });

  it("owes ready when loaded, and again with each push that names the partition", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0-1", 5]] });
    expect(subject.loaded("0@5")).toEqual({ owed: ["ready 0@5"] });
    expect(subject.apply({ grant: [["0-1", 5]] })).toEqual({ owed: ["ready 0@5"] });
    expect(subject.owed()).toEqual(["ready 0@5"]);
  });

  it("P23: owes failed again until it is asked back, then released at once", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0", 4]] });
    expect(subject.fail("0@4", "disk full", false)).toEqual({ owed: ["failed 0@4 disk full false"] });
    expect(subject.owed()).toEqual(["failed 0@4 disk full false"]);
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.apply({ base: 4, revoke: [["0", 4]] })).toEqual({ owed: ["released 0@4"] });
  });

  it("unloads what failed only after it had loaded", () => {
    const subject = loaded();
    subject.fail("0@5", "crashed");
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.apply({ base: 5, revoke: [["0", 5]] })).toEqual({ stop: ["0@5"] });
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@5"] });
  });
});

describe("revokes", () => {
  it("are served until the owner's code has ended, then owe released", () => {
    const subject = loaded();
    expect(subject.apply({ base: 5, revoke: [["0", 5]] })).toEqual({ stop: ["0@5"] });
    expect([subject.serves(0), subject.serves(1)]).toEqual([5, 5]);
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@5"] });
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.owed()).toEqual(["ready 1@5", "released 0@5"]);
  });

  it("P26: are served no longer than stopMs, whatever ran meanwhile", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.now = STOP - 1;
    expect(subject.serves(0)).toBe(5);
    subject.now = STOP;
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.cutOverdue()).toEqual({ cut: ["0@5"] });
    expect(subject.cutOverdue()).toEqual({});
  });

  it("P10: a handle that was cut is reported released only once its code has ended", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.now = STOP;
    subject.cutOverdue();
    expect(subject.apply({ base: 6, revoke: [["0", 5]] })).toEqual({});
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@5"] });
  });

  it("P21: count their limit from the first push that named the epoch", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.now = 3_000;
    subject.apply({ base: 6, revoke: [["0", 5]], grant: [["7", 7]] });
    subject.now = STOP;
    expect(subject.serves(0)).toBeUndefined();
  });

  it("P25: are cut for a sleep since their own push, whatever later ones began after it", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5, 60_000]] });
    subject.slept = 500;
    subject.apply({
      base: 6,
      revoke: [
        ["0", 5, 60_000],
        ["1", 5, 60_000],
      ],
    });
    subject.slept = MARGIN;
    expect(subject.cutOverdue()).toEqual({});
    subject.slept = MARGIN + 1;
    expect(subject.cutOverdue()).toEqual({ cut: ["0@5"] });
    subject.slept = MARGIN + 501;
    expect(subject.cutOverdue()).toEqual({ cut: ["1@5"] });
  });

  it("P25: are served no longer once the machine has slept more than the margin since", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    for (const slept of [900, 1_000]) {
      subject.slept = slept;
      expect(subject.serves(0)).toBe(5);
    }
    subject.slept = 1_800;
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.cutOverdue()).toEqual({ cut: ["0@5"] });
  });

  it("cover every earlier epoch of the partition, and no later one", () => {
    const covered = loaded();
    covered.apply({ base: 5, revoke: [["0", 8]] });
    covered.now = STOP;
    expect(covered.serves(0)).toBeUndefined();
    const later = loaded();
    expect(later.apply({ base: 5, revoke: [["0", 4]] })).toEqual({ owed: ["released 0@4"] });
    later.now = STOP;
    expect(later.serves(0)).toBe(5);
  });

  it("of an earlier epoch bring the limit of a later one no nearer", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.apply({
      base: 6,
      revoke: [
        ["0", 5],
        ["0", 4, 0],
      ],
    });
    expect(subject.serves(0)).toBe(5);
  });

  it("with a limit beyond the patience for others are waited for until that limit", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5, 2 * PATIENCE]] });
    subject.now = 2 * PATIENCE - 1;
    expect(subject.cutOverdue()).toEqual({});
    expect(subject.serves(0)).toBe(5);
  });

  it("are answered although an earlier epoch that was cut still hangs", () => {
    const subject = loaded();
    subject.apply({ grant: [["0", 8]] });
    subject.now = PATIENCE;
    expect(subject.cutOverdue()["start"]).toEqual(["0@8"]);
    subject.apply({ base: 8, revoke: [["0", 8]] });
    expect(subject.ended("0@8")).toEqual({ owed: ["released 0@8"] });
  });

  it("P12: of an epoch that is not held are reported released at once", () => {
    expect(new Subject().apply({ revoke: [["0-3", 8]] })).toEqual({ owed: ["released 0-3@8"] });
  });

  it("of an epoch that is not held wait for an earlier one that is still served", () => {
    const subject = loaded();
    expect(subject.apply({ base: 5, revoke: [["0", 8]] })).toEqual({ stop: ["0@5"] });
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@8"] });
  });

  it("of what is still loading stop it, and are answered when it has ended", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0", 5]] });
    expect(subject.apply({ base: 5, revoke: [["0", 5]] })).toEqual({ stop: ["0@5"] });
    expect(subject.loaded("0@5")).toEqual({});
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@5"] });
  });

  it("P11: released is owed again for what the last push asked back, and for nothing else", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.ended("0@5");
    expect(subject.owed()).toEqual(["ready 1@5", "released 0@5"]);
    subject.apply({ base: 6 });
    expect(subject.owed()).toEqual(["ready 1@5"]);
  });
});

describe("a push with base null", () => {
  it("stops at once what it does not list, and keeps the rest as it is", () => {
    const subject = loaded();
    expect(subject.apply({ grant: [["1", 5]] })).toEqual({ stop: ["0@5"], owed: ["ready 1@5"] });
    expect([subject.serves(0), subject.serves(1)]).toEqual([undefined, 5]);
  });

  it("stops in an exclusive table what it lists under another epoch, and starts it anew when that has ended", () => {
    const subject = loaded();
    expect(subject.apply({ grant: [["0-1", 8]] })).toEqual({ stop: ["0@5", "1@5"] });
    expect(subject.serves(0)).toBe(8);
    expect(subject.ended("0@5")).toEqual({ start: ["0@8"] });
  });

  it("keeps serving within its limit what it lists as revoked", () => {
    const subject = loaded();
    expect(subject.apply({ grant: [["1", 5]], revoke: [["0", 5]] })).toEqual({ stop: ["0@5"], owed: ["ready 1@5"] });
    expect(subject.serves(0)).toBe(5);
  });

  it("ends at once the serving of what was being revoked and is listed no more", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.apply({ grant: [["1", 5]] });
    expect(subject.serves(0)).toBeUndefined();
  });

  it("H12: without a partition stops it, whoever has it now", () => {
    const subject = loaded();
    expect(subject.apply({})).toEqual({ stop: ["0@5", "1@5"] });
    expect([subject.serves(0), subject.serves(1)]).toEqual([undefined, undefined]);
  });

  it("P4: stops what is of an earlier life of the table, even under the same epoch", () => {
    const subject = loaded();
    expect(subject.apply({ grant: [["0", 5]], created: 9 })).toEqual({ stop: ["0@5", "1@5"] });
    expect(subject.ended("0@5")).toEqual({ start: ["0@5"] });
  });
});

describe("a grant of a partition that is held", () => {
  it("starts only after the old handle has ended", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    expect(subject.apply({ base: 6, grant: [["0", 8]] })).toEqual({});
    expect(subject.ended("0@5")).toEqual({ start: ["0@8"] });
  });

  it("starts when the old handle was cut at its limit", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    subject.apply({ base: 6, grant: [["0", 8]] });
    subject.now = STOP;
    expect(subject.cutOverdue()).toEqual({ cut: ["0@5"], start: ["0@8"] });
  });

  it("starts when a handle that was stopped without a limit is out of patience", () => {
    const subject = loaded();
    subject.apply({ grant: [["0", 8]] });
    subject.now = PATIENCE - 1;
    expect(subject.cutOverdue()).toEqual({});
    subject.now = PATIENCE;
    expect(subject.cutOverdue()).toEqual({ cut: ["0@5", "1@5"], start: ["0@8"] });
  });

  it("never starts if it is revoked while it waits, and is released when the old one has ended", () => {
    const subject = loaded();
    subject.apply({ base: 5, grant: [["0", 8]] });
    expect(subject.apply({ base: 8, revoke: [["0", 8]] })).toEqual({});
    expect(subject.ended("0@5")).toEqual({ owed: ["released 0@8"] });
  });

  it("P1: after everything was stopped, the same epoch starts again, and nothing is reported released", () => {
    const subject = loaded();
    expect(subject.stopEverything()).toEqual({ stop: ["0@5", "1@5"] });
    expect(subject.apply({ grant: [["0-1", 5]] })).toEqual({});
    expect(subject.ended("0@5")).toEqual({ start: ["0@5"] });
    expect(subject.owed()).toEqual([]);
  });
});

describe("overlap tables", () => {
  const handoff = "overlap";

  it("P15: are loaded at the prepare; the grant only brings its epoch and is answered with it", () => {
    const subject = new Subject();
    expect(subject.apply({ prepare: [["0", 8]], handoff })).toEqual({ start: ["0@8"] });
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.loaded("0@8")).toEqual({ owed: ["ready 0@8"] });
    expect(subject.apply({ base: 8, grant: [["0", 9]], handoff })).toEqual({ owed: ["ready 0@9"] });
    expect(subject.serves(0)).toBe(9);
    expect(subject.owed()).toEqual(["ready 0@9"]);
  });

  it("answer the grant that comes while the preparation loads with the grant's epoch", () => {
    const subject = new Subject();
    subject.apply({ prepare: [["0", 8]], handoff });
    expect(subject.apply({ base: 8, grant: [["0", 9]], handoff })).toEqual({});
    expect(subject.handle("0@8").granted).toBe(9);
    const steps = subject.loaded("0@8");
    expect(steps).toEqual({ owed: ["ready 0@9"] });
  });

  it("P4: load anew what is granted in another life of the table", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0", 5]], handoff });
    subject.loaded("0@5");
    expect(subject.apply({ base: 5, grant: [["0", 9]], handoff, created: 8 })).toEqual({ stop: ["0@5"] });
    expect(subject.ended("0@5")).toEqual({ start: ["0@9"] });
  });

  it("unload nothing for another epoch, with base null neither", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0", 5]], handoff });
    subject.loaded("0@5");
    expect(subject.apply({ grant: [["0", 9]], handoff })).toEqual({ owed: ["ready 0@9"] });
  });

  it("unload a cancelled preparation, which was never served", () => {
    const subject = new Subject();
    subject.apply({ prepare: [["0", 8]], handoff });
    subject.loaded("0@8");
    expect(subject.apply({ base: 8, revoke: [["0", 8]], handoff })).toEqual({ stop: ["0@8"] });
    expect(subject.serves(0)).toBeUndefined();
  });

  it("keep the load of a trailing owner that is to get the partition back", () => {
    const subject = new Subject();
    subject.apply({ grant: [["0", 5]], handoff });
    subject.loaded("0@5");
    subject.apply({ base: 5, grant: [["0", 5]], prepare: [["0", 11]], handoff });
    expect(subject.owed()).toEqual(["ready 0@5", "ready 0@11"]);
    expect(subject.apply({ base: 11, revoke: [["0", 5]], handoff })).toEqual({ owed: ["released 0@5"] });
    expect(subject.serves(0)).toBeUndefined();
    expect(subject.owed()).toEqual(["ready 0@11", "released 0@5"]);
  });
});

describe("stopping everything", () => {
  it("serves nothing from then on, revoked or not, and forgets what was asked back", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5]] });
    expect(subject.stopEverything()).toEqual({ stop: ["1@5"] });
    expect([subject.serves(0), subject.serves(1)]).toEqual([undefined, undefined]);
    expect(subject.ended("0@5")).toEqual({});
    expect(subject.owed()).toEqual([]);
  });

  it("waits no longer for what was revoked with a distant limit than for the rest", () => {
    const subject = loaded();
    subject.apply({ base: 5, revoke: [["0", 5, 2 * PATIENCE]] });
    subject.stopEverything();
    subject.apply({ grant: [["0", 8]] });
    subject.now = PATIENCE;
    expect(subject.cutOverdue()["start"]).toEqual(["0@8"]);
  });

  it("ends what only waited, without a word", () => {
    const subject = loaded();
    subject.apply({ base: 5, grant: [["0", 8]] });
    expect(subject.stopEverything()).toEqual({ stop: ["1@5"] });
    expect(subject.ended("0@5")).toEqual({});
  });
});

describe("steps", () => {
  it("are ascending by partition, whatever the order of the push", () => {
    const subject = new Subject();
    subject.apply({
      grant: [
        ["7", 3],
        ["2", 4],
        ["5", 5],
      ],
    });
    expect(subject.apply({})["stop"]).toEqual(["2@4", "5@5", "7@3"]);
  });
});
