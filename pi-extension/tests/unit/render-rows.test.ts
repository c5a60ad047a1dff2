import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import { noteEscOver, noteGone, noteLeft } from "../../src/pi/left-running.ts";
import type { ToolRenderers } from "../../src/render/row.ts";
import type { TestRow } from "./render-harness.ts";
import {
  context, CWD, draw, drawnBy, give, HOME, row, screen, start, theme,
} from "./render-harness.ts";
import { renderers } from "../../src/render/index.ts";
import { SNAKE, describeSession } from "../../src/render/view.ts";

const LOG = `${HOME}/.cache/execd-2-5d0c71b2.log`;
const ROUNDS = Array.from({ length: 12 }, (_, i) => `round ${i + 1}\n`).join("");

/** The row of a command that has ended or goes on, as `details` say. */
function wait(details: object, args: object = { cmd: "make" }): TestRow {
  const made = row("exec_command", args);
  give(made, { details: { output: "", ...details } });
  return made;
}

/** The last line that a person reads of a row. */
function lastLine(target: TestRow, width = 80): string | undefined {
  return screen(target, width).at(-1);
}

/** Fails unless the row draws this text in this colour. */
function assertPainted(target: TestRow, tone: Parameters<typeof theme.fg>[0], text: string): void {
  const lines = draw(target, 120).join("\n");
  assert.ok(lines.includes(theme.fg(tone, text)), `no ${tone} ${text} in ${lines}`);
}

