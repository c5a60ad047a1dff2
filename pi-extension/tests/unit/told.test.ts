/** The book of what the model has been told: a table of stories, and random ones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SessionEvent } from "../../src/execd/wire-results.ts";
import { type Ended, Told } from "../../src/pi/told.ts";
import { eventLine, withoutEventLines } from "../../src/text/events.ts";
import { seeded } from "./render-random.ts";

/** The end of a session, as execd's ledger tells it. */
function exited(session_id: number, more: Partial<SessionEvent> = {}): SessionEvent {
  return { what: "exited", session_id, at_ms: 0, command: "npm test", exit_code: 1, ...more };
}

const none = (): undefined => undefined;
const own = (session_id: number, woke = false) => ({ ended: { session_id, exit_code: 1 }, woke });
const ids = (events: SessionEvent[]) => events.map(({ session_id }) => session_id);

describe("the book of what was told", () => {
  // rule: pi.md, What the model learns of ends: each end is told once
  it("an event is told by one result, and again when pi did not keep that", () => {
    const told = new Told();
    assert.deepEqual(ids(told.tell("a", [], [exited(3)], none)), [3]);
    assert.deepEqual(told.tell("b", [], [exited(3)], none), []);
    assert.deepEqual(ids(told.untold), [3], "it is on its way");
    told.settle("a", true);
    assert.deepEqual(ids(told.tell("c", [], [exited(3)], none)), [3]);
    told.settle("c", false);
    assert.deepEqual(told.tell("d", [], [exited(3)], none), []);
    assert.deepEqual(told.untold, []);
  });

  it("what a result tells by itself is no line, and becomes one when pi did not keep that", () => {
    const told = new Told();
    assert.deepEqual(told.tell("a", [own(3)], [], none), []);
    assert.deepEqual(told.tell("b", [], [exited(3)], none), []);
    assert.deepEqual(told.settle("a", true), []);
    const [event] = told.tell("c", [], [], none);
    assert.deepEqual([event?.session_id, event?.exit_code], [3, 1]);
  });

  // rule: pi.md, What the model learns of ends: a wake that waits is not sent where a result has
  //   told its end
  it("a wake that waits goes with the line, and comes back with the error", () => {
    const told = new Told();
    const waiting: Ended = { session_id: 3, exit_code: 1, elapsed_ms: 5 };
    assert.equal(told.wake(waiting), true);
    assert.deepEqual(ids(told.tell("a", [], [exited(3)], () => waiting)), [3]);
    assert.deepEqual(told.settle("a", true), [waiting]);
    assert.deepEqual(told.untold, [], "the wake tells it");
    assert.equal(told.wake(waiting), true);
    told.woken([waiting]);
    assert.deepEqual(told.tell("b", [], [exited(3)], none), []);
    told.dropped([waiting]);
    assert.deepEqual(ids(told.tell("c", [], [exited(3)], () => waiting)), [3]);
    told.settle("c", false);
    assert.equal(told.wake(waiting), false);
  });

  it("a wake that comes behind the line is not sent, unless pi did not keep the line", () => {
    const told = new Told();
    told.tell("a", [], [exited(3), exited(4)], none);
    assert.equal(told.wake({ session_id: 3 }), false);
    assert.deepEqual(told.settle("a", true), [{ session_id: 3 }]);
    assert.deepEqual(ids(told.untold), [4], "the one is for the wake, the other for the next line");
    assert.equal(told.wake({ session_id: 4 }), true);
    assert.deepEqual(told.untold, []);
  });

  it("an exit that execd told instead of a wake is told by a wake when pi did not keep it", () => {
    const told = new Told();
    told.tell("a", [own(3, true), { ended: { exit_code: 2 }, woke: true }], [], none);
    assert.deepEqual(told.settle("a", true), [own(3).ended, { exit_code: 2 }]);
  });

  it("results of one call id end in the order in which they were made", () => {
    const told = new Told();
    told.tell("same", [], [exited(3)], none);
    told.tell("same", [], [exited(4)], none);
    told.settle("same", false);
    told.settle("same", true);
    assert.deepEqual(ids(told.untold), [4]);
  });

  it("windows tell their ends by themselves; of who has ended it is not told that it will", () => {
    const told = new Told();
    const killed = exited(4, { what: "killed", killed_by: "timeout" });
    const events = [exited(3, { family: "windows" }), killed, exited(4), exited(5, { what: "wake" }),
      exited(6, { what: "killed" }), exited(4, { what: "log_trouble", message: "full" })];
    const lines = told.tell("a", [], events, none).map(({ what, session_id }) => [what, session_id]);
    assert.deepEqual(lines, [["exited", 4], ["killed", 6], ["log_trouble", 4]]);
    told.settle("a", false);
    assert.deepEqual(told.tell("b", [], [killed], none), [], "it has ended");
  });

  it("what people saw is told where the model knew the session", () => {
    const told = new Told();
    told.name(3);
    for (const session_id of [3, 4]) told.seen({ session_id, exit_code: 1 });
    told.seen({ session_id: 3, exit_code: 1 });
    assert.deepEqual(ids(told.tell("a", [], [exited(3)], none)), [3]);
  });
});

