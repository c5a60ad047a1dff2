/**
 * What people read, aloud: the rows of a table of states, notices, the footer, the widget and the
 * list, at 60, 80 and 120 columns. They stand in fixtures/rows.txt, to be read by whoever changes a
 * text; `EXECD_BLESS=1` writes that file anew.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, it, mock } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import { readConfig } from "../../src/bash/config.ts";
import { noteLeft } from "../../src/pi/left-running.ts";
import { SessionPicker } from "../../src/pi/picker.ts";
import { type Row, rowLabel } from "../../src/pi/roster.ts";
import { TailView } from "../../src/pi/tail-view.ts";
import { statusText, widgetLines } from "../../src/pi/ui.ts";
import { bashRenderers } from "../../src/render/bash.ts";
import { renderWakeMessage, windowMessageRenderer } from "../../src/render/messages.ts";
import {
  CWD, HOME, type TestResult, type TestRow, drawnBy, give, row, screen, start, streamRow, theme,
  withoutColours,
} from "./render-harness.ts";

const FIXTURE = join(import.meta.dirname, "fixtures", "rows.txt");
const WIDTHS = [60, 80, 120];
const LOG = "/tmp/pi-execd-1000/execd-2-7f1148b4.log";
const OUT = "compiled module 6\ncompiled module 7\nready on http://localhost:3000\n";
const MANY = Array.from({ length: 9 }, (_, i) => `ok ${i + 1} - suite ${i + 1}\n`).join("");
const DEV = { cmd: "npm run dev -- --host 0.0.0.0 --port 5173", yield_time_ms: 30_000 };
const RUNS = { session_id: 2, output: OUT, log_path: LOG, cwd: CWD, yield_time_ms: 30_000 };
const CUT = {
  truncation: { truncatedBy: "lines", totalLines: 5_000, outputLines: 2_000, maxBytes: 51_200 },
};

/** A result that has come, or one of a call that still waits. */
type Given = TestResult & { partial?: boolean; expanded?: boolean };
type Made = () => TestRow;

const details = (fields: object, more: Given = {}): Given => ({ details: fields, ...more });
const exec = (args: object): Made => () => row("exec_command", args, CWD);
const poll = (args: object): Made => () => row("write_stdin", { session_id: 2, ...args });
const bashConfig = { config: readConfig("/no/such/file").config };
const bash = (args: object): Made => () => drawnBy(bashRenderers(bashConfig), "bash", args, CWD);

