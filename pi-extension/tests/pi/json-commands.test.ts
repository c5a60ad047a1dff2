/**
 * json mode: what commands do and what the model is shown of them.
 */
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BASH, bash, tmux } from "./lib/bash.ts";
import type { ToolEnd } from "./lib/events.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, newest, stdin, turn } from "./lib/model.ts";
import { processesOf } from "./lib/processes.ts";
import { headerOf, outputOf } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";
import { STREAM, on } from "./lib/stream.ts";

const UNIFIED_TOOLS = [
  "exec_command",
  "kill_session",
  "list_sessions",
  "wait_for",
  "write_stdin",
];

// rule: pi.md, The extension: Works on pi's real CLI: short commands
test("a short command: header, output, details; what the model reads is the same", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [turn("Run.", exec("echo one; echo two >&2; exit 3")), turn("Done.")],
  });
  assert.equal(run.code, 0, run.stderr);
  const end = run.toolEnd("exec_command");
  const { log_path: log, ...details } = end.details;
  assert.equal(typeof log, "string");
  assert.ok(String(log).startsWith(place.tmp), String(log));
  assert.equal(readFileSync(String(log), "utf8"), "one\ntwo\n");
  assert.equal(end.text, `[exited]\nexit_code: 3\nlog_path: ${log}\n---\none\ntwo\n`);
  assert.equal(end.isError, false, "a command that fails is no failed tool");
  assert.equal(details["exit_code"], 3);
  assert.equal(outputOf(end), "one\ntwo\n");
  assert.equal(details["yield_time_ms"], 10_000);
  assert.equal("session_id" in details, false);
  assert.equal(newest(run.requests[1]).text, end.text);
  assert.deepEqual(run.said(), ["Run.", "Done."]);
});

/** The most characters of the header of what has ended well at once. */
const SMALL_HEADER_CHARS = 40;

// rule: pi.md, The tools: The header of `true` has at most 40 characters
test("true: its header is next to nothing", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, { script: [turn("Run.", exec("true")), turn("Done.")] });
  const { text } = newest(run.requests[1]);
  const [header = "", rest] = text.split("---\n");
  assert.equal(rest, "(no output)");
  assert.match(header, /^\[exited\]\nexit_code: 0\n/);
  assert.ok(header.length <= SMALL_HEADER_CHARS, header);
});

// rule: pi.md, The file execd.jsonc: The full header is there where `header` is `"full"`
test("a short command with the full header: each line of it", async (t) => {
  const place = scratch(t);
  writeFileSync(join(place.agentDir, "execd.jsonc"), '{ "header": "full" }');
  const run = await runJson(place, {
    script: [turn("Run.", exec("echo one; echo two >&2; exit 3")), turn("Done.")],
  });
  const end = run.toolEnd("exec_command");
  const lines = end.text.replace(/(wall_time_seconds: )\d+\.\d{3}/, "$1T")
    .replace(/(chunk_id: )[0-9a-f]{6}\n/, "$1C\n");
  assert.equal(
    lines,
    `[exited]\nexit_code: 3\nlog_path: ${end.details["log_path"]}\ncwd: ${place.cwd}\n`
      + "wall_time_seconds: T\nchunk_id: C\noriginal_token_count: 2\noutput_bytes_total: 8\n"
      + "tty: false\n---\none\ntwo\n",
  );
});

// rule: pi.md, The extension: The built-in bash leaves, and stays with --keep-builtin-bash
test("the tools the model has: bash is gone, and stays with --keep-builtin-bash", async (t) => {
  const [without, kept] = [scratch(t), scratch(t)];
  const script = [turn("Nothing to do.")];
  const first = await runJson(without, { script });
  const second = await runJson(kept, { script, args: ["--keep-builtin-bash"] });
  const others = ["edit", "read", "write"];
  assert.deepEqual(first.requests[0]?.tools, [...UNIFIED_TOOLS, ...others].sort());
  assert.deepEqual(second.requests[0]?.tools, ["bash", ...UNIFIED_TOOLS, ...others].sort());
});