describe("exec_command", () => {
  const args = {
    cmd: "for i in {1..12}; do echo round $i; done",
    yield_time_ms: 2500,
    tty: true,
    on_exit: "wake",
  };
  const yielded = {
    session_id: 2,
    output: ROUNDS,
    effective_wait_ms: 2501,
    yield_time_ms: 2500,
    wall_time_seconds: 2.513,
    cwd: CWD,
    log_path: LOG,
  };

  test("after a yield, 120 cells wide", () => {
    const target = row("exec_command", args);
    start(target);
    give(target, { text: "for the model", details: yielded });
    assert.deepEqual(screen(target, 120), [
      "$ for i in {1..12}; do echo round $i; done (yield 2.5s · tty) [wake]",
      "",
      "… 7 earlier lines (ctrl+o to expand)",
      "round 8",
      "round 9",
      "round 10",
      "round 11",
      "round 12",
      "",
      "yielded 2.5s · #2 · log: ~/.cache/execd-2-5d0c71b2.log",
    ]);
  });

  test("the same, 80 and 40 cells wide", () => {
    const target = wait(yielded, args);
    assert.deepEqual(screen(target, 80).slice(0, 3), [
      "$ for i in {1..12}; do echo round $i; done (yield 2.5s · tty) [wake]",
      "",
      "… 7 earlier lines (ctrl+o to expand)",
    ]);
    assert.deepEqual(screen(target, 40), [
      "$ for i in {1..12}; do echo round $i;",
      "done (yield 2.5s · tty) [wake]",
      "",
      "… 7 earlier lines (ctrl+o to expand)",
      "round 8",
      "round 9",
      "round 10",
      "round 11",
      "round 12",
      "",
      "yielded 2.5s · #2 ·",
      "log: ~/.cache/execd-2-5d0c71b2.log",
    ]);
  });

  test("expanded it shows everything", () => {
    const target = wait(yielded, args);
    target.component.setExpanded(true);
    const lines = screen(target);
    for (let i = 1; i <= 12; i++) assert.ok(lines.includes(`round ${i}`), `round ${i}`);
    assert.ok(!lines.some((line) => line.includes("earlier")));
  });

  test("counts visual lines, not lines", () => {
    const target = wait({ output: `${"x".repeat(400)}\nend\n`, exit_code: 0 });
    const lines = screen(target, 42);
    assert.deepEqual(lines.slice(2, 8), [
      "… 6 earlier lines (ctrl+o to expand)",
      "x".repeat(40),
      "x".repeat(40),
      "x".repeat(40),
      "x".repeat(40),
      "end",
    ]);
  });

  test("draws five lines without a hint, and blank lines only inside", () => {
    const lines = screen(wait({ output: "\n\n1\n2\n\n4\n5\n\n", exit_code: 0 }));
    assert.deepEqual(lines.slice(2), ["1", "2", "", "4", "5", "", "exit 0"]);
  });

  test("the cwd is pi's, or the workdir in it, until the daemon says better", () => {
    const first = (target: TestRow): string | undefined => screen(target)[0];
    assert.equal(first(row("exec_command", { cmd: "ls" })), "$ ls");
    const relative = { cmd: "ls", workdir: "../other" };
    assert.equal(first(row("exec_command", relative)), "$ ls (cwd: ~/other)");
    const absolute = { cmd: "ls", workdir: "/srv" };
    assert.equal(first(row("exec_command", absolute)), "$ ls (cwd: /srv)");
    assert.equal(first(wait({ exit_code: 0, cwd: "/remote" })), "$ make (cwd: /remote)");
  });

  test("shows a command of several lines whole", () => {
    const cmd = "cat > x <<'EOF'\n\tone\n\nEOF\n";
    assert.deepEqual(screen(row("exec_command", { cmd })), [
      "$ cat > x <<'EOF'",
      "   one",
      "",
      "EOF",
    ]);
  });

  test("after the exit: took, exit code, log", () => {
    const target = wait({ exit_code: 0, wall_time_seconds: 4.2, log_path: "/tmp/x.log" });
    assert.equal(lastLine(target), "took 4.2s · exit 0");
    target.component.setExpanded(true);
    assert.equal(lastLine(target), "took 4.2s · exit 0 · log: /tmp/x.log");
    assertPainted(target, "muted", "exit 0");
    const long = wait({ exit_code: 0, wall_time_seconds: 90 });
    assert.equal(lastLine(long), "took 1m 30s · exit 0");
  });

  test("a failure is in the error colour", () => {
    const failed = wait({ exit_code: 3, wall_time_seconds: 0.1 });
    assert.equal(lastLine(failed), "took 0.1s · exit 3");
    assertPainted(failed, "error", "exit 3");
    const ended = wait({ signal: "SIGTERM", wall_time_seconds: 0.1 });
    assert.equal(lastLine(ended), "took 0.1s · signal SIGTERM");
    assertPainted(ended, "error", "signal SIGTERM");
    const spawn = wait({ failure_message: "no such shell: fish", wall_time_seconds: 0 });
    assert.deepEqual(screen(spawn).slice(2), ["no such shell: fish", "took 0.0s"]);
    assertPainted(spawn, "error", "no such shell: fish");
  });

  test("a thrown error is its message, from its beginning, in the error colour", () => {
    const target = row("exec_command", { cmd: "x" });
    const rest = Array.from({ length: 12 }, (_, i) => `stderr ${i}`).join("\n");
    give(target, { text: `execd died\n${rest}`, details: {}, isError: true });
    const lines = screen(target);
    assert.equal(lines[2], "execd died");
    assert.equal(lines.at(-1), "… 3 more lines (ctrl+o to expand)");
    assertPainted(target, "error", "execd died");
  });

  test("notes and warnings stand on lines of their own", () => {
    const note = "shell exited (code 0); still running: 4242 node server.js";
    const target = wait({ session_id: 2, note, warning: "60/64 sessions open" });
    const last = "yielded · #2";
    assert.deepEqual(screen(target).slice(2), ["60/64 sessions open", note, last]);
    assertPainted(target, "warning", note);
    assertPainted(target, "warning", "60/64 sessions open");
  });

  test("what was cut away is told in the warning colour", () => {
    const lines = { truncatedBy: "lines", totalLines: 4500, outputLines: 2000, maxBytes: 51200 };
    const byLines = wait({ exit_code: 0, log_path: LOG, truncation: lines });
    const text =
      "[Showing lines 2501-4500 of 4500. Full output: ~/.cache/execd-2-5d0c71b2.log]";
    assert.equal(screen(byLines)[2], text);
    assertPainted(byLines, "warning", text);
    const bytes = { ...lines, truncatedBy: "bytes" };
    assert.equal(
      screen(wait({ exit_code: 0, truncation: bytes }))[2],
      "[Showing lines 2501-4500 of 4500 (50.0KB limit).]",
    );
    const partial = { ...bytes, lastLinePartial: true };
    assert.equal(
      screen(wait({ exit_code: 0, truncation: partial }))[2],
      "[Showing last 50.0KB of final line.]",
    );
    assert.equal(screen(wait({ exit_code: 0, truncation: {} }))[2], "[Output truncated.]");
    const gap = wait({ exit_code: 0, omitted_bytes: 1024 });
    assert.equal(screen(gap)[2], "[1.0KB of output between the calls was omitted.]");
  });

  test("a log that is not whole says so", () => {
    const log = { exit_code: 0, log_path: "/tmp/x.log" };
    const short = wait({ ...log, log_truncated: true });
    assert.equal(lastLine(short), "exit 0 · log: /tmp/x.log (truncated)");
    const broken = wait({ ...log, log_complete: false });
    assert.equal(lastLine(broken), "exit 0 · log: /tmp/x.log (incomplete)");
  });

  test("a wait that was broken off says so", () => {
    const target = wait({ session_id: 2, wait_status: "cancelled", effective_wait_ms: 1234 });
    assert.equal(lastLine(target), "yielded 1.2s (cancelled) · #2");
  });

  test("arguments still streaming in are drawn as far as they are known", () => {
    assert.deepEqual(screen(row("exec_command", {})), ["$ …"]);
    assert.deepEqual(screen(row("exec_command", undefined)), ["$ …"]);
    assert.deepEqual(screen(row("exec_command", { cmd: "np" })), ["$ np"]);
    assert.deepEqual(screen(row("exec_command", { cmd: 7 })), ["$ [invalid arg]"]);
    const growing = row("exec_command", { cmd: "np" });
    growing.component.updateArgs({ cmd: "npm test", tty: true });
    assert.deepEqual(screen(growing), ["$ npm test (tty)"]);
  });

  test("a huge command is drawn as far as 32 KiB", () => {
    const lines = screen(row("exec_command", { cmd: "x".repeat(1_000_000) }), 82);
    const text = lines.join("");
    assert.ok(text.startsWith(`$${"x".repeat(32 * 1024)}… 967232 more`), text.slice(-90));
    assert.ok(lines.length < 420);
  });

  test("a restored row without usable details shows what the model read", () => {
    const header = "[exited]\nexit_code: 0\nlog_path: /tmp/x\n---\n";
    const bare = row("exec_command", { cmd: "ls" });
    give(bare, { text: `${header}a\nb`, details: undefined });
    assert.deepEqual(screen(bare).slice(2), ["a", "b"]);
    const silent = row("exec_command", { cmd: "ls" });
    give(silent, { text: `${header}(no output)`, details: { exit_code: 0 } });
    assert.deepEqual(screen(silent).slice(2), ["exit 0"]);
    const foreign = row("exec_command", { cmd: "ls" });
    give(foreign, { text: "x\n---\ny", details: null });
    assert.deepEqual(screen(foreign).slice(2), ["x", "---", "y"]);
  });
});

