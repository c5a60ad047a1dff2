/**
 * Calls that say what they wait for: a server, a build that fails, a REPL, a question, two builds.
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { BASH, bash, tmux } from "./lib/bash.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, kill, stdin, turn } from "./lib/model.ts";
import { processesLike } from "./lib/processes.ts";
import { headerOf, outputOf } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";
import { rowOf, Tui } from "./lib/tui.ts";

/** Far longer than any of these waits may take, which have ended by themselves long before. */
const LONG_MS = 600_000;
/** A whole run has ended by then, also on a slow machine. */
const SOON_MS = 60_000;

/** A port that nobody listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A command that serves on this port, some time after its start. */
function serve(port: number): string {
  return `sleep 0.5; exec python3 -u -m http.server ${port} --bind 127.0.0.1`;
}

// rule: waits.md, Three idioms: wait for the port
test("a dev server: the call answers once its port is there, and then its page", async (t) => {
  const place = scratch(t);
  const port = await freePort();
  const run = await runJson(place, {
    script: [
      turn("Serve.", exec(serve(port), {
        // As models write it: the port is a text, the object is one too.
        until: `{"port":"${port}"}`, stop: { regex: "rror" }, yield_time_ms: LONG_MS,
      })),
      turn("Look.", stdin({ until: { http: "/" }, yield_time_ms: LONG_MS })),
      turn("Kill.", kill()),
    ],
  });
  const served = run.toolEnd("exec_command");
  assert.match(served.text, /^\[still running\]\nsession_id: 1\n/);
  assert.match(headerOf(served, "wait") ?? "", new RegExp(`^matched port ${port} \\(python3`));
  assert.match(headerOf(served, "listening") ?? "", new RegExp(`^${port} \\(python3`));
  assert.equal(served.details["wait_status"], "condition_met");
  const looked = run.toolEnd("write_stdin");
  assert.match(headerOf(looked, "wait") ?? "", /^matched http/);
  assert.equal((looked.details["wait"] as { status?: number }).status, 200);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});

// rule: waits.md, until and stop: a mark of failure
test("a build that fails and goes on: its call ends with the first line of the failure", async (t) => {
  const place = scratch(t);
  const build = "echo compiling; sleep 0.4; echo 'Error: no such module'; exec sleep 7500";
  const run = await runJson(place, {
    script: [
      turn("Build.", exec(build, { stop: { regex: "rror" }, yield_time_ms: LONG_MS })),
      turn("Kill.", kill()),
    ],
  });
  const built = run.toolEnd("exec_command");
  assert.equal(headerOf(built, "wait"), "stopped by /rror/ → Error: no such module");
  assert.equal(outputOf(built), "compiling\nError: no such module\n");
  assert.equal(built.details["session_id"], 1);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});

// rule: waits.md, Three idioms: wait for the prompt with each input
test("a REPL: each input is answered when it wants the next one", async (t) => {
  const place = scratch(t);
  const slow = "import time; time.sleep(0.7); print(6 * 7)\\n";
  const asks = { until: { input: true }, yield_time_ms: LONG_MS };
  const run = await runJson(place, {
    script: [
      turn("REPL.", exec("exec python3 -q", { tty: true, ...asks })),
      turn("Ask.", stdin({ chars: slow, ...asks })),
      turn("Leave.", stdin({ chars: "exit()\\n", ...asks })),
    ],
  });
  const started = run.toolEnd("exec_command");
  assert.match(headerOf(started, "wait") ?? "", /^matched input: a (line|key) \(python3/);
  assert.match(headerOf(started, "state") ?? "", /^waiting for a (line|key) \(python3/);
  const asked = run.toolEnd("write_stdin", 0);
  assert.match(outputOf(asked), /^42\r?\n/m);
  assert.match(headerOf(asked, "wait") ?? "", /^matched input/);
  assert.equal(run.toolEnd("write_stdin", 1).details["exit_code"], 0);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});

// rule: waits.md, Impossible: This holds for every wait, also without `until`
test("a question that nobody answers ends a plain wait: the model is told and says yes", async (t) => {
  const place = scratch(t);
  const asks = "read -p 'Go on? [Y/n] ' answer; echo \"it said $answer\"";
  const run = await runJson(place, {
    script: [
      turn("Install.", exec(asks, { tty: true, yield_time_ms: 30_000 })),
      turn("Yes.", stdin({ chars: "y\\n", yield_time_ms: 10_000 })),
      turn("Read stdin.", exec("exec cat", { yield_time_ms: 30_000 })),
      turn("No more.", stdin({ eof: true, yield_time_ms: 10_000 })),
    ],
  });
  const asked = run.toolEnd("exec_command", 0);
  assert.match(outputOf(asked), /^Go on\? \[Y\/n\] $/);
  assert.match(headerOf(asked, "note") ?? "", /^bash waits for a line .*write to it/);
  assert.equal(headerOf(asked, "wait"), "impossible");
  assert.equal(headerOf(asked, "state"), undefined, "the note says it");
  assert.equal(asked.details["wait_status"], "condition_met");
  const answered = run.toolEnd("write_stdin", 0);
  assert.match(outputOf(answered), /it said y\r?\n/);
  assert.equal(answered.details["exit_code"], 0);
  const cat = run.toolEnd("exec_command", 1);
  assert.match(headerOf(cat, "note") ?? "", /^cat waits for a line on stdin.*stdin: "null"$/);
  assert.equal(run.toolEnd("write_stdin", 1).details["exit_code"], 0);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});

// rule: waits.md, wait_for: waits for several sessions of any family at once
test("two builds at once: one wait for both; an end that it tells is told by no wake", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn(
        "Build both.",
        exec("sleep 1; echo built a", { yield_time_ms: 250, on_exit: "wake" }),
        exec("sleep 1.5; echo no b; exit 3", { yield_time_ms: 250, on_exit: "wake" }),
      ),
      turn("Wait.", call("wait_for", { session_ids: "1, 2", mode: "all", timeout_ms: LONG_MS })),
      turn("List.", call("list_sessions")),
      turn("Done."),
    ],
  });
  const { text, details, isError } = run.toolEnd("wait_for");
  assert.equal(isError, false);
  assert.match(text, /built a[^]*no b/);
  assert.equal(text.match(/built a/g)?.length, 2, "in the command and in the output, no more");
  const rows = details["sessions"] as { session_id: number; exit_code?: number; output?: string }[];
  const ends = rows.map(({ session_id, exit_code }) => [session_id, exit_code])
    .sort(([a = 0], [b = 0]) => a - b);
  assert.deepEqual(ends, [[1, 0], [2, 3]]);
  assert.ok(rows.every(({ output }) => output === undefined), "the text has the output");
  assert.match(run.toolEnd("list_sessions").text, /\(no live sessions\)/);
  assert.deepEqual(run.custom("unified-exec-completed"), []);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});

