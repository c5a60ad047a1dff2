/**
 * Deaths without a word: pi's, and execd's.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { startJson } from "./lib/json.ts";
import { bash } from "./lib/bash.ts";
import { call, exec, newest, turn } from "./lib/model.ts";
import { processesLike, processesOf, waitNone, waitNoneLike, waitProcess }
  from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import { STREAM, bash as bashStream } from "./lib/stream.ts";
import { Tui } from "./lib/tui.ts";
import { until } from "./lib/waiting.ts";

const EXECD = /\/execd\b/;

const start = (cmd: string, args: Record<string, unknown> = {}) =>
  exec(cmd, { yield_time_ms: 250, ...args });

// rule: pi.md, The extension: pi killed: nothing is left after 2 s
test("pi ended by SIGKILL: no process of any session is left after 2 s", (t) =>
  endedBy(t, "SIGKILL"));

// rule: pi.md, The extension: pi killed: nothing is left after 2 s
test("pi ended by SIGINT: no process of any session is left after 2 s", (t) =>
  endedBy(t, "SIGINT"));

async function endedBy(t: TestContext, signal: "SIGKILL" | "SIGINT"): Promise<void> {
  const place = scratch(t);
  const pi = startJson(place, {
    script: [
      turn(
        "All kinds.",
        start("exec sleep 7300"),
        start("trap '' TERM HUP; while :; do sleep 0.2; done; : 7301"),
        start("set -m; sleep 7302 & sleep 7303 & wait"),
        start("trap '' HUP; exec sleep 7304", { tty: true }),
      ),
      turn("And wait.", exec("exec sleep 7305", { yield_time_ms: 30_000 })),
    ],
  });
  await waitProcess(place.tag, /^sleep 7305$/);
  const marks = processesOf(place.tag).map((one) => /730\d/.exec(one.command)?.[0]);
  assert.deepEqual(
    [...new Set(marks.filter((one) => one !== undefined))].sort(),
    ["7300", "7301", "7302", "7303", "7304", "7305"],
  );
  pi.signal(signal);
  await pi.end();
  t.diagnostic(`all gone ${await waitNone(place.tag, 10_000)} ms after pi`);
}

test("execd killed while pi is held for a wake: pi ends, nothing is left", async (t) => {
  const place = scratch(t);
  const pi = startJson(place, {
    script: [
      turn("Start.", start("exec sleep 7306", { on_exit: "wake" })),
      turn("My turn ends."),
    ],
  });
  await until("pi to be held", () => /execd: waiting for #1 /.test(pi.stderr));
  assert.equal(processesLike(place.tag, /^sleep 7306$/).length, 1, "pi is held");
  for (const one of processesLike(place.tag, EXECD)) process.kill(one.pid, "SIGKILL");
  const killed = Date.now();
  assert.equal((await pi.end()).code, 0);
  assert.ok(Date.now() - killed < 10_000, `${Date.now() - killed} ms until pi ended`);
  await waitNone(place.tag, 10_000);
});

// rule: pi.md, The extension: The daemon dies: pending calls fail, the next call starts afresh and
//   says so once
test("execd killed: the call fails with one message, the next one works and says so", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("One.", start("exec sleep 7310")),
      turn("Two.", exec("exec sleep 7311", { yield_time_ms: 30_000 })),
      turn("Again.", exec("echo back")),
      turn("Old.", call("write_stdin", { session_id: 1, chars: "x" })),
      turn("New.", start("exec sleep 7312")),
      turn("Last.", exec("echo still")),
      turn("Done."),
    ],
  });
  await rpc.say("start");
  await waitProcess(place.tag, /^sleep 7311$/);
  const killed = processesLike(place.tag, EXECD);
  assert.ok(killed.length > 0);
  for (const one of killed) process.kill(one.pid, "SIGKILL");
  await rpc.settled(0);
  const [one, two, again, fresh, still] = rpc.toolEnds("exec_command");
  assert.equal(one?.details["session_id"], 1);
  assert.equal(two?.isError, true);
  assert.match(two?.text ?? "", /execd.*(killed|SIGKILL)/i);
  assert.equal(again?.isError, false);
  assert.match(again?.text ?? "", /\nback\n/);
  const old = rpc.toolEnds("write_stdin")[0];
  assert.equal(old?.isError, true);
  assert.match(old?.text ?? "", /^unknown session_id: 1/);
  assert.ok(Number(fresh?.details["session_id"]) > 2, "old ids never reach a new session");
  assert.match(still?.text ?? "", /\nstill\n/);
  const told = [...rpc.toolEnds().map((end) => end.text), ...rpc.notices().map((n) => n.text)];
  const sayings = told.filter((text) => /(earlier|before).* gone/.test(text));
  assert.equal(sayings.length, 1, told.join("\n\n"));
  await waitNoneLike(place.tag, /^sleep 731[01]$/, 10_000);
  await rpc.status("unified-exec.sessions", /^execd: 1 session running\b/);
  assert.equal((await rpc.quit()).code, 0);
  assert.deepEqual(processesOf(place.tag), []);
});

// The row showed what had come, and then one sentence in its place; the model learnt neither that
// there had been output nor where all of it lies.
// rule: pi.md, The extension: execd dies during a call: what the call had shown stays, with the log's path
test("execd killed in the middle of a call: its output so far and its log are not lost", async (t) => {
  const line = "seq 3; printf '\\033[31mhalf'; exec sleep 7313";
  const calls = [
    { args: [], call: exec(line, { yield_time_ms: 30_000 }) },
    { args: STREAM, call: bashStream(line, { yieldMs: 30_000 }) },
    { args: ["--exec-tools", "bash"], call: bash(line) },
  ];
  for (const { args, call } of calls) {
    const place = scratch(t);
    const tui = await Tui.start(place, { args, script: [turn("Go.", call), turn("Lost.")] });
    await tui.submit("go");
    await tui.waitScreen(/^ *3\n *half\n/m);
    // execd tells of the log a moment after the start.
    await tui.waitScreen(args === STREAM ? /elapsed \d+\.\ds/ : /log: |Elapsed [1-9]/);
    for (const one of processesLike(place.tag, EXECD)) process.kill(one.pid, "SIGKILL");
    const screen = await tui.waitScreen(/Lost\./);
    assert.match(screen, /^ *3\n *half\n/m);
    assert.match(screen, /^ *execd was killed by SIGKILL\. Its sessions are gone; the next call/m);
    const { text, isError } = newest(place.requests().at(-1));
    assert.ok(isError);
    const [said = "", shown] = args[1] === "bash" ? text.split("\n\n").reverse() : text.split("\n---\n");
    assert.equal(shown, "1\n2\n3\nhalf");
    assert.match(said, /^execd was killed by SIGKILL\. Its sessions are gone; the next call starts/);
    if (args !== STREAM) assert.match(said, /\nlog_path: \/\S+\.log$/);
  }
});

// The row and the model were left with one sentence, that did not even say which session it was.
// rule: pi.md, The extension: execd does not answer an Esc: what the call had shown stays, with its session
test("execd stands still when Esc comes: the call tells its session and its output so far", async (t) => {
  const place = scratch(t);
  const script = [turn("Go.", exec("seq 3; exec sleep 7314", { yield_time_ms: 30_000 })), turn("On.")];
  const tui = await Tui.start(place, { script });
  await tui.submit("go");
  // By then the session is known here, and not only to execd.
  await tui.waitScreen(/^ *3\n[^]*#1[^]*execd: 1 session running/m);
  const { pid } = await waitProcess(place.tag, /\/execd( |$)/);
  process.kill(pid, "SIGSTOP");
  await tui.key("Escape");
  const screen = await tui.waitScreen(/execd has not answered within 3 s/);
  process.kill(pid, "SIGCONT");
  assert.match(screen, /^ *2\n *3\n/m);
  await tui.submit("and?");
  await tui.waitScreen(/On\./);
  const results = place.requests().at(-1)?.messages.filter(({ role }) => role === "toolResult");
  const [result] = results ?? [];
  assert.ok(result?.isError);
  assert.match(result.text, /^execd has not answered [^]*\nsession_id: 1\nlog_path: \S+\n---\n1\n2\n3$/);
});