describe("write_stdin", () => {
  const cases: [object, string][] = [
    [{ session_id: 2, yield_time_ms: 5000 }, "↻ poll → #2 (yield 5.0s)"],
    [{ session_id: 2, yield_time_ms: "5000" }, "↻ poll → #2 (yield 5.0s)"],
    [{ session_id: 2, chars: "", chars_b64: "" }, "↻ poll → #2 (yield 5.0s)"],
    [{ session_id: 2, yield_time_ms: 9e9 }, "↻ poll → #2 (yield 30m 0s)"],
    [{ session_id: 2, yield_time_ms: 10 }, "↻ poll → #2 (yield 5.0s)"],
    [
      { session_id: 2, yield_until: "2026-07-21T18:30:00Z" },
      "↻ poll → #2 (until 2026-07-21T18:30:00Z)",
    ],
    [{}, "↻ poll → #… (yield 5.0s)"],
    [{ session_id: { a: 1 }, chars: null }, "↻ poll → #… (yield 5.0s)"],
    [{ session_id: 1, chars: "print(7*6)\\n" }, "» print(7*6)\\n → #1"],
    [{ session_id: 1, chars: "print(7*6)\n" }, "» print(7*6)\\n → #1"],
    [{ session_id: 1, chars: "\\x03" }, "» ^C → #1"],
    [{ session_id: 1, chars: "\x03" }, "» ^C → #1"],
    [{ session_id: 1, chars: "\\u0004\\u{3}" }, "» ^D^C → #1"],
    [{ session_id: 1, chars: "\\x1b[A\\e[B\x1b[C" }, "» ^[[A^[[B^[[C → #1"],
    [{ session_id: 1, chars: "\\x1a\\q\\t\\x3\\" }, "» \\x1a\\q\\t\\x3\\ → #1"],
    [{ session_id: 1, chars: "\\\\x03" }, "» \\\\x03 → #1"],
    [{ session_id: 1, chars: "a\tb\r\x1a\x7f" }, "» a\\tb\\r^Z^? → #1"],
    [{ session_id: 1, chars: 5 }, "» [invalid arg] → #1"],
    [{ session_id: 1, chars_b64: "aGVsbG8=" }, "» (base64, 5 bytes) → #1"],
    [{ session_id: 1, chars_b64: "aGVs\n bG8=" }, "» (base64, 5 bytes) → #1"],
    [{ session_id: 1, chars_b64: "aA==" }, "» (base64, 1 byte) → #1"],
    [{ session_id: 1, eof: true }, "» (eof) → #1"],
    [
      { session_id: 1, chars: "q\\n", eof: true, yield_time_ms: 1000 },
      "» q\\n → #1 (eof · yield 1.0s)",
    ],
  ];
  for (const [args, expected] of cases) {
    test(JSON.stringify(args), () => {
      assert.deepEqual(screen(row("write_stdin", args)), [expected]);
    });
  }

  test("long input is cut until the row is expanded", () => {
    const target = row("write_stdin", { session_id: 1, chars: "x".repeat(500) });
    const text = (): string => screen(target, 82).join("").replaceAll(" ", "");
    assert.equal(text(), `»${"x".repeat(199)}…→#1`);
    target.component.setExpanded(true);
    assert.equal(text(), `»${"x".repeat(500)}→#1`);
  });

  test("its result is a wait's", () => {
    const target = row("write_stdin", { session_id: 1 });
    const details = { output: "42\n", exit_code: 0, wall_time_seconds: 1, log_path: LOG };
    give(target, { details });
    assert.deepEqual(screen(target), [
      "↻ poll → #1 (yield 5.0s)",
      "",
      "42",
      "",
      "took 1.0s · exit 0",
    ]);
  });
});

