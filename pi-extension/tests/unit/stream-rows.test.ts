import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { StreamToolName } from "../../src/render/index.ts";
import { streamRenderers } from "../../src/render/index.ts";
import { HOSTILE } from "./hostile-texts.ts";
import type { TestRow } from "./render-harness.ts";
import { draw, give, HOME, screen, start, streamRow, theme } from "./render-harness.ts";

const TOOLS = Object.keys(streamRenderers) as StreamToolName[];
const LOG = `${HOME}/.cache/execd-2.log`;
const TWELVE = Array.from({ length: 12 }, (_, i) => `round ${i + 1}\n`).join("");

/** The first line of a call's row. */
function callLine(tool: StreamToolName, args: object): string | undefined {
  const made = streamRow(tool, args);
  start(made);
  return screen(made)[0];
}

/** The row of a result, below the call. */
function resultLines(tool: StreamToolName, details: object, args: object = {}): string[] {
  const made = streamRow(tool, args);
  give(made, { text: "for the model", details });
  return screen(made, 100).slice(2);
}

function assertPainted(target: TestRow, tone: Parameters<typeof theme.fg>[0], text: string): void {
  const lines = draw(target, 120).join("\n");
  assert.ok(lines.includes(theme.fg(tone, text)), `no ${tone} ${text} in ${lines}`);
}

describe("calls", () => {
  test("bash_stream", () => {
    const cases: [object, string][] = [
      [{ command: "ls" }, "$ ls"],
      [{ command: "top", yieldMs: 60_000, stdinMode: "pty" }, "$ top (yield 60s · pty)"],
      [{ command: "x", yieldMs: "2500", stdinMode: "pipe" }, "$ x (yield 2.5s)"],
      [{ command: "rg x", stdinMode: "null" }, "$ rg x (no stdin)"],
      [{ command: "x", timeoutMs: 500, workdir: `${HOME}/a` }, "$ x (timeout 0.5s · cwd: ~/a)"],
      [{}, "$ …"],
      [{ command: 5 }, "$ [invalid arg]"],
    ];
    for (const [args, line] of cases) assert.equal(callLine("bash_stream", args), line);
  });

  // rule: pi.md, The extension: Rows of the stream tools
  test("poll_process, write_stdin, kill_process", () => {
    const cases: [StreamToolName, object, string][] = [
      ["poll_process", { sessionId: 3 }, "↻ poll → #3"],
      ["poll_process", { sessionId: 3, maxDrainMs: 5_000, killIf: "timeout" },
        "↻ poll → #3 (wait 5s · kill if timeout)"],
      ["poll_process", { sessionId: 3, waitMs: 600_000, maxDrainMs: 0 },
        "↻ poll → #3 (to its end, 600s)"],
      ["poll_process", { sessionId: 3, waitMs: 0, maxDrainMs: 2_500 }, "↻ poll → #3 (wait 2.5s)"],
      ["poll_process", {}, "↻ poll → #…"],
      ["write_stdin", { sessionId: 3, data: "hello world\n", eof: true }, "» 12 bytes → #3 (eof)"],
      ["write_stdin", { sessionId: 3, data: "é" }, "» 2 bytes → #3"],
      ["write_stdin", { sessionId: 3, data: { base64: "AA==" } }, "» 1 byte → #3"],
      ["write_stdin", { sessionId: 3, eof: true }, "» 0 bytes → #3 (eof)"],
      ["kill_process", { sessionId: 3 }, "✕ kill #3 SIGKILL"],
      ["kill_process", { sessionId: 3, signal: "SIGTERM" }, "✕ kill #3 SIGTERM"],
      ["list_processes", {}, "list_processes"],
      ["get_process_log", { sessionId: 3 }, "log #3"],
      ["get_process_log", { sessionId: 3, offset: -100, limit: 50, stream: "stderr" },
        "log #3 (from -100 · 50 bytes · stderr)"],
    ];
    for (const [tool, args, line] of cases) assert.equal(callLine(tool, args), line);
  });

  test("expanded, what was written stands below", () => {
    const made = streamRow("write_stdin", { sessionId: 3, data: "one\ntwo\n" });
    made.component.setExpanded(true);
    assert.deepEqual(screen(made), ["» 8 bytes → #3", "one", "two"]);
  });
});