// rule: pi.md, The extension: A command sees what pi's bash would give it
test("a command's environment is what pi's own bash would give it", async (t) => {
  const place = scratch(t);
  const own = "EXECD_SESSION_ID|EXECD_INSTANCE|SHLVL|_";
  const show = `env | grep -vE '^(${own})=' | sort`;
  const run = await runJson(place, {
    args: ["--keep-builtin-bash"],
    env: { GIVEN: "by the user", PI_MODEL: "inherited" },
    script: [
      turn("Both.", exec(show), call("bash", { command: show })),
      turn(
        "More.",
        exec("echo $GIVEN-$MORE; pwd", { env: { MORE: "mine", GIVEN: null }, workdir: ".." }),
      ),
      turn("Done."),
    ],
  });
  const end = run.toolEnd("exec_command");
  assert.equal(outputOf(end).trim(), run.toolEnd("bash").text.trim());
  const env = new Map(outputOf(end).split("\n").map((line) => {
    const at = line.indexOf("=");
    return [line.slice(0, at), line.slice(at + 1)];
  }));
  const session = run.events.find((event) => event.type === "session") as { id?: string };
  assert.equal(env.get("AI_AGENT"), "pi");
  assert.equal(env.get("PI_CODING_AGENT"), "true");
  assert.equal(env.get("PI_PROVIDER"), "faux");
  assert.equal(env.get("PI_MODEL"), "scripted");
  assert.equal(env.get("PI_SESSION_ID"), session.id);
  assert.match(env.get("PI_SESSION_FILE") ?? "", /\.jsonl$/);
  assert.equal(env.get("GIVEN"), "by the user");
  assert.ok(env.get("PATH")?.split(":").includes(`${place.agentDir}/bin`), env.get("PATH"));
  assert.equal(outputOf(run.toolEnd("exec_command", 1)), `-mine\n${place.home}\n`);
});

// rule: pi.md, The extension: 200 KB: truncated, footer, complete log
test("200 KB of output: the tail with a footer, all of it in the log", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn("By lines.", exec("seq 1 40000")),
      turn("By bytes.", exec("for i in $(seq 2000); do printf '%099d\\n' $i; done")),
      turn("One line.", exec("head -c 200000 /dev/zero | tr '\\0' x")),
    ],
  });
  const [lines, bytes, one] = [0, 1, 2].map((n) => run.toolEnd("exec_command", n)) as
    [ToolEnd, ToolEnd, ToolEnd];
  const log = (end: ToolEnd) => readFileSync(String(end.details["log_path"]), "utf8");
  const numbers = Array.from({ length: 40_000 }, (_, n) => String(n + 1));
  assert.equal(log(lines), `${numbers.join("\n")}\n`);
  assert.equal(
    outputOf(lines),
    `${numbers.slice(-2_000).join("\n")}\n\n`
      + `[Showing lines 38001-40000 of 40000. Full output: ${headerOf(lines, "log_path")}]`,
  );
  assert.equal(log(bytes).length, 200_000);
  // 512 lines of 100 bytes are 51,200 bytes, the last line's newline not counted.
  assert.match(outputOf(bytes), /\[Showing lines 1489-2000 of 2000 \(50\.0KB limit\)\. Full /);
  const truncation = bytes.details["truncation"] as Record<string, unknown>;
  assert.equal(truncation["truncatedBy"], "bytes");
  assert.equal(log(one), "x".repeat(200_000));
  assert.match(
    outputOf(one),
    /^x{51200}\n\n\[Showing last 50\.0KB of final line \(line 1 is larger than the 50\.0KB limit\)/,
  );
});

test("a flood: few updates, the tail, and nothing is lost in the log", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [turn("Flood.", exec("yes 0123456789 | head -c 22000000", { yield_time_ms: 30_000 }))],
  });
  const end = run.toolEnd("exec_command");
  assert.equal(end.details["exit_code"], 0);
  assert.equal(end.details["output_bytes_total"], 22_000_000);
  assert.match(outputOf(end), /^(0123456789\n){2000}\n\[Showing lines /);
  assert.equal(statSync(String(end.details["log_path"])).size, 22_000_000);
  const updates = run.events.filter((event) => event.type === "tool_execution_update").length;
  const most = 4 * Number(end.details["wall_time_seconds"]) + 4;
  assert.ok(updates <= most, `${updates} updates, at most ${most} were to be`);
});

// rule: pi.md, The extension: A restarted daemon gets --first-session-id; old ids reach nobody
test("a resumed conversation: its old session ids belong to nobody else", async (t) => {
  const place = scratch(t);
  const begin = exec("exec sleep 7114", { yield_time_ms: 250 });
  const script = [
    turn("Start.", begin, begin),
    turn("Done."),
    turn("Once more.", begin),
    turn("The old one.", call("write_stdin", { session_id: 2, chars: "x" })),
    turn("Done."),
  ];
  const first = await runJson(place, { script });
  const ids = first.toolEnds("exec_command").map((end) => end.details["session_id"]);
  assert.deepEqual(ids.sort(), [1, 2]);
  const second = await runJson(place, { script, args: ["--continue"] });
  assert.ok(second.requests.at(-1)?.messages.some((one) => one.text === "Once more."));
  assert.equal(second.toolEnd("exec_command").details["session_id"], 3);
  assert.equal(second.toolEnd("write_stdin").text, "unknown session_id: 2");
});