const DONE = { output: MANY, wall_time_seconds: 4.2, log_path: LOG };
const STATES: [title: string, made: Made, ...given: Given[]][] = [
  ["exec_command, asked for", exec({ ...DEV, until: { port: 5173 }, stop: { regex: "rror" } })],
  ["running", exec(DEV), details(RUNS, { partial: true })],
  ["yielded", exec({ ...DEV, on_exit: "wake", tty: true }), details({
    ...RUNS, effective_wait_ms: 30_000, state: "waiting_for_line", state_detail: { command: "node" },
  })],
  ["a port came up", exec({ ...DEV, until: { port: 5173 } }), details({
    ...RUNS, effective_wait_ms: 3_200, wait: { outcome: "matched", by: "port", port: 5173 },
    listening: [{ port: 5173, command: "node" }],
  })],
  ["its failure came", exec({ ...DEV, stop: { regex: "rror" } }), details({
    ...RUNS, effective_wait_ms: 3_200,
    wait: { outcome: "stopped", by: "regex", index: 0, text: "Error: no such module 'x'" },
  })],
  ["only input can end it", exec({ cmd: "rg needle" }), details({
    ...RUNS, output: "", effective_wait_ms: 100,
    wait: { outcome: "impossible", why: "rg waits for a line on stdin; nothing else runs" },
  })],
  ["succeeded", exec({ cmd: "npm test" }), details({ ...DONE, exit_code: 0 })],
  ["the same, expanded", exec({ cmd: "npm test" }), details({ ...DONE, exit_code: 0 }, { expanded: true })],
  ["failed, in another directory", exec({ cmd: "npm test", workdir: `${HOME}/other` }),
    details({ ...DONE, exit_code: 3, cwd: `${HOME}/other` })],
  ["ended by a signal", exec({ cmd: "npm test" }), details({ ...DONE, signal: "SIGKILL" })],
  ["cut", exec({ cmd: "seq 1 5000" }), details({ ...DONE, ...CUT, exit_code: 0 })],
  ["could not be started", exec({ cmd: "x", shell: "fish" }),
    details({ failure_message: "spawn fish: ENOENT: No such file or directory" })],
  ["execd died", exec(DEV), details(RUNS, { partial: true }),
    { text: "execd was killed by SIGKILL. Its sessions are gone; the next call starts a fresh execd.",
      details: {}, isError: true }],
  ["Esc", exec({ cmd: "./deploy" }), details(RUNS, { partial: true }), details({
    ...RUNS, output: "", effective_wait_ms: 4_100, wait_status: "cancelled",
    wait_reason: "the user pressed Esc", esc_until_ms: 2_000,
  })],
  ["Esc, of a session with a long number", exec({ cmd: "./deploy" }), details(RUNS, { partial: true }),
    details({
      ...RUNS, session_id: 123_456, effective_wait_ms: 4_100, wait_status: "cancelled",
      wait_reason: "the user pressed Esc", esc_until_ms: 2_000,
    })],
  ["what people have ended", exec({ cmd: "true" }), details({
    exit_code: 0, wall_time_seconds: 0.01, events: [
      { session_id: 3, what: "exited", command: "npm test", signal: "SIGTERM", killed_by: "the user" },
      { session_id: 4, what: "exited", command: "make", signal: "SIGTERM", killed_by: "execd kill" },
    ],
  })],
  ["a clamped wait", exec({ cmd: "npm test", yield_time_ms: 999_999 }), details({
    ...RUNS, effective_wait_ms: 30_000, note: "yield_time_ms was 999999, the most is 30000",
  })],
  ["a parameter that there is not", exec({ cmd: "x", chrs: "y" }), {
    text: "chrs: unknown param of exec_command; did you mean chars?", details: {}, isError: true,
  }],
  ["Esc, two seconds later", exec({ cmd: "./deploy" }), details({
    ...RUNS, effective_wait_ms: 4_100, wait_status: "cancelled", wait_reason: "the user pressed Esc",
    esc_until_ms: 0,
  })],
  ["a message came", exec({ cmd: "./deploy" }), details({
    ...RUNS, effective_wait_ms: 4_100, wait_status: "cancelled",
    wait_reason: "a message from the user came",
  })],
  ["what happened besides", exec({ cmd: "true" }), details({
    exit_code: 0, wall_time_seconds: 0.01, events: [
      { session_id: 3, what: "exited", command: "npm test", exit_code: 0 },
      { session_id: 4, what: "exited", command: "sleep 60", signal: "SIGKILL", killed_by: "timeout" },
      { session_id: 5, what: "evicted", command: "npm run watch" },
    ],
  })],
  ["poll", poll({}), details({ ...RUNS, yield_time_ms: 5_000, effective_wait_ms: 5_000 })],
  ["poll, asked for too long", poll({ yield_time_ms: 9_999_999 })],
  ["poll until it listens", poll({ until: { port: 5173 }, yield_time_ms: 60_000 })],
  ["input", poll({ chars: "print(7*6)\\n", yield_time_ms: 600 }), details({
    ...RUNS, output: "print(7*6)\n42\n>>> ", yield_time_ms: 600, effective_wait_ms: 600,
  })],
  ["keys, bytes, the end of input", poll({ chars: "\\x03", eof: true }), details({ ...RUNS, output: "" })],
  ["no such session", poll({ session_id: 9 }), { text: "unknown session_id: 9", details: {}, isError: true }],
  ["wait_for", () => row("wait_for", { session_ids: [1, 2], mode: "all", timeout_ms: 60_000 }), details({
    wait: { outcome: "deadline", effective_timeout_ms: 60_000 }, sessions: [
      { session_id: 1, command: "make a", exit_code: 0 },
      { session_id: 2, name: "db", command: "psql", outcome: "pending", state: "waiting_for_password",
        state_detail: { command: "psql" } },
    ],
  })],
  ["kill_session", () => row("kill_session", { session_id: 2 }), details({
    found: true, killed: true, final_output: "bye\n", log_path: LOG,
    summary: "Killed session 2 (pid 12345) with SIGTERM — signal=SIGTERM",
  })],
  ["kill_session, of none", () => row("kill_session", { session_id: 9 }), details({ found: false })],
  ["list_sessions", () => row("list_sessions", {}), details({ sessions: [
    { session_id: 1, elapsed_ms: 41_000, command: "npm run dev", cwd: CWD, running: true },
    { session_id: 2, elapsed_ms: 1_000, name: "db", command: "psql", cwd: CWD, running: true, tty: true,
      wake_armed: true, state: "waiting_for_line", state_detail: { command: "psql" } },
    { session_id: 3, elapsed_ms: 9_000, command: "./serve &", cwd: CWD, running: true, shell_exited: true },
    { session_id: 4, elapsed_ms: 5_000, command: "npm test", cwd: CWD, running: false, exit_code: 1 },
  ] })],
  ["list_sessions, of none", () => row("list_sessions", {}), details({ sessions: [] })],
  ["bash_stream", () => streamRow("bash_stream", { command: "./serve", yieldMs: 2_000, stdinMode: "null" }),
    details({ status: "running", sessionId: 1, tail: OUT, waitedMs: 2_000, logPath: LOG })],
  ["bash_stream, failed", () => streamRow("bash_stream", { command: "make" }),
    details({ status: "failed", exitCode: 2, aggregated: MANY, durationMs: 4_200, logPath: LOG })],
  ["bash_stream, Esc", () => streamRow("bash_stream", { command: "make" }),
    details({ status: "failed", signal: "SIGKILL", aborted: true, aggregated: OUT, durationMs: 900 })],
  ["bash_stream, its time was over", () => streamRow("bash_stream", { command: "make", timeoutMs: 500 }),
    details({ status: "failed", signal: "SIGTERM", timedOut: true, aggregated: "", durationMs: 500 })],
  ["poll_process", () => streamRow("poll_process", { sessionId: 3, waitMs: 600_000 }),
    details({ status: "running", sessionId: 3, stdout: "new\n", durationMs: 12_300 })],
  ["kill_process", () => streamRow("kill_process", { sessionId: 3 }),
    details({ status: "failed", signal: "SIGKILL", aggregated: "", durationMs: 900 })],
  ["bash, in the background", bash({ command: "npm run dev", background: true }), {
    text: "Started in background window: dev @3. Result will be reported when it finishes.",
    details: { status: "background", window: "@3", name: "dev" },
  }],
  ["bash, its time was over", bash({ command: "npm run dev", timeout: 999 }), {
    text: `${OUT}\n\nStill running after 60s in background window @3.`,
    details: { status: "background", window: "@3", name: "npm", output_at: [0, OUT.length] },
  }],
];