describe("reports", () => {
  test("live: the newest output, who runs, a clock", () => {
    const made = streamRow("bash_stream", { command: "make" });
    start(made);
    const details = { status: "running", sessionId: 3, output: TWELVE, logPath: LOG };
    give(made, { details }, true);
    assert.deepEqual(screen(made).slice(2), [
      "… 7 earlier lines (ctrl+o to expand)",
      "round 8", "round 9", "round 10", "round 11", "round 12",
      "",
      "elapsed 0.0s · #3 · log: ~/.cache/execd-2.log",
    ]);
  });

  test("live output that was too much: said beside it", () => {
    const made = streamRow("bash_stream", { command: "yes" });
    start(made);
    give(made, { details: { status: "running", output: "y\n", liveEnded: true } }, true);
    const drawn = screen(made);
    const said = drawn.indexOf("[No more of the output is shown live: it is too much.]");
    assert.ok(said > drawn.indexOf("y"), drawn.join("\n"));
  });

  test("yielded: the tail", () => {
    const report = { status: "running", sessionId: 3, pid: 5, tail: "up\n", waitedMs: 60_012 };
    assert.deepEqual(resultLines("bash_stream", report), [
      "up", "", "yielded 1m 0s · #3",
    ]);
    const early = { ...report, waitedMs: 3_000, interrupted: true };
    assert.equal(
      resultLines("bash_stream", early).at(-1),
      "yielded 3.0s (a message came) · #3",
    );
  });

  test("ended: both streams in order of arrival, exit, log", () => {
    const report = {
      status: "failed", sessionId: 3, exitCode: 3, stdout: "a\nc\n", stderr: "b\n",
      aggregated: "a\nb\nc\n", durationMs: 4_200, logPath: LOG,
    };
    assert.deepEqual(resultLines("bash_stream", report), [
      "a", "b", "c", "", "took 4.2s · exit 3 · log: ~/.cache/execd-2.log",
    ]);
    const made = streamRow("bash_stream", { command: "x" });
    give(made, { details: report });
    assertPainted(made, "error", "exit 3");
    const fine = { status: "completed", exitCode: 0, aggregated: "", durationMs: 12 };
    assert.deepEqual(resultLines("bash_stream", fine), ["took 0.0s · exit 0"]);
  });

  test("a progress bar is one line, on a terminal too", () => {
    const output = "\u001b[32mdown\u001b[0m\r\n10%\r55%\r";
    const report = { status: "running", sessionId: 3, tail: output, waitedMs: 1_000 };
    assert.deepEqual(resultLines("bash_stream", report).slice(0, 2), ["down", "55%"]);
    const made = streamRow("bash_stream", { command: "x" });
    start(made);
    give(made, { details: { status: "running", output } }, true);
    assert.deepEqual(screen(made).slice(2, 4), ["down", "55%"]);
  });

  test("a poll of what runs: what is new", () => {
    const report = {
      status: "running", sessionId: 3, stdout: "new\n", stderr: "bad\n", tail: "old\nnew\nbad\n",
      durationMs: 12_300,
    };
    assert.deepEqual(resultLines("poll_process", report), [
      "new", "bad", "", "running 12.3s · #3",
    ]);
  });

  test("what is out of the ordinary is said", () => {
    const report = {
      status: "failed", signal: "SIGKILL", timedOut: true, aborted: true, aggregated: "",
      truncated: true, backgroundPids: [7, 8], late: true, durationMs: 0, logPath: LOG,
    };
    assert.deepEqual(resultLines("kill_process", report), [
      "[Showing the end. Full output: ~/.cache/execd-2.log]",
      "still in the background: 7, 8",
      "some came after its end",
      "its time was over",
      "ended by Esc",
      "took 0.0s · signal SIGKILL",
    ]);
    const failed = { status: "failed", exitCode: -1, error: "workdir /x: ENOENT", durationMs: 0 };
    assert.deepEqual(resultLines("bash_stream", failed), [
      "workdir /x: ENOENT", "took 0.0s · exit -1",
    ]);
  });

  test("a thrown error is its message, in the error colour", () => {
    const made = streamRow("poll_process", { sessionId: 9 });
    give(made, { text: "unknown sessionId: 9", details: {}, isError: true });
    assert.deepEqual(screen(made).slice(2), ["no session #9"]);
    assertPainted(made, "error", "no session #9");
  });
});