describe("kill_session", () => {
  test("an ended session: last output, summary, log", () => {
    const target = row("kill_session", { session_id: 2 });
    give(target, {
      details: {
        found: true,
        session_id: 2,
        killed: true,
        signal: "SIGTERM",
        summary: "Killed session 2 (pid 12345) with SIGTERM — signal SIGTERM",
        final_output: "1\n2\n3\n4\n5\n6\n",
        log_path: "/tmp/x.log",
      },
    });
    assert.deepEqual(screen(target), [
      "✕ kill #2 SIGTERM",
      "",
      "… 1 earlier lines (ctrl+o to expand)",
      "2",
      "3",
      "4",
      "5",
      "6",
      "",
      "Killed #2 (pid 12345) with SIGTERM · signal SIGTERM",
    ]);
  });

  test("an unknown session, in the error colour", () => {
    const target = row("kill_session", { session_id: 9, signal: 9 });
    give(target, { details: { found: false, session_id: 9 } });
    const expected = "no session #9";
    assert.deepEqual(screen(target), ["✕ kill #9 9", "", expected]);
    assertPainted(target, "error", expected);
  });

  test("what could not be ended is named, in the error colour", () => {
    const target = row("kill_session", { session_id: 2 });
    const survivors = [{ pid: 42, command: "sudo  sleep", reason: "EPERM" }, null];
    const summary = "Session 2 is not gone";
    give(target, { details: { found: true, killed: false, survivors, summary } });
    assert.deepEqual(screen(target).slice(2), [
      "still alive: 42 sudo sleep (EPERM)",
      "still alive: ?",
      "#2 is not gone",
    ]);
    assertPainted(target, "error", "still alive: 42 sudo sleep (EPERM)");
    assertPainted(target, "error", "#2 is not gone");
  });
});