// rule: pi.md, The extension: Spawn failure, unknown session, bad input: the originals' words
test("what goes wrong is said in so many words", async (t) => {
  const place = scratch(t);
  const write = (args: Record<string, unknown>) => call("write_stdin", args);
  const run = await runJson(place, {
    script: [
      turn("No shell.", exec("echo hi", { shell: "nosuchshell" })),
      turn("No directory.", exec("echo hi", { workdir: "missing" })),
      turn(
        "Nobody.",
        write({ session_id: 9, chars: "x" }),
        call("kill_session", { session_id: 9 }),
      ),
      turn("Both.", write({ session_id: 9, chars: "x", chars_b64: "eA==" })),
      turn("Bad.", write({ session_id: 9, chars_b64: "***" })),
      turn("Signal.", call("kill_session", { session_id: 9, signal: "FOO" })),
    ],
  });
  const shell = run.toolEnd("exec_command", 0);
  assert.match(shell.text, /^\[exited\]\nexit_code: -1\n/);
  const reason = "spawn nosuchshell: ENOENT: No such file or directory";
  assert.equal(headerOf(shell, "failure"), reason);
  assert.equal(shell.details["failure_message"], reason);
  assert.match(headerOf(run.toolEnd("exec_command", 1), "failure") ?? "", /ENOENT/);
  const wrong = run.toolEnds("write_stdin");
  assert.deepEqual(wrong.map((end) => [end.isError, end.text.split(". (")[0]]), [
    [true, "unknown session_id: 9"],
    [true, "write_stdin: pass either `chars` or `chars_b64`, not both."],
    [true, "write_stdin: `chars_b64` is not valid base64"],
  ]);
  const [nobody, signal] = run.toolEnds("kill_session");
  assert.equal(nobody?.isError, false);
  assert.equal(nobody?.details["found"], false);
  assert.equal(signal?.isError, true);
  assert.match(signal?.text ?? "", /^unknown signal "FOO" \(/);
});

// rule: pi.md, The extension: What was detached on purpose stays
test("sessions end with pi; what was detached on purpose is left alone", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn(
        "Three.",
        exec("exec sleep 7110", { yield_time_ms: 250 }),
        exec("trap '' TERM; while :; do sleep 0.2; done; exec sleep 7111", { yield_time_ms: 250 }),
        exec("setsid sleep 7112 >/dev/null 2>&1 & sleep 7113", { yield_time_ms: 500 }),
      ),
      turn("Enough."),
    ],
  });
  assert.deepEqual(
    run.toolEnds("exec_command").map((end) => typeof end.details["session_id"]),
    ["number", "number", "number"],
  );
  // pi's exit means that they are gone: nothing is waited for here.
  const left = processesOf(place.tag).map((one) => one.command);
  assert.deepEqual(left, ["sleep 7112"]);
});

// pi kept the message of an error alone, and gave it no details.
// rule: pi.md, The tools: details of every result have operation, status and running, of errors too
test("a call that fails has details: what was called, that it failed, whether its session runs", async (t) => {
  const run = await runJson(scratch(t), {
    script: [
      turn("", exec("exec sleep 7330", { yield_time_ms: 250 })),
      ...[
        stdin({ chars_b64: "?" }), call("kill_session", { session_id: 1, signal: "NO" }),
        call("write_stdin", { session_id: 9 }), exec("true", { nonsense: 1 }),
      ].map((one) => turn("", one)),
      turn("Done."),
    ],
  });
  const failed = run.toolEnds().filter(({ isError }) => isError).map(({ details }) => details);
  const ofOne = { status: "error", running: true, session_id: 1 };
  assert.deepEqual(failed, [
    { ...ofOne, operation: "write_stdin" },
    { ...ofOne, operation: "kill_session" },
    { operation: "write_stdin", status: "error", running: false, session_id: 9 },
    { operation: "exec_command", status: "error", running: false },
  ]);
  const kept = run.events.filter(({ type }) => type === "message_end").map(({ message }) => message)
    .filter((message) => message?.role === "toolResult" && message.isError === true);
  assert.deepEqual(kept.map((message) => message?.details), failed, "what pi keeps");
  const wrong = [turn("", bash("exit 3")), turn("", tmux("peek", { window: "@9" })), turn("Done.")];
  const bashes = await runJson(scratch(t), { args: BASH, script: wrong });
  assert.deepEqual(bashes.toolEnds().map(({ details }) => details), [
    { operation: "bash", status: "failed", running: false, exit_code: 3 },
    { operation: "tmux", status: "error", running: false },
  ]);
  const write = turn("", on("write_stdin", { sessionId: 9, data: "x" }));
  const streams = await runJson(scratch(t), { args: STREAM, script: [write, turn("Done.")] });
  assert.deepEqual(streams.toolEnds().map(({ details }) => details), [
    { operation: "write_stdin", status: "error", running: false, sessionId: 9 },
  ]);
});
