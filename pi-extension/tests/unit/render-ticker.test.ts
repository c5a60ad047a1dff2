import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, mock, test } from "node:test";
import { context, give, row, screen, start, theme } from "./render-harness.ts";
import { renderers } from "../../src/render/index.ts";
import { MAX_UNDRAWN_TICKS, startTicker } from "../../src/render/state.ts";

const WAITING = { session_id: 2, running: true, output: "a\n", log_path: "/tmp/x.log" };
const DONE = { output: "a\n", exit_code: 0, wall_time_seconds: 4.2 };

/** How many intervals are set and not yet cleared. */
let open = 0;
const live = new Set<unknown>();

describe("the ticker of a row", () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ["setInterval", "Date"] });
    live.clear();
    const set = globalThis.setInterval;
    const clear = globalThis.clearInterval;
    mock.method(globalThis, "setInterval", (work: () => void, ms: number) => {
      const timer = set(work, ms);
      live.add(timer);
      open = live.size;
      return timer;
    });
    mock.method(globalThis, "clearInterval", (timer: NodeJS.Timeout) => {
      live.delete(timer);
      open = live.size;
      clear(timer);
    });
    open = 0;
  });
  afterEach(() => {
    mock.restoreAll();
    mock.timers.reset();
  });

  // rule: pi.md, The extension: The second ticks, and stops
  test("a running row counts the seconds, with one ticker", () => {
    const target = row("exec_command", { cmd: "make" });
    assert.equal(open, 0, "nothing ticks before the start");
    start(target);
    give(target, { details: WAITING }, true);
    assert.equal(screen(target).at(-1), "elapsed 0.0s · #2 · log: /tmp/x.log");
    for (let i = 0; i < 20; i++) give(target, { details: WAITING }, true);
    assert.equal(open, 1);
    const before = target.frames();
    mock.timers.tick(3000);
    assert.equal(target.frames(), before + 3, "a frame a second");
    assert.equal(screen(target).at(-1), "elapsed 3.0s · #2 · log: /tmp/x.log");
    assert.equal(open, 1);
  });

  // rule: pi.md, The extension: The second ticks, and stops
  test("it ends with the final result, and nothing starts it again", () => {
    const target = row("exec_command", { cmd: "make" });
    start(target);
    give(target, { details: WAITING }, true);
    give(target, { details: DONE });
    assert.equal(open, 0);
    assert.equal(screen(target).at(-1), "took 4.2s · exit 0");
    // pi 0.73.1 sends updates even after the end.
    give(target, { details: WAITING }, true);
    assert.ok(!screen(target).at(-1)?.includes("elapsed"));
    assert.equal(open, 0);
    const before = target.frames();
    mock.timers.tick(5000);
    assert.equal(target.frames(), before);
  });

  test("it ends with an error", () => {
    for (const partial of [false, true]) {
      const target = row("write_stdin", { session_id: 1 });
      start(target);
      give(target, { details: WAITING }, true);
      assert.equal(open, 1);
      give(target, { text: "execd died", details: {}, isError: true }, partial);
      assert.equal(open, 0);
    }
  });

  test("restored rows never tick", () => {
    const target = row("exec_command", { cmd: "make" });
    screen(target);
    give(target, { details: DONE });
    screen(target);
    assert.equal(open, 0);
  });

  test("a silent command shows life before its first result", () => {
    const target = row("exec_command", { cmd: "sleep 100" });
    start(target);
    assert.deepEqual(screen(target), ["$ sleep 100"]);
    mock.timers.tick(2000);
    assert.deepEqual(screen(target), ["$ sleep 100", "", "elapsed 2.0s"]);
    give(target, { details: WAITING }, true);
    const lines = screen(target);
    assert.equal(lines.filter((line) => line.includes("elapsed")).length, 1);
    assert.equal(lines.at(-1), "elapsed 2.0s · #2 · log: /tmp/x.log");
    assert.equal(open, 1);
    give(target, { details: DONE });
    assert.equal(open, 0);
    assert.ok(!screen(target).some((line) => line.includes("elapsed")));
  });

  test("kill_session ticks while it waits", () => {
    const target = row("kill_session", { session_id: 2 });
    start(target);
    give(target, { details: undefined, content: [] }, true);
    mock.timers.tick(1000);
    assert.equal(screen(target).at(-1), "elapsed 1.0s");
    give(target, { details: { found: true, session_id: 2, summary: "Killed" } });
    assert.equal(screen(target).at(-1), "Killed");
    assert.equal(open, 0);
  });

  test("a row that nobody draws any more stops by itself, and goes on when drawn", () => {
    const target = row("exec_command", { cmd: "make" });
    start(target);
    give(target, { details: WAITING }, true);
    screen(target);
    mock.timers.tick(MAX_UNDRAWN_TICKS * 1000);
    assert.equal(open, 1);
    mock.timers.tick(1000);
    assert.equal(open, 0);
    screen(target);
    assert.equal(open, 1);
    give(target, { details: DONE });
    assert.equal(open, 0);
  });

  test("an error of a stale row does not leave the timer", () => {
    let calls = 0;
    const invalidate = (): void => {
      calls++;
      throw new Error("stale context");
    };
    const given = context({ invalidate, isPartial: true, executionStarted: true });
    const { renderResult } = renderers.exec_command;
    const options = { expanded: false, isPartial: true };
    renderResult({ content: [], details: WAITING }, options, theme, given);
    assert.equal(open, 1);
    assert.doesNotThrow(() => mock.timers.tick(3000));
    assert.equal(calls, 1);
    assert.equal(open, 0);
  });
});

test("a ticker keeps no process alive", () => {
  const state = {};
  startTicker(state, context());
  const { ticker } = state as { ticker: NodeJS.Timeout };
  assert.equal(ticker.hasRef(), false);
  clearInterval(ticker);
});