/** The lines of a row in this state. */
function rowLines([, made, ...given]: (typeof STATES)[number], width: number): string[] {
  const target = made();
  if (given.length > 0) start(target);
  for (const { partial = false, expanded = false, ...result } of given) {
    if (expanded) target.component.setExpanded(true);
    give(target, result, partial);
  }
  return screen(target, width);
}

const ENDED = { session_id: 4, command: "npm test", elapsed_ms: 2_000, log_path: LOG };
const WINDOW = { window: "@3", name: "dev", command: "npm run dev", tail: OUT };

const boxed = (box: { render(width: number): string[] }, width: number) =>
  box.render(width).map((line) => withoutColours(line).trimEnd());
const wake = (ended: object) => (width: number) =>
  boxed(renderWakeMessage({ content: "", details: { sessions: [ended] } }, { expanded: false }, theme), width);
const windows = (facts: object) => (width: number) => boxed(windowMessageRenderer(bashConfig)(
  { content: "", details: { windows: [{ ...WINDOW, ...facts }] } }, { expanded: false }, theme), width);

const seen = (id: number, command: string, states: string[], isRunning = true): Row => ({
  id, isRunning, states, logPath: LOG, session: { stdinMode: "pty" } as Row["session"],
  seen: { id, command, cwd: CWD, ageMs: 41_000 },
});
const ROWS = [
  seen(3, "npm run dev -- --host 0.0.0.0 --port 5173", ["listens on 5173 (node)", "[wake]"]),
  seen(2, "psql", ["waits for a line (psql)"]),
  seen(4, "./serve &", ["shell exited, output held"]),
  seen(1, "npm test", ["exit 3"], false),
];