// rule: pi.md, The extension: Rows: calls, output, status lines
test("the TUI: what is waited for counts the seconds, what ended it, Esc", async (t) => {
  const place = scratch(t);
  const port = await freePort();
  const tui = await Tui.start(place, {
    script: [
      turn("Serve.", exec(serve(port), { until: { port }, yield_time_ms: LONG_MS })),
      turn("Ask.", exec("read -p 'Sure? ' a", { tty: true, yield_time_ms: 30_000 })),
      turn("Wait.", call("wait_for", {
        session_ids: [1], until: { text: "never" }, timeout_ms: LONG_MS,
      })),
      turn("Never said."),
    ],
  });
  await tui.submit("go");
  const seconds = (screen: string) =>
    Number(/↻ wait "never" → #1 \([^)]*\) · (\d+)\.\ds/.exec(screen)?.[1]);
  const before = seconds(await tui.waitScreen((screen) => seconds(screen) >= 0));
  await tui.waitScreen((screen) => seconds(screen) > before);
  const all = await tui.scrollback();
  const served = rowOf(all, "$ sleep 0.5;");
  assert.match(served, new RegExp(`until port ${port}`));
  assert.match(served, new RegExp(`^✓ matched port ${port} \\(python3`, "m"));
  assert.match(served, /^waited \d+\.\ds · #1 · /m);
  assert.match(rowOf(all, "$ read -p"), /^impossible: bash waits for a line/m);
  await tui.key("Escape");
  await tui.goneScreen((screen) => seconds(screen) >= 0);
  assert.equal(processesLike(place.tag, /http\.server/).length, 1);
  assert.match(await tui.screen(), /execd: 2 sessions running/);
  await tui.keepScreen("waits");
});

// rule: bash.md, bash and tmux: A foreground command that only input can move on goes on in the
//   background at once; lists and peeks say what a command does
test("bash: a question that nobody answers goes to the background, and its row says what to do", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    args: BASH,
    script: [
      turn("Ask.", bash("seq 1 9; read -p 'Go on? [Y/n] ' a", { tty: true })),
      turn("Look.", tmux("list"), tmux("peek", { window: "@1" })),
      turn("End it.", tmux("kill", { window: "@1" })),
      turn("That was it."),
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/That was it\./);
  await tui.key("C-o");
  await tui.waitScreen(/Tool output: expanded/);
  const all = await tui.scrollback();
  const asked = rowOf(all, "$ seq 1 9").replace(/\s+/g, " ");
  assert.match(asked, /wait: impossible: bash waits for a line on its terminal; nothing else runs 1 2 3/);
  assert.match(asked, /9 Go on\? \[Y\/n\] Still running in background window @1\. It gets no input here:/);
  assert.match(asked, /end it \(tmux kill\) and run it again so that it does not ask/);
  assert.match(all, /seq @1 \(\d+s\) waiting for a line \(bash\)/);
  assert.match(all, /\[waiting for a line \(bash\)\]/);
  assert.match(all, /Killed background window: seq @1\./);
  await tui.keepScreen("bash-waits");
});

// rule: waits.md, The reply: write these names, and those of the state, as all of theirs
test("the stream tools: a server's line, and a REPL's prompt after each input", async (t) => {
  const place = scratch(t);
  const session = "{{lastnum:sessionId: (\\d+)}}";
  const run = await runJson(place, {
    args: ["--exec-tools", "stream"],
    script: [
      turn("Serve.", call("bash_stream", {
        command: "sleep 0.4; echo ready on 3000; exec sleep 7501", yieldMs: LONG_MS,
        until: { text: "ready" },
      })),
      turn("Kill.", call("kill_process", { sessionId: session })),
      turn("REPL.", call("bash_stream", {
        command: "exec python3 -q", stdinMode: "pty", yieldMs: LONG_MS, until: { input: true },
      })),
      turn("Type.", call("write_stdin", { sessionId: session, data: "print(6 * 7)\n" })),
      turn("Look.", call("poll_process", { sessionId: session, until: { input: true } })),
    ],
  });
  const served = run.toolEnd("bash_stream", 0);
  assert.match(served.text, /^wait: matched "ready" → ready on 3000$/m);
  assert.equal((served.details["wait"] as { presentAtEntry?: boolean }).presentAtEntry, false);
  assert.match(run.toolEnd("bash_stream", 1).text, /^wait: matched input: a (line|key)$/m);
  const looked = run.toolEnd("poll_process");
  assert.match(looked.text, /^wait: matched input/m);
  assert.match(looked.text, /^42$/m);
  assert.ok(run.elapsedMs < SOON_MS, `${run.elapsedMs} ms`);
});