describe("lists and pages", () => {
  const processes = Array.from({ length: 7 }, (_, i) => ({
    sessionId: 7 - i, command: `sleep ${i}`, cwd: `${HOME}/project`, durationMs: 41_000,
    status: i === 0 ? "running" : "failed", stdinMode: i === 0 ? "pty" : "pipe",
    ...(i > 0 && { exitCode: i, logPath: LOG }),
  }));

  test("five processes while collapsed, all with their logs when expanded", () => {
    assert.deepEqual(resultLines("list_processes", { processes }), [
      "#7 41s sleep 0 (~/project) · pty",
      "#6 41s sleep 1 (~/project) · exit 1",
      "#5 41s sleep 2 (~/project) · exit 2",
      "#4 41s sleep 3 (~/project) · exit 3",
      "#3 41s sleep 4 (~/project) · exit 4",
      "… 2 more sessions (ctrl+o to expand)",
    ]);
    const made = streamRow("list_processes", {});
    give(made, { details: { processes } });
    made.component.setExpanded(true);
    const lines = screen(made);
    assert.equal(lines.length, 2 + 7 + 6);
    assert.ok(lines.includes("   log: ~/.cache/execd-2.log"));
    assert.deepEqual(resultLines("list_processes", { processes: [] }), ["no sessions"]);
    const gone = { processes: [], forgotten: 3, keptMax: 256, keptMs: 1_800_000 };
    assert.deepEqual(resultLines("list_processes", gone), [
      "no sessions",
      "forgotten: 3 that ended earlier (what has ended is listed for 30m, the last 256)",
    ]);
  });

  test("a page from its beginning, and which part it is", () => {
    const page = { sessionId: 3, text: TWELVE, offset: 100, nextOffset: 199, totalBytes: 5_000 };
    assert.deepEqual(resultLines("get_process_log", page), [
      "round 1", "round 2", "round 3", "round 4", "round 5",
      "… 7 more lines (ctrl+o to expand)",
      "",
      "bytes 100 to 199 of 5000 (4.9KB)",
    ]);
    assert.match(resultLines("get_process_log", { ...page, eof: true }).at(-1) ?? "", / · end$/);
  });

  test("what became of input", () => {
    const made = streamRow("write_stdin", { sessionId: 3, data: "x" });
    const text = "wrote 1 byte. poll_process shows what it answers.";
    give(made, { text, details: { written: 1, queued: 0, eof: false } });
    assert.deepEqual(screen(made).slice(2), ["wrote 1 byte"]);
  });
});

describe("whatever comes", () => {
  const texts: [string, unknown][] = [
    ...Object.entries(HOSTILE),
    ["a number", 5], ["nothing", null], ["a list", [1]], ["an object", { a: 1 }],
  ];
  for (const [name, value] of texts) {
    test(`${name} is drawn harmlessly by all six`, () => {
      const args = {
        command: value, workdir: value, yieldMs: value, timeoutMs: value, stdinMode: value,
        sessionId: value, killIf: value, maxDrainMs: value, data: value, eof: value, signal: value,
        offset: value, limit: value, stream: value, encoding: value,
      };
      const report = {
        output: value, aggregated: value, stdout: value, stderr: value, tail: value, error: value,
        sessionId: value, exitCode: value, signal: value, durationMs: value, waitedMs: value,
        backgroundPids: [value], logPath: value, truncated: true, status: value, text: value,
        offset: value, nextOffset: value, totalBytes: value,
        processes: [value, { ...args, name: value, cwd: value, logPath: value, status: value }],
      };
      for (const tool of TOOLS) {
        for (const expanded of [false, true]) {
          for (const details of [report, { ...report, status: "running" }, {}, value]) {
            const made = streamRow(tool, args);
            start(made);
            made.component.setExpanded(expanded);
            give(made, { text: String(value), details }, true);
            draw(made, 40);
            give(made, { text: String(value), details });
            for (const width of [4, 7, 80]) draw(made, width);
          }
        }
      }
    });
  }
});
