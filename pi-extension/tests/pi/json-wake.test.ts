/**
 * json mode ends when pi settles: an armed wake holds it until the model was told.
 */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { textOf } from "./lib/events.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, kill, newest, poll, turn } from "./lib/model.ts";
import { EXTENSION_DIR, FIXTURES_DIR, piCommand } from "./lib/paths.ts";
import { processesOf } from "./lib/processes.ts";
import { piArguments, scratch } from "./lib/scratch.ts";
import { PATIENCE_MS, until } from "./lib/waiting.ts";

const WAKE = "unified-exec-completed";

// rule: pi.md, The extension: In -p and json mode an armed wake holds agent_end, at most
//   --exec-hold-seconds
test("a wake holds the run; the model is told once, without the output", async (t) => {
  const place = scratch(t);
  const cmd = "sleep 1; echo $((6*7))0042; exit 5";
  const run = await runJson(place, {
    script: [
      turn("Start.", exec(cmd, { yield_time_ms: 250, on_exit: "wake" })),
      turn("I end my turn."),
      { when: "session_id=1", text: "I was woken." },
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.toolEnd("exec_command").text, /^completion_notification: armed$/m);
  const wakes = run.custom(WAKE);
  assert.equal(wakes.length, 1);
  const text = textOf(wakes[0]?.content);
  assert.match(text, /session_id=1\b/);
  assert.match(text, /exit_code=5\b/);
  assert.ok(text.includes(cmd), text);
  assert.ok(text.includes(place.cwd), text);
  assert.ok(text.includes(String(run.toolEnd("exec_command").details["log_path"])), text);
  assert.doesNotMatch(text, /420042/, "no output");
  assert.equal(wakes[0]?.display, true);
  assert.deepEqual(run.said(), ["Start.", "I end my turn.", "I was woken."]);
  assert.equal(newest(run.requests[2]).text, text);
  assert.equal(run.requests.length, 3);
});

// rule: pi.md, The extension: Simultaneous wakes are one message
test("who saw the end, or ended it, is not woken; two ends at once are one message", async (t) => {
  const place = scratch(t);
  const wake = { yield_time_ms: 250, on_exit: "wake" };
  const whenThere = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done; sleep 0.5`;
  const run = await runJson(place, {
    script: [
      turn("Seen.", exec("sleep 1", wake)),
      turn("See it.", poll()),
      turn("Killed.", exec("exec sleep 7120", wake)),
      turn("Kill it.", kill()),
      turn(
        "Two.",
        exec(whenThere("go"), wake),
        exec(whenThere("go"), wake),
        exec("exec sleep 7121", { yield_time_ms: 250 }),
      ),
      turn("Let go.", exec("touch go")),
      turn("My turn ends."),
      { when: "session_id=3[^]*session_id=4|session_id=4[^]*session_id=3", text: "Both!" },
      { when: "session_id=\\d", text: "Woken otherwise." },
    ],
  });
  assert.equal(run.toolEnd("write_stdin").details["exit_code"], 0);
  assert.equal(run.toolEnd("kill_session").details["killed"], true);
  assert.equal(run.custom(WAKE).length, 1, JSON.stringify(run.custom(WAKE)));
  assert.deepEqual(run.said().slice(-2), ["My turn ends.", "Both!"]);
  assert.deepEqual(processesOf(place.tag), [], "a session without a wake holds nothing");
});

// rule: pi.md, The extension: A result that pi makes an error gives the wake back
test("an exit that pi made an error was not told: the wake comes after all", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    extensions: [join(FIXTURES_DIR, "failing-results.ts"), EXTENSION_DIR],
    script: [
      turn("Start.", exec("sleep 1; exit 6", { yield_time_ms: 250, on_exit: "wake" })),
      turn("See it.", poll()),
      turn("My turn ends."),
      { when: "session_id=1\\b", text: "I was woken." },
    ],
  });
  assert.equal(run.toolEnd("write_stdin").isError, true);
  assert.equal(run.custom(WAKE).length, 1);
  assert.match(textOf(run.custom(WAKE)[0]?.content), /exit_code=6\b/);
  assert.equal(run.said().at(-1), "I was woken.");
});

// rule: pi.md, The extension: In -p and json mode an armed wake holds agent_end, at most
//   --exec-hold-seconds
test("pi -p waits for a wake too, and prints the answer to it", async (t) => {
  const place = scratch(t);
  const options = {
    script: [
      turn("Start.", exec("sleep 1", { yield_time_ms: 250, on_exit: "wake" })),
      turn("My turn ends."),
      { when: "session_id=1\\b", text: "I was woken." },
    ],
  };
  const [program, ...first] = piCommand();
  const args = [...first, "-p", ...piArguments(options), "go"];
  const pi = promisify(execFile)(program, args, {
    cwd: place.cwd,
    env: place.environment(options),
    timeout: PATIENCE_MS,
  });
  pi.child.stdin?.end();
  const { stdout } = await pi;
  assert.equal(stdout.trim().split("\n").at(-1), "I was woken.");
});

// With PI_CLI a pi 1.5, which waits for the hold before it ends: it could not be ended for 600 s.
for (const [signal, code] of [["SIGTERM", 143], ["SIGHUP", 129]] as const) {
  // rule: pi.md, The extension: What holds agent_end says so on stderr, and ends with the run that
  //   a signal aborts
  test(`pi -p that waits says so, and ${signal} ends it`, async (t) => {
    const place = scratch(t);
    const options = {
      script: [
        turn("Start.", exec("exec sleep 7124", { yield_time_ms: 250, on_exit: "wake" })),
        turn("My turn ends."),
      ],
    };
    const [program, ...first] = piCommand();
    const pi = spawn(program, [...first, "-p", ...piArguments(options), "go"], {
      cwd: place.cwd,
      env: place.environment(options),
      stdio: ["ignore", "pipe", "pipe"],
    });
    place.atEnd(() => { pi.kill("SIGKILL"); });
    const output = { stdout: "", stderr: "" };
    let ending: unknown[] | undefined;
    pi.stdout.on("data", (data) => { output.stdout += String(data); });
    pi.stderr.on("data", (data) => { output.stderr += String(data); });
    pi.on("close", (...how) => { ending = how; });
    await until("the line that says what pi waits for", () => output.stderr.includes("Ctrl-C"));
    assert.equal(output.stdout, "");
    assert.match(output.stderr, /^execd: the answer so far:\nMy turn ends\.$/m);
    assert.match(output.stderr, /^execd: waiting for #1 exec sleep 7124, at most 600 s; Ctrl-C ends$/m);
    pi.kill(signal);
    assert.deepEqual(await until("pi's end", () => ending), [code, null]);
    assert.equal(output.stdout.split("My turn ends.").length - 1, 1, "stdout has the answer once");
    assert.deepEqual(processesOf(place.tag), []);
  });
}

// rule: pi.md, What the model learns of ends: a wake that waits is not sent where a result has told
//   its end
test("a wake during another call: that wait is not cut short, and its result tells the end", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn("Start.", exec("sleep 1", { yield_time_ms: 250, on_exit: "wake" })),
      turn("Something else.", exec("sleep 2.5; echo slept")),
      turn("My turn ends."),
      { when: "background session ended", text: "I was woken." },
    ],
  });
  const { details, text } = run.toolEnd("exec_command", 1);
  assert.equal(details["exit_code"], 0);
  assert.match(text, /^event: session 1 \(sleep 1\) exited 0, \d+ s ago\n---\nslept\n$/m);
  assert.deepEqual(run.custom(WAKE), []);
  assert.deepEqual(run.said(), ["Start.", "Something else.", "My turn ends."]);
});

test("a wake after a wake: pi stays as long as one is armed", async (t) => {
  const place = scratch(t);
  const wake = (seconds: number) =>
    exec(`sleep ${seconds}`, { yield_time_ms: 250, on_exit: "wake" });
  const run = await runJson(place, {
    script: [
      turn("Two.", wake(0.8), wake(2.5)),
      turn("My turn ends."),
      { when: "session_id=1\\b", text: "The first." },
      { when: "session_id=2\\b", text: "The second." },
    ],
  });
  assert.deepEqual(run.said(), ["Two.", "My turn ends.", "The first.", "The second."]);
});

// rule: pi.md, The extension: In -p and json mode an armed wake holds agent_end, at most
//   --exec-hold-seconds
test("--exec-hold-seconds gives up in time", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: ["--exec-hold-seconds", "1"],
    script: [
      turn("Long.", exec("exec sleep 7122", { yield_time_ms: 250, on_exit: "wake" })),
      turn("My turn ends."),
    ],
  });
  const ended = Date.now();
  assert.equal(run.code, 0, run.stderr);
  const last = run.events.filter((event) => event.type === "message_end").at(-1);
  // By pi's own clock: a busy machine reads the event late.
  const held = ended - (last?.message?.timestamp ?? Infinity);
  assert.ok(held >= 1_000, `held for ${held} ms`);
  assert.ok(held < 30_000, `held for ${held} ms`);
  assert.deepEqual(run.custom(WAKE), []);
  assert.deepEqual(run.said(), ["Long.", "My turn ends."]);
  assert.deepEqual(processesOf(place.tag), []);
});

test("what was never armed holds nothing, even when set_on_exit disarmed it", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: ["--exec-tools", "unified,more"],
    script: [
      turn("Long.", exec("exec sleep 7123", { yield_time_ms: 250, on_exit: "wake" })),
      turn("Not so.", call("set_on_exit", { session_id: 1, on_exit: "none" })),
      turn("My turn ends."),
    ],
    patienceMs: 20_000,
  });
  assert.equal(run.toolEnd("set_on_exit").details["status"], "disarmed");
  assert.equal(run.code, 0);
  assert.deepEqual(run.custom(WAKE), []);
  assert.deepEqual(processesOf(place.tag), []);
});