/** What stands outside of rows. */
const OTHERS: [title: string, lines: (width: number) => string[]][] = [
  ["a wake", wake({ ...ENDED, exit_code: 0 })],
  ["a wake, failed", wake({ ...ENDED, exit_code: 1 })],
  ["a wake, ended by the person", wake({ ...ENDED, signal: "SIGTERM", killed_by: "the user: /kill" })],
  ["a wake, lost", wake({ ...ENDED, lost: "execd was killed by SIGKILL" })],
  ["a window has ended", windows({ kind: "exited", exit_code: 0 })],
  ["a window has failed", windows({ kind: "exited", exit_code: 3, log_path: LOG, truncated: true })],
  ["a check-in", windows({ kind: "poll" })],
  ["a lost window", windows({ kind: "lost", tail: "", log_path: LOG })],
  ["/sessions", (width) => {
    const host = {
      rows: () => 30, draw() {}, close() {}, whyNoLine: () => undefined,
      act: async () => "", send: async () => "",
    };
    const picker = new SessionPicker({ fg: (_tone: string, text: string) => text }, host);
    picker.show(ROWS, "forgotten: 3 that ended earlier (what has ended is listed for 30m, the last 256)");
    return picker.render(width);
  }],
  ["the live tail", (width) => tail(width, "k")],
  ["the live tail, a line is asked for", (width) => tail(width, "s")],
];

/** The view of a session's output, after a key. */
function tail(width: number, key: string): string[] {
  const view = new TailView({ fg: (_tone: string, text: string) => text }, {
    rows: () => 30, draw() {}, close() {}, whyNoLine: () => undefined,
    act: () => new Promise(() => {}), send: async () => "",
  });
  const [row] = ROWS;
  view.title(`${rowLabel(row as Row)} · ${LOG}`, row);
  view.append(OUT);
  view.handleInput(key);
  return view.render(width);
}

/** What pi itself wraps, or cuts, at the width. */
const LINES: [title: string, lines: string[]][] = [
  ["the footer", [statusText(ROWS.map(({ seen: one, ...others }) =>
    ({ ...one, ...others, id: others.id })), true) ?? ""]],
  ["the widget", widgetLines(ROWS.slice(0, 3).map(({ seen: one, ...others }) =>
    ({ ...one, ...others })), (id) => id === 2)],
];

beforeEach(() => mock.timers.enable({ apis: ["Date", "setInterval"], now: 1_000 }));
afterEach(() => mock.timers.reset());

// rule: pi.md, What you see: every row, notice and list, at 60, 80 and 120 columns
it("every state of every row, no line wider than the terminal, as fixtures/rows.txt has them", () => {
  for (const id of [2, 123_456]) noteLeft(id, true);
  const parts = WIDTHS.flatMap((width) => {
    const drawn: [string, string[]][] = [
      ...STATES.map((state): [string, string[]] => [state[0], rowLines(state, width)]),
      ...OTHERS.map(([title, lines]): [string, string[]] => [title, lines(width)]),
    ];
    for (const [title, lines] of drawn) {
      for (const line of lines) {
        assert.ok(visibleWidth(line) <= width, `${title}, ${width} columns: ${line}`);
      }
    }
    return [`======== ${width} columns`, ...drawn.flatMap(([title, lines]) =>
      ["", `-------- ${title}`, ...lines.map((line) => line.trimEnd())])];
  });
  const others = LINES.flatMap(([title, lines]) => ["", `-------- ${title}`, ...lines]);
  const text = [...parts, "", "======== lines that pi wraps or cuts", ...others, ""].join("\n");
  if (process.env["EXECD_BLESS"] === "1") writeFileSync(FIXTURE, text);
  assert.equal(text, readFileSync(FIXTURE, "utf8"), "EXECD_BLESS=1 writes fixtures/rows.txt anew");
});