describe("list_sessions", () => {
  const session = (id: number, more: object = {}): object => ({
    session_id: id,
    elapsed_ms: id * 41_000,
    command: "npm run dev",
    cwd: CWD,
    running: true,
    log_path: LOG,
    ...more,
  });

  test("is one line a session, five of them while collapsed", () => {
    const target = row("list_sessions", {});
    const sessions = [
      session(1),
      session(2, { tty: true, wake_armed: true }),
      session(3, { running: false, exit_code: 1 }),
      session(4, { name: "web", command: "x ".repeat(100) }),
      session(5, { cwd: undefined }),
      session(6),
      session(7),
    ];
    const left = [{ session_id: 1, pid: 42, command: "./serve" }];
    give(target, { text: "for the model", details: { sessions, left, active_count: 6 } });
    assert.deepEqual(screen(target, 60), [
      "list_sessions",
      "",
      "#1 41s npm run dev (~/project)",
      "#2 1m npm run dev (~/project) · tty · [wake]",
      "#3 2m npm run dev (~/project) · exit 1",
      `#4 2m web: ${"x ".repeat(23)}…`,
      "#5 3m npm run dev",
      "… 3 more sessions (ctrl+o to expand)",
    ]);
    assertPainted(target, "error", "exit 1");
    target.component.setExpanded(true);
    const all = screen(target);
    assert.equal(all.filter((line) => line.startsWith("   log: ~/")).length, 7);
    assert.equal(all.at(-1), "#1 ended, left pid 42 ./serve");
  });

  test("without sessions", () => {
    const target = row("list_sessions", { peek: true });
    give(target, { text: "  (no live sessions)", details: { sessions: [], active_count: 0 } });
    assert.deepEqual(screen(target), ["list_sessions (peek)", "", "no sessions"]);
  });

  test("describeSession bounds the command, and makes a line of nothing", () => {
    const told = { session_id: 2, elapsed_ms: 41_000, command: "npm  run\ndev", cwd: CWD };
    assert.equal(describeSession(told, SNAKE, 80), "#2 41s npm run dev (~/project)");
    assert.equal(describeSession(told, SNAKE, 5), "#2 41s npm … (~/project)");
    assert.equal(describeSession({}, SNAKE, 5), "#? 0s");
  });
});

describe("set_on_exit and resize_session", () => {
  const wakes: [object, string][] = [
    [{ found: true, status: "armed" }, "wake armed"],
    [{ found: true, status: "already_armed" }, "wake was armed already"],
    [{ found: true, status: "disarmed" }, "wake disarmed"],
    [{ found: true, status: "already_none" }, "no wake was armed"],
    [{ found: true, status: "too_late" }, "too late: the session has exited"],
    [{ found: true, status: "new in a later version" }, "the model's text"],
    [{ found: false }, "no session #2"],
  ];
  for (const [details, expected] of wakes) {
    test(`set_on_exit ${JSON.stringify(details)}`, () => {
      const target = row("set_on_exit", { session_id: 2, on_exit: "wake" });
      give(target, { text: "the model's\ntext", details });
      assert.deepEqual(screen(target), ["set_on_exit #2 → wake", "", expected]);
    });
  }

  test("resize_session", () => {
    const target = row("resize_session", { session_id: 2, cols: 1000, rows: 40 });
    give(target, { details: { session_id: 2, cols: 500, rows: 40 } });
    assert.deepEqual(screen(target), [
      "resize_session #2 → 1000x40",
      "",
      "terminal is 500x40 now",
    ]);
    const refused = row("resize_session", { session_id: 2 });
    give(refused, { text: "session 2 has no terminal", details: {}, isError: true });
    assert.deepEqual(screen(refused), [
      "resize_session #2 → …x…",
      "",
      "#2 has no terminal",
    ]);
    assertPainted(refused, "error", "#2 has no terminal");
  });
});

