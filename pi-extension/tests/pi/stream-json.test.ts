/**
 * json mode with the stream tools: what commands do and what the model is shown of them.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { call, newest, turn } from "./lib/model.ts";
import { EXTENSION_DIR, FIXTURES_DIR } from "./lib/paths.ts";
import { processesOf } from "./lib/processes.ts";
import { placedOutput } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";
import { bash, on, STREAM } from "./lib/stream.ts";

const STREAM_TOOLS = [
  "bash_stream",
  "get_process_log",
  "kill_process",
  "list_processes",
  "poll_process",
  "write_stdin",
];

// rule: pi.md, The extension: The stream surface: six tools in the real pi; unified and stream
//   exclude each other
test("a short command: facts, streams apart, details; the model reads the same", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: STREAM,
    script: [turn("Run.", bash("echo one; echo two >&2; exit 3")), turn("Done.")],
  });
  assert.equal(run.code, 0, run.stderr);
  const tools = run.requests[0]?.tools ?? [];
  assert.deepEqual(tools.filter((name) => STREAM_TOOLS.includes(name)), STREAM_TOOLS);
  assert.equal(tools.includes("bash"), false);
  const end = run.toolEnd("bash_stream");
  const { logPath: log, durationMs, pid, startedAt, ...details } = end.details;
  assert.deepEqual(details, {
    operation: "bash_stream",
    status: "failed",
    running: false,
    sessionId: 1,
    exitCode: 3,
    output_at: [end.text.indexOf("stdout:\n"), end.text.length],
  });
  assert.deepEqual([typeof pid, typeof startedAt], ["number", "string"]);
  assert.equal(readFileSync(String(log), "utf8"), "one\ntwo\n");
  assert.equal(end.isError, false, "a command that fails is no failed tool");
  assert.equal(
    end.text,
    `[failed]\nsessionId: 1\nexitCode: 3\ndurationMs: ${durationMs}\nlogPath: ${log}\n---\n`
      + "stdout:\none\nstderr:\ntwo\n",
  );
  assert.equal(newest(run.requests[1]).text, end.text);
});

// rule: pi.md, The extension: The stream surface: six tools in the real pi; unified and stream
//   exclude each other
test("yielded, driven, polled to its end, read from its log", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: [...STREAM, "--bash-yield-ms", "1000"],
    env: { PI_BASH_YIELD_MS: "100000" },
    script: [
      turn("Start.", bash("echo ready; read line; echo got $line; for i in 1 2 3; do sleep 0.3; echo $i; done; exit 5")),
      turn("See.", on("poll_process")),
      turn("Type.", on("write_stdin", { data: "i" })),
      turn("Type bytes.", on("write_stdin", { data: { base64: btoa("t\n") } })),
      turn("Wait.", on("poll_process", { maxDrainMs: 20_000 })),
      turn("To the end.", on("poll_process", { waitMs: "600000" })),
      turn("List.", call("list_processes")),
      turn("Log.", on("get_process_log", { sessionId: 1, offset: 6, limit: 7 })),
      turn("Done."),
    ],
  });
  const started = run.toolEnd("bash_stream");
  assert.equal(started.details["status"], "running");
  assert.match(started.text, /^\[running\]\nsessionId: 1\npid: \d+\n[^]*\n---\nready\n\n(\[bash waits .*\]\n\n)?\[(Still |This is the end )/);
  const polls = run.toolEnds("poll_process");
  assert.deepEqual(polls.map((end) => [end.details["status"], placedOutput(end)]), [
    ["running", "ready\n"],
    ["running", "got it\n"],
    ["failed", "ready\ngot it\n1\n2\n3\n"],
  ]);
  assert.equal(polls.at(-1)?.details["exitCode"], 5);
  assert.deepEqual(
    run.toolEnds("write_stdin").map((end) => end.text.split(".")[0]),
    ["wrote 1 byte", "wrote 2 bytes"],
  );
  assert.match(run.toolEnd("list_processes").text, /^- sessionId 1 · failed · exitCode 5 · /m);
  const page = run.toolEnd("get_process_log");
  assert.equal(placedOutput(page), "got it\n");
  assert.match(page.text, /^\[log of sessionId 1, bytes 6 to 13 of 19; next page: offset 13\]\n/);
});

// rule: bash-stream.md, The stream family: `PI_EXECD_NO_LOG`: pi's execd keeps no logs
test("without a disk: no log anywhere, memory serves the pages; what is forgotten is told", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: STREAM,
    env: { PI_EXECD_NO_LOG: "1", PI_BASH_JOBS_KEPT: "1", PI_BASH_MAX_OUTPUT_CHARS: "4" },
    script: [
      turn("One.", bash("echo first")),
      turn("Two.", bash("seq 3; echo err >&2")),
      turn("Log.", on("get_process_log", { stream: "stdout" })),
      turn("List.", call("list_processes")),
      turn("Done."),
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  const second = run.toolEnds("bash_stream")[1];
  assert.equal(second?.details["logPath"], undefined);
  assert.match(second?.text ?? "", /\[\.\.\. 2 characters omitted\]/);
  assert.equal(placedOutput(run.toolEnd("get_process_log")), "1\n2\n3\n");
  const list = run.toolEnd("list_processes");
  const rest = "forgotten: 1 that ended earlier (what has ended is listed for 30m, the last 1)";
  assert.equal(list.text.split("\n").at(-1), rest);
  assert.doesNotMatch(list.text, / log /);
  const left = readdirSync(place.tmp, { recursive: true }).map(String);
  assert.deepEqual(left.filter((name) => name.endsWith(".log")), []);
});

test("live updates: the newest output, who runs, at a bounded pace", async (t) => {
  const place = scratch(t);
  const loop = "for i in $(seq 1 200); do echo line $i; echo err $i >&2; sleep 0.005; done";
  const run = await runJson(place, { args: STREAM, script: [turn("Loop.", bash(loop))] });
  const updates = run.events.filter((event) => event.type === "tool_execution_update");
  const outputs = updates.map((event) => event.partialResult?.content?.[0]?.text ?? "");
  const end = run.toolEnd("bash_stream");
  const most = Number(end.details["durationMs"]) / 250 + 3;
  assert.ok(updates.length >= 3 && updates.length <= most, `${updates.length} of ${most}`);
  assert.equal(outputs[0], "");
  const log = readFileSync(String(end.details["logPath"]), "utf8");
  // An update has the newest output, of what is long the end.
  for (const output of outputs) assert.ok(log.includes(output), output);
  assert.ok(log.startsWith(outputs.find((output) => output !== "") ?? "none"));
  assert.match(outputs.at(-1) ?? "", /line \d+\n[^]*err \d+\n/);
  assert.equal(updates.at(-1)?.partialResult?.details?.["sessionId"], 1);
  assert.equal(updates.at(-1)?.partialResult?.details?.["pid"], end.details["pid"]);
  const isEnd = run.events.findIndex((event) => event.type === "tool_execution_end");
  assert.ok(run.events.slice(isEnd).every((event) => event.type !== "tool_execution_update"));
});

test("killed: all of it; a time limit; what goes wrong is said", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: STREAM,
    script: [
      turn("Start.", bash("trap '' TERM HUP; sleep 7300 & sleep 7300", { yieldMs: 1_000 })),
      turn("Kill.", on("kill_process")),
      turn("Limit.", bash("echo begun; sleep 7301", { timeoutMs: 300 })),
      turn(
        "Nobody.",
        call("poll_process", { sessionId: 9 }),
        call("kill_process", { sessionId: 9 }),
      ),
      turn("No directory.", bash("true", { workdir: "missing" })),
      turn("No input.", bash("wc -c", { stdinMode: "null" })),
      turn("Slow.", bash("while :; do echo x; sleep 0.05; done", { yieldMs: 1_000 })),
      turn("If late.", on("poll_process", { killIf: "timeout", waitMs: 200 })),
      turn("Leave.", bash("exec sleep 7302", { yieldMs: 1_000 })),
      turn("Done."),
    ],
  });
  const killed = run.toolEnd("kill_process");
  assert.deepEqual(
    [killed.details["status"], killed.details["signal"]],
    ["failed", "SIGKILL"],
  );
  const late = run.toolEnd("bash_stream", 1);
  assert.deepEqual([late.details["timedOut"], placedOutput(late)], [true, "begun\n"]);
  const wrong = [run.toolEnd("poll_process"), run.toolEnd("kill_process", 1)];
  for (const end of wrong) {
    assert.deepEqual([end.isError, end.text], [true, "unknown sessionId: 9"]);
  }
  assert.match(run.toolEnd("bash_stream", 2).text,
    /^\[failed\]\nsessionId: \d+\nexitCode: -1\nerror: .*ENOENT/);
  assert.equal(placedOutput(run.toolEnd("bash_stream", 3)), "0\n");
  const ended = run.toolEnd("poll_process", 1);
  assert.deepEqual([ended.details["status"], ended.details["signal"]], ["failed", "SIGKILL"]);
  // pi's exit means that they are gone: nothing is waited for here.
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: pi.md, The extension: Live chunks go to onUpdate, both notifications to pi.events
test("other extensions are told on pi's event bus", async (t) => {
  const place = scratch(t);
  await runJson(place, {
    args: STREAM,
    extensions: [EXTENSION_DIR, join(FIXTURES_DIR, "event-listener.ts")],
    script: [turn("Run.", bash("echo hi; sleep 7303", { yieldMs: 1_000 })), turn("Done.")],
  });
  const lines = readFileSync(place.path("events.jsonl"), "utf8").trim().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { name: string; data: object });
  assert.deepEqual(events.map((one) => one.name), [
    "tool_execution_output",
    "tool_execution_progress",
  ]);
  const [output, progress] = events.map((one) => one.data as Record<string, unknown>);
  assert.deepEqual(
    [output?.["sessionId"], output?.["stream"], output?.["chunk"]],
    [1, "stdout", "hi\n"],
  );
  assert.deepEqual([progress?.["sessionId"], progress?.["lastOutputTail"]], [1, "hi\n"]);
});

// rule: bash-stream.md, The stream family: What comes later still is told by later polls and pages,
//   with `late: true`
test("output after the shell: waited for while work goes on, told later when it was not", async (t) => {
  const place = scratch(t);
  const holder = "mkfifo gate done; (read -r _ <gate; echo later; echo >done) & echo early";
  const run = await runJson(place, {
    args: STREAM,
    script: [
      // The answer went before node had begun to run.
      turn("Filter.", bash(`seq 3 > >("${process.execPath}" -e "process.stdin.pipe(process.stdout)")`)),
      turn("Leave one.", bash(holder)),
      turn("Go on.", bash("echo >gate; cat done")),
      turn("What came?", call("poll_process", { sessionId: 2 })),
      turn("Its log.", call("get_process_log", { sessionId: 2 })),
      turn("Done."),
    ],
  });
  const [filtered, left] = run.toolEnds("bash_stream");
  assert.ok(filtered && left);
  assert.equal(placedOutput(filtered), "1\n2\n3\n");
  const log = String(left.details["logPath"]);
  const pids = left.details["backgroundPids"] as number[];
  assert.match(left.text, /\n---\nearly\n\n\[Still running in the background: pid /);
  assert.ok(left.text.endsWith(`pid ${pids.join(", ")}; poll_process with sessionId 2 tells what `
    + `comes later (log: ${log}); kill_process ends what runs]`), left.text);
  const told = run.toolEnd("poll_process");
  assert.equal(told.details["late"], true);
  assert.match(told.text, /\n---\nearly\nlater\n\n\[Some of this came after the command had ended /);
  assert.ok(told.text.includes(` had ended (log: ${log})]`), told.text);
  assert.match(run.toolEnd("get_process_log").text,
    /; some of it came after the command had ended\]\n---\nearly\nlater\n$/);
});
