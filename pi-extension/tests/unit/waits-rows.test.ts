/** Rows of calls that say what they wait for: what that is, what ended the wait, what goes on. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, mock, test } from "node:test";
import { draw, give, row, screen, start, streamRow, theme } from "./render-harness.ts";
import type { TestRow } from "./render-harness.ts";
import { conditionWords, doingWords, endedWords } from "../../src/text/waits.ts";

const LOG = "/tmp/x.log";
const RUNS = { session_id: 2, output: "", effective_wait_ms: 3200, log_path: LOG, cwd: "/" };
const MATCHED = { ...RUNS, wait_status: "condition_met" };
const PYTHON = { state: "waiting_for_line", state_detail: { command: "python3" } };
const NODE = { listening: [{ port: 5173, address: "::1", pid: 41, command: "node" }] };

/** The lines of a row with its result, at this width. */
function drawn(target: TestRow, details: object, width = 100, text = ""): string[] {
  start(target);
  give(target, { details, text });
  return screen(target, width);
}

/** What an exec_command shows that asked for this and got that. */
function exec(asked: object, details: object, width = 100): string[] {
  return drawn(row("exec_command", { cmd: "npm run dev", ...asked }, "/"), details, width);
}

test("what is waited for, in words", () => {
  const cases: [unknown, string | undefined][] = [
    [{ text: "ready" }, '"ready"'],
    [{ text: ["a", "b"], count: 3 }, '"a" × 3 or "b" × 3'],
    [{ regex: ["1", "2", "3", "4", "5"] }, "/1/ or /2/ or /3/ or 2 more"],
    [{ port: 5173, regex: "rror" }, "/rror/ or port 5173"],
    [{ port: 0 }, "any port"],
    [{ port: "any" }, "any port"],
    [{ http: { port: 3000, path: "/health" } }, "http :3000/health"],
    [{ http: { path: "/health" } }, "http /health"],
    [{ input: true }, "input"],
    [{ input: "password" }, "input (password)"],
    [{ idle_ms: 500 }, "quiet for 0.5s"],
    [{ idleMs: 1500, treeExit: true }, "quiet for 1.5s or the end of all"],
    [{ input: false, tree_exit: false }, undefined],
    [{}, undefined],
    ["text", undefined],
    [undefined, undefined],
    [{ text: "x".repeat(300) }, `"${"x".repeat(39)}…"`],
  ];
  for (const [condition, words] of cases) assert.equal(conditionWords(condition), words);
});

test("what ended a wait, in words", () => {
  const asked = { until: { text: ["up", "ready"], idle_ms: 500 }, stop: { regex: "rror" } };
  const words = (wait: object) => endedWords(wait, asked, NODE.listening)?.words;
  const matched = (fields: object) => words({ outcome: "matched", ...fields });
  assert.equal(matched({ by: "text", index: 1, text: " ready in 3 s" }),
    'matched "ready" → ready in 3 s');
  assert.equal(matched({ by: "port", port: 5173 }), "matched port 5173 (node)");
  assert.equal(matched({ by: "port", port: 80 }), "matched port 80");
  assert.equal(matched({ by: "input", state: "waiting_for_key" }), "matched input: a key");
  assert.equal(matched({ by: "idle_ms" }), "matched quiet for 0.5s");
  assert.equal(matched({ by: "tree_exit" }), "matched the end of all");
  assert.equal(words({ outcome: "stopped", by: "regex", index: 0, text: "Error: x", captures: [] }),
    "stopped by /rror/ → Error: x");
  assert.equal(words({ outcome: "stopped", by: "regex", text: "a b", captures: [null, "b"] }),
    "stopped by /rror/ → b");
  assert.equal(words({ outcome: "impossible", why: "rg waits for a line on stdin" }),
    "impossible: rg waits for a line on stdin");
  assert.equal(words({ outcome: "deadline", effective_timeout_ms: 30_000 }), "not within 30.0s");
  assert.equal(words({ outcome: "exited" }), 'ended without "up" or "ready" or quiet for 0.5s');
  assert.equal(words({ outcome: "cancelled" }), undefined);
  assert.equal(endedWords(undefined, {}), undefined);
});

test("what a session is doing, in either spelling", () => {
  assert.deepEqual(doingWords({ ...PYTHON, ...NODE, full_screen: true }),
    ["waits for a line (python3)", "full screen", "listens on 5173 (node)"]);
  const camel = { state: "waiting_for_password", stateDetail: { command: "sudo" }, fullScreen: true };
  assert.deepEqual(doingWords(camel), ["waits for a password (sudo)", "full screen"]);
  assert.deepEqual(doingWords({ state: "stopped" }), ["stopped"]);
  for (const state of ["running", "held", undefined, 5]) assert.deepEqual(doingWords({ state }), []);
});