describe("across versions of pi", () => {
  const result = { content: [], details: { output: ROUNDS, exit_code: 0 } };
  const options = { expanded: false, isPartial: false };

  // rule: pi.md, The extension: pi 1.5's renderer fields are used where they are
  test("the keys of pi 1.5 are shown, without their colours", () => {
    const keyHint = (id: string, text: string): string => `\x1b[2m${id}:ctrl+e\x1b[22m ${text}`;
    const drawn = renderers.exec_command.renderResult(result, options, theme, context({ keyHint }));
    const text = drawn.render(80).join("\n");
    assert.ok(text.includes("… 7 earlier lines (app.tools.expand:ctrl+e to expand)"), text);
  });

  // rule: pi.md, The extension: pi 1.5's renderer fields are used where they are
  test("the time that pi 1.5 measured counts where the details have none", () => {
    const given = context({ durationMs: 4200 });
    const drawn = renderers.exec_command.renderResult(result, options, theme, given);
    assert.ok(drawn.render(80).join("\n").includes("took 4.2s"));
  });

  test("a component is used again, and only one of ours", () => {
    const { renderCall, renderResult } = renderers.exec_command;
    const first = renderResult(result, options, theme, context());
    const lastComponent = first;
    assert.equal(renderResult(result, options, theme, context({ lastComponent })), first);
    const stranger = { render: () => [], invalidate: () => {} };
    const made = renderCall({}, theme, context({ lastComponent: stranger }));
    assert.notEqual(made, stranger);
  });

  test("a new theme is used at once", () => {
    const { renderResult } = renderers.exec_command;
    const light = Object.create(theme) as typeof theme;
    light.fg = (tone, text) => `<${tone}>${text}`;
    const drawn = renderResult(result, options, theme, context());
    drawn.render(80);
    drawn.invalidate();
    renderResult(result, options, light, context({ lastComponent: drawn }));
    assert.ok(drawn.render(80).some((line) => line.includes("<toolOutput>round 12")));
  });
});