/**
 * A story by chance: sessions end; execd tells it by a line, by the reply of a call, by a wake, in
 * any order and all of that; results are kept or not, messages are taken, dropped, shown.
 */
function story(seed: number): void {
  const below = seeded(seed);
  const told = new Told();
  /** How often each end stands in what pi has kept. */
  const kept = new Map<number, number>();
  const waiting: Ended[] = [];
  const given: Ended[][] = [];
  const open: { id: string; ends: number[] }[] = [];
  const keep = (id: number) => kept.set(id, (kept.get(id) ?? 0) + 1);
  const wakeUp = (ended: Ended) => { if (told.wake(ended)) waiting.push(ended); };
  const takeBack = (id: number) => {
    const at = waiting.findIndex(({ session_id }) => session_id === id);
    return at < 0 ? undefined : waiting.splice(at, 1)[0];
  };
  const settle = (isError: boolean) => {
    const result = open.shift();
    if (!result) return;
    for (const again of told.settle(result.id, isError)) wakeUp(again);
    if (!isError) result.ends.forEach(keep);
  };
  const call = (carried: number[], owns: number[], woke = false) => {
    const id = `call ${below(3)}`;
    const itself = owns.map((one) => own(one, woke));
    const lines = told.tell(id, itself, carried.map((one) => exited(one)), takeBack);
    open.push({ id, ends: [...ids(lines), ...owns] });
  };
  for (let step = 0; step < 60; step++) {
    const what = below(7);
    if (what === 0 || kept.size === 0) {
      const id = kept.size + 1;
      kept.set(id, 0);
      // execd tells each end to this client once, by a line or by a reply, and perhaps by a wake.
      const how = below(5);
      if (how === 2) wakeUp({ session_id: id });
      if (how < 3) call([id], []);
      else call([], [id], how === 4);
      if (how === 1) wakeUp({ session_id: id });
    } else if (what === 1) call([], []);
    else if (what === 2) settle(false);
    else if (what === 3) settle(true);
    else if (what === 4 && waiting.length > 0) {
      const letter = waiting.splice(0);
      told.woken(letter);
      given.push(letter);
    } else if (what === 5 && given.length > 0) {
      const letter = given.shift() ?? [];
      told.dropped(letter);
      waiting.unshift(...letter);
    } else if (what === 6) {
      const letter = given.shift() ?? [];
      for (const { session_id } of letter) keep(Number(session_id));
    }
  }
  // In the end pi keeps everything: whatever was not told is told by now.
  while (open.length > 0) settle(below(2) === 0);
  for (let rounds = 0; rounds < 8; rounds++) {
    call([], []);
    settle(false);
  }
  for (const letter of [...given.splice(0), waiting.splice(0)]) {
    told.woken(letter);
    for (const { session_id } of letter) keep(Number(session_id));
  }
  for (const [id, times] of kept) assert.equal(times, 1, `session ${id} of seed ${seed}`);
}

// rule: pi.md, What the model learns of ends: each end is told once
it("in 10,000 random stories each end is told once", () => {
  for (let seed = 1; seed <= 10_000; seed++) story(seed);
});

describe("lines of events", () => {
  it("have execd's words", () => {
    const line = (more: Partial<SessionEvent>, nowMs = 41_000) => {
      const { exit_code: _, ...bare } = exited(3);
      return eventLine({ ...bare, ...more }, nowMs);
    };
    const begins = "event: session 3 (npm test)";
    assert.equal(line({ exit_code: 1 }), `${begins} exited 1, 41 s ago`);
    assert.equal(line({ signal: "SIGKILL" }, 185_000), `${begins} ended by SIGKILL, 3 min ago`);
    assert.equal(line({ signal: "SIGKILL", killed_by: "timeout" }, 7_200_000),
      `${begins} was killed (timeout), ended by SIGKILL, 2 h ago`);
    assert.equal(line({ signal: "SIGHUP", killed_by: "signal from outside" }, -5),
      `${begins} ended by SIGHUP (signal from outside), 0 s ago`);
    assert.equal(line({ killed_by: "shutdown" }), `${begins} was killed (shutdown), 41 s ago`);
    assert.equal(line({ what: "evicted" }), `${begins} was evicted, 41 s ago`);
    assert.equal(line({ what: "log_trouble", message: "a\nb" }), `${begins} a b, 41 s ago`);
    const long = line({ command: "\u001b[2Jx\n".repeat(1_000), exit_code: 0 });
    assert.match(long, /^event: session 3 \([x ]+…\) exited 0, 41 s ago$/);
  });

  it("execd's own are taken out of its texts, and no others", () => {
    const text = "[exited]\nexit_code: 0\nevent: session 3 (a) exited 1, 2 s ago";
    assert.equal(withoutEventLines(text, 1), "[exited]\nexit_code: 0");
    assert.equal(withoutEventLines(text, 0), text);
    const waited = "wait: over\nevent: session 3 (a) exited 1, 2 s ago\nsession 4\nevent: session 5";
    assert.equal(withoutEventLines(waited, 1), "wait: over\nsession 4\nevent: session 5");
  });
});