describe("exec_command and write_stdin", () => {
  test("a server's port, and a mark of its failure", () => {
    const asked = { until: { port: 5173 }, stop: { regex: "rror" }, yield_time_ms: 60_000 };
    const call = "$ npm run dev (yield 1m 0s · until port 5173 · stop at /rror/)";
    const wait = { outcome: "matched", by: "port", port: 5173, address: "::1", pid: 41 };
    assert.deepEqual(exec(asked, { ...MATCHED, ...NODE, state: "running", wait }), [
      call, "", "✓ matched port 5173 (node)",
      `waited 3.2s · #2 · log: ${LOG}`,
    ]);
    const two = { listening: [...NODE.listening, { port: 9229, command: "node" }] };
    assert.equal(exec(asked, { ...MATCHED, ...two, state: "running", wait }).at(-1),
      `waited 3.2s · #2 · listens on 5173 (node), 9229 (node) · log: ${LOG}`);
    const stopped = { outcome: "stopped", by: "regex", index: 0, text: "Error: no" };
    assert.deepEqual(exec(asked, { ...MATCHED, wait: stopped }).slice(1), [
      "", "✕ stopped by /rror/ → Error: no", `waited 3.2s · #2 · log: ${LOG}`,
    ]);
    const late = { outcome: "deadline", effective_timeout_ms: 60_000 };
    assert.deepEqual(exec(asked, { ...RUNS, wait_status: "deadline_reached", wait: late }).slice(1), [
      "", "not within 1m 0s", `yielded 3.2s · #2 · log: ${LOG}`,
    ]);
    const exited = { exit_code: 0, wall_time_seconds: 1, output: "x", wait: { outcome: "exited" } };
    assert.deepEqual(exec(asked, exited).slice(1),
      ["", "x", "", "ended without port 5173", "took 1.0s · exit 0"]);
    // Who waits for no more than the end, or for a failure, is told of the end once.
    assert.deepEqual(exec({ stop: { text: "x" } }, exited).slice(1),
      ["", "x", "", "took 1.0s · exit 0"]);
  });

  test("the colours tell what was wanted from what was feared", () => {
    const ends: [string, Parameters<typeof theme.fg>[0], string][] = [
      ["matched", "success", "✓ matched input"], ["stopped", "error", "✕ stopped by input"],
      ["impossible", "warning", "impossible: why"],
    ];
    for (const [outcome, tone, text] of ends) {
      const target = row("exec_command", { cmd: "x", until: { input: true } });
      give(target, { details: { ...MATCHED, wait: { outcome, by: "input", why: "why" } } });
      assert.ok(draw(target, 100).join("\n").includes(theme.fg(tone, text)), outcome);
    }
  });

  test("input: a REPL says who waits once", () => {
    const target = row("write_stdin", { session_id: 2, chars: "1+1\\n", until: { input: true } });
    const wait = { outcome: "matched", by: "input", state: "waiting_for_key" };
    const key = { state: "waiting_for_key", state_detail: { command: "python3" } };
    assert.deepEqual(drawn(target, { ...MATCHED, ...key, output: "2\n>>> ", wait }), [
      "» 1+1\\n → #2 (until input)", "", "2", ">>>", "", "✓ matched input: a key",
      `waited 3.2s · #2 · log: ${LOG}`,
    ]);
  });

  // rule: waits.md, Impossible: says so
  test("impossible: why, once, without the note for the model", () => {
    const why = "rg waits for a line on stdin; nothing else runs";
    const details = {
      ...MATCHED, state: "waiting_for_line", state_detail: { command: "rg" },
      wait: { outcome: "impossible", why }, note: `${why}: write to it, send eof, or …`,
    };
    assert.deepEqual(exec({}, details).slice(1), [
      "", `impossible: ${why}`, `waited 3.2s · #2 · log: ${LOG}`,
    ]);
  });

  test("a poll says what it waits for in its title", () => {
    const asked = { session_id: 2, until: { text: "done" }, stop: { text: "no" }, yield_time_ms: 9000 };
    assert.deepEqual(screen(row("write_stdin", asked), 100),
      ['↻ wait "done" → #2 (stop at "no" · yield 9.0s)']);
    assert.deepEqual(screen(row("write_stdin", { session_id: 2, eof: true, until: { port: 1 } }), 100),
      ["» (eof) → #2 (until port 1)"]);
  });

  test("what a session does stands in every row of one that goes on, and in lists", () => {
    assert.equal(exec({}, { ...RUNS, ...PYTHON }).at(-1),
      `yielded 3.2s · #2 · waits for a line (python3) · log: ${LOG}`);
    const session = {
      session_id: 2, command: "python3", cwd: "/", running: true, elapsed_ms: 1000, ...PYTHON,
    };
    const list = drawn(row("list_sessions", {}), { sessions: [session] });
    assert.equal(list.at(-1), "#2 1s python3 (/) · waits for a line (python3)");
  });
});