/** The colours behind the lines of a row, each once. */
function behind(target: TestRow): string[] {
  const lines = draw(target, 60).filter((line) => line !== "");
  return [...new Set(lines.map((line) => /\x1b\[48;[\d;]+m/.exec(line)?.[0] ?? "none"))];
}

const back = (tone: Parameters<typeof theme.bg>[0]) => theme.bg(tone, "").replace("\x1b[49m", "");
const [RED, GREEN, GREY] = [back("toolErrorBg"), back("toolSuccessBg"), back("toolPendingBg")];

describe("the colour of a row", () => {
  // rule: pi.md, What you see: what has failed is a red row, as one of pi's own bash is
  test("failed, signalled, not started: red; else green; grey while it runs", () => {
    const cases: [object, string][] = [
      [{ exit_code: 0 }, GREEN],
      [{ exit_code: 3 }, RED],
      [{ signal: "SIGKILL" }, RED],
      [{ failure_message: "spawn x: ENOENT" }, RED],
      [{ session_id: 2 }, GREEN],
      [{ session_id: 2, failure_message: "the log is full" }, GREEN],
    ];
    for (const [details, tone] of cases) {
      assert.deepEqual(behind(wait(details)), [tone], JSON.stringify(details));
      const poll = row("write_stdin", { session_id: 2 });
      give(poll, { details });
      assert.deepEqual(behind(poll), [tone], JSON.stringify(details));
    }
    const running = row("exec_command", { cmd: "make" });
    assert.deepEqual(behind(running), [GREY]);
    start(running);
    give(running, { details: { session_id: 2, output: "x" } }, true);
    assert.deepEqual(behind(running), [GREY]);
    give(running, { details: { exit_code: 1 } });
    assert.deepEqual(behind(running), [RED]);
    const thrown = row("exec_command", { cmd: "make" });
    give(thrown, { text: "execd died", details: {}, isError: true });
    assert.deepEqual(behind(thrown), [RED]);
  });

  // rule: pi.md, What you see: what has failed is a red row, as one of pi's own bash is
  test("what was killed on purpose has not failed; what cannot be found has", () => {
    const kill = (details: object) => {
      const target = row("kill_session", { session_id: 2 });
      give(target, { details });
      return behind(target);
    };
    assert.deepEqual(kill({ found: true, killed: true, signal: "SIGTERM", summary: "Killed" }), [GREEN]);
    assert.deepEqual(kill({ found: true, killed: false, summary: "Not gone" }), [RED]);
    assert.deepEqual(kill({ found: false, session_id: 2 }), [RED]);
    const rows = row("wait_for", { session_ids: [1, 2] });
    give(rows, { details: { wait: {}, sessions: [{ session_id: 1, exit_code: 2, command: "a" }] } });
    assert.deepEqual(behind(rows), [RED]);
  });

  test("its frame is pi's: the same lines, cells and colours", () => {
    const pis = createBashToolDefinition(CWD) as unknown as ToolRenderers;
    const rows = [drawnBy(pis, "bash", { command: "make" }, CWD), row("exec_command", { cmd: "make" })];
    for (const width of [20, 60, 81]) {
      const [theirs, ours] = rows.map((one) => draw(one, width));
      assert.deepEqual(ours, theirs);
    }
    for (const one of rows) give(one, { text: "bad", details: { output: "bad", exit_code: 1 }, isError: true });
    const [theirs = [], ours = []] = rows.map((one) => draw(one, 60));
    // Below the output ours says how it ended.
    assert.deepEqual(ours.slice(0, 5), theirs.slice(0, 5));
    assert.equal(ours.at(-1), theirs.at(-1));
  });
});

describe("a wait that a person has broken off", () => {
  const live = { session_id: 1, output: "deploying\n", running: true };
  beforeEach(() => noteLeft(1, true));
  afterEach(() => noteGone(() => false));
  const broken = (details: object) => {
    const target = row("exec_command", { cmd: "./deploy" });
    start(target);
    give(target, { details: live }, true);
    give(target, { details: { session_id: 1, wait_status: "cancelled", ...details } });
    return screen(target).slice(1);
  };

  // rule: pi.md, What you see: what a live row showed stays in it
  test("what the row showed stays, and it says how to end what goes on", () => {
    assert.deepEqual(broken({ effective_wait_ms: 1200 }), [
      "", "deploying", "", "still running · /kill 1 ends it", "yielded 1.2s (cancelled) · #1",
    ]);
    const esc = { wait_status: "cancelled (the user pressed Esc)", effective_wait_ms: 100 };
    assert.deepEqual(broken({ ...esc, output: "new", esc_until_ms: Date.now() + 60_000 }), [
      "", "new", "", "still running · Esc again within 2 s sends Ctrl-C · /kill 1 ends it",
      "yielded 0.1s (you pressed Esc) · #1",
    ]);
    assert.equal(broken({ ...esc, esc_until_ms: 1 }).at(-2), "still running · /kill 1 ends it");
  });

  // The row said for ever that the command still ran, and offered an Esc that did nothing any more.
  test("what it says is taken back when it is no longer true", () => {
    const target = row("exec_command", { cmd: "./deploy" });
    start(target);
    give(target, { details: {
      session_id: 1, wait_status: "cancelled", effective_wait_ms: 100, esc_until_ms: Date.now() + 60_000,
    } });
    const said = () => screen(target).filter((line) => line.startsWith("still"));
    assert.deepEqual(said(), ["still running · Esc again within 2 s sends Ctrl-C · /kill 1 ends it"]);
    const frames = target.frames();
    noteEscOver();
    assert.ok(target.frames() > frames, "redrawn");
    assert.deepEqual(said(), ["still running · /kill 1 ends it"]);
    noteGone((id) => id !== 1);
    assert.deepEqual(said(), []);
    // pi draws it anew, in a session that knows nothing of it.
    assert.deepEqual(broken({ session_id: 7 }).filter((line) => line.startsWith("still")), []);
  });

  test("wait_for: those that go on are named", () => {
    noteLeft(2, true);
    const target = row("wait_for", { session_ids: [1, 2, 3] });
    start(target);
    const sessions = [1, 2, 3].map((session_id) => ({ session_id, command: "x", outcome: "pending" }));
    give(target, { details: { wait: { outcome: "cancelled" }, sessions, esc_until_ms: 1 } });
    assert.ok(screen(target).includes("#1, #2 still running · /kill 1 ends that one"), screen(target).join("\n"));
  });

  test("by a message: only that", () => {
    const wait_reason = "a message from the user came";
    assert.deepEqual(broken({ wait_reason, effective_wait_ms: 100 }), [
      "", "deploying", "", "yielded 0.1s (your message came) · #1",
    ]);
  });
});

describe("what happened to other sessions", () => {
  const events = [
    { session_id: 3, what: "exited", command: "npm test", exit_code: 0, at_ms: 1 },
    { session_id: 4, what: "exited", command: "a\u001b[2J\nb", signal: "SIGKILL", killed_by: "timeout" },
    { what: 5 },
    "odd",
  ];

  // rule: pi.md, What the model learns of ends: Rows show each such line
  test("stands below the output, a line each", () => {
    const done = wait({ exit_code: 0, wall_time_seconds: 1, output: "x\n", events });
    const lines = screen(done, 80);
    assert.deepEqual(lines.slice(0, 7), [
      lines[0], "", "x", "",
      "✓ #3 npm test · exit 0",
      "✕ #4 a b · ended by timeout · signal SIGKILL",
      "✕ #0 · ended",
    ]);
    assertPainted(done, "success", "✓ #3 npm test");
    for (const name of ["kill_session", "list_sessions", "set_on_exit", "wait_for"] as const) {
      const target = row(name, { session_id: 3 });
      give(target, { details: { found: true, status: "armed", sessions: [], events } });
      assert.ok(screen(target, 80).includes("✓ #3 npm test · exit 0"), name);
    }
  });
});

// rule: pi.md, What the model learns of ends: rows say what is kept
test("a log whose beginning is gone: what is kept, and how to read it", () => {
  const cut = { truncation: { truncatedBy: "lines", totalLines: 9_000, outputLines: 2_000 } };
  const kept = { log_path: LOG, log_from: 4_096, output_bytes_total: 9_999 };
  const lines = screen(wait({ exit_code: 0, wall_time_seconds: 1, ...kept, ...cut }), 200);
  const said = "~/.cache/execd-2-5d0c71b2.log (bytes 4096–9999 of 9999 kept)";
  assert.deepEqual(lines.slice(-2), [
    `[Showing lines 7001-9000 of 9000. Full output: ${said}, `
      + "execd log ~/.cache/execd-2-5d0c71b2.log --from 4096]",
    "took 1.0s · exit 0",
  ]);
  for (const [path, word] of [
    ["/tmp/pi-execd-1000/execd-2-5d0c71b2.log", "2-5d0c71b2"],
    ["/srv/it's here/execd-2-5d0c71b2.log", "'/srv/it'\\''s here/execd-2-5d0c71b2.log'"],
  ] as const) {
    const elsewhere = { ...kept, log_path: path };
    const text = screen(wait({ exit_code: 0, wall_time_seconds: 1, ...elsewhere, ...cut }), 300);
    assert.ok(text.at(-2)?.endsWith(`, execd log ${word} --from 4096]`), text.at(-2));
  }
  const whole = wait({ exit_code: 0, wall_time_seconds: 1, ...kept });
  assert.equal(lastLine(whole, 200), `took 1.0s · exit 0 · log: ${said}`);
});