describe("wait_for", () => {
  beforeEach(() => mock.timers.enable({ apis: ["setInterval", "Date"] }));
  afterEach(() => mock.timers.reset());

  // rule: waits.md, wait_for: waits for several sessions of any family at once
  test("its line counts the seconds while it waits", () => {
    const target = row("wait_for", { session_ids: [2], until: { port: 5173 } });
    start(target);
    screen(target);
    mock.timers.tick(3200);
    assert.deepEqual(screen(target), ["↻ wait port 5173 → #2 · 3.2s"]);
    give(target, { details: { wait: { outcome: "cancelled" }, sessions: [] } });
    assert.deepEqual(screen(target), ["↻ wait port 5173 → #2", "", "no sessions"]);
  });

  test("a line for each session, and what ended the wait", () => {
    const args = { session_ids: [1, 2, 3], mode: "all", timeout_ms: 60_000, stop: { text: "rror" } };
    const target = row("wait_for", args);
    assert.deepEqual(screen(target), [
      '↻ wait → #1, #2, #3 (all · stop at "rror" · 1m 0s)',
    ]);
    const details = {
      wait: { outcome: "stopped", by: "text", index: 0, text: "Error: x", session_id: 3 },
      sessions: [
        { session_id: 1, command: "make a", state: "exited", outcome: "exited", exit_code: 0 },
        { session_id: 2, command: "make b", outcome: "pending", ...PYTHON },
        { session_id: 3, command: "make c", state: "running", outcome: "stopped" },
      ],
    };
    const lines = drawn(target, details, 80, "the text of the model");
    assert.deepEqual(lines.slice(1), [
      "", "#1 make a · exit 0", "#2 make b · waits for a line (python3)", "#3 make c", "",
      '✕ stopped by "rror" → Error: x',
    ]);
    target.component.setExpanded(true);
    assert.ok(screen(target).includes("the text of the model"));
  });

  test("all sessions, and of many the first", () => {
    const given = (args: object) => {
      const target = row("wait_for", args);
      start(target);
      return screen(target, 100)[0] ?? "";
    };
    assert.equal(given({}), "↻ wait → all sessions · 0.0s");
    assert.equal(given({ session_ids: "5, 6" }), "↻ wait → #5, #6 · 0.0s");
    assert.equal(given({ session_ids: "all" }), "↻ wait → all sessions · 0.0s");
    assert.equal(given({ session_ids: 5 }), "↻ wait → #5 · 0.0s");
    const ids = Array.from({ length: 20 }, (_, i) => i + 1);
    assert.match(given({ session_ids: ids }), / #1, #2, .*#16, and 4 more · 0.0s$/);
  });
});

describe("the stream tools", () => {
  test("bash_stream and poll_process say the same", () => {
    const command = streamRow("bash_stream", { command: "npm run dev", until: { port: "any" } });
    const wait = { outcome: "matched", by: "port", port: 5173, presentAtEntry: false };
    const details = {
      status: "running", sessionId: 3, waitedMs: 3200, tail: "", ...NODE, state: "running", wait,
    };
    assert.deepEqual(drawn(command, details), [
      "$ npm run dev (until any port)", "", "✓ matched port 5173 (node)",
      "waited 3.2s · #3",
    ]);
    const poll = { sessionId: 3, waitMs: 5000, until: { idleMs: 500 }, stop: { text: "no" } };
    assert.deepEqual(screen(streamRow("poll_process", poll), 100),
      ['↻ wait quiet for 0.5s → #3 (stop at "no" · to its end, 5s)']);
  });
});

test("rows of 40 to 120 columns, whatever stands in them", () => {
  const long = "/Local: +(http\\S+)/ ".repeat(8);
  for (const width of [40, 57, 80, 100, 120]) {
    const details = {
      ...MATCHED, ...PYTHON, ...NODE,
      wait: { outcome: "matched", by: "regex", index: 0, text: `\x1b[2J${long}漢字` },
    };
    const target = row("exec_command", { cmd: "x", until: { regex: long }, stop: { text: long } });
    assert.ok(drawn(target, details, width).join(" ").includes("✓ matched /"));
    target.component.setExpanded(true);
    draw(target, width);
  }
});
