/**
 * rpc mode: what ends a wait early, and wakes while pi is idle.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { COMPLETED, STATUS, background } from "./lib/bash.ts";
import { textOf } from "./lib/events.ts";
import { exec, newest, poll, stdin, turn } from "./lib/model.ts";
import { processesLike, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import type { RpcRecord } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";

const WAKE = "unified-exec-completed";
/** How soon a wait must end once somebody wants something else. */
const SOON_MS = 10_000;

// rule: pi.md, The extension: Esc ends the wait, the process lives
test("Esc ends the wait, not the process; the next prompt goes on with it", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      // On a loaded machine the call would else be answered before Esc, since cat waits for input.
      turn("Start.", exec("echo ready; cat; exec sleep 7200", {
        yield_time_ms: 30_000, on_impossible: "wait",
      })),
      turn("Type.", stdin({ chars: "hello\\n", eof: true, yield_time_ms: 1_000 })),
      turn("Poll.", poll(600_000)),
      turn("Poll again.", poll(5_000)),
    ],
  });
  await rpc.say("start");
  const shown = await rpc.waitFor(
    "the output while it runs",
    (one) => /ready/.test(textOf(one.partialResult?.content)),
  );
  assert.equal(shown.partialResult?.details?.["session_id"], 1);
  assert.equal(shown.partialResult?.details?.["running"], true);

  const stopped = await abortDuring("exec_command");
  assert.match(stopped.text, /^\[still running\]\nsession_id: 1\n/);
  assert.match(stopped.text, /\n---\nready\n/);
  assert.equal(stopped.details["session_id"], 1);
  // On a loaded machine bash has said "ready" before cat is there under its own name.
  await waitProcess(place.tag, /^cat$/);

  await rpc.say("go on");
  await waitProcess(place.tag, /^sleep 7200$/);
  const typed = await rpc.toolEnd("write_stdin");
  assert.match(typed.text, /\n---\nhello\n/);
  const [, second] = place.requests();
  const remembered = second?.messages.find((one) => one.toolName === "exec_command");
  assert.match(remembered?.text ?? "", /^session_id: 1$/m);

  await rpc.waitFor("the poll", (one) => one.args?.["yield_time_ms"] === 600_000);
  const polled = await abortDuring("write_stdin");
  assert.equal(polled.details["session_id"], 1);
  for (const { text } of [stopped, polled]) {
    assert.match(text, /^wait_status: cancelled \(the user pressed Esc\)$/m);
  }
  assert.equal(processesLike(place.tag, /^sleep 7200$/).length, 1);
  assert.equal((await rpc.quit()).code, 0);
  assert.equal(processesLike(place.tag, /^sleep 7200$/).length, 0);

  async function abortDuring(tool: string) {
    const from = rpc.mark();
    const start = Date.now();
    await rpc.command("abort");
    const end = await rpc.toolEnd(tool, from);
    await rpc.settled(from);
    assert.ok(end.at - start < SOON_MS, `${end.at - start} ms until the wait ended`);
    assert.equal(end.isError, false);
    return end;
  }
});

// The message of the wake was in pi's queue. In the TUI Esc clears that, and nobody was told; in rpc
// mode it began another run at once. Now the result of the wait that Esc ends tells it.
// rule: pi.md, The extension: Wakes during a run: told at its end, after Esc with the next prompt,
//   never lost; not what a call has told
test("an end during a run that Esc stops is not lost, and begins no run", async (t) => {
  const place = scratch(t);
  const until = "until [ -e go ]; do sleep 0.05; done; exit 5";
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", exec(until, { yield_time_ms: 250, on_exit: "wake" })),
      turn("Wait.", exec("exec sleep 7202", { yield_time_ms: 30_000 })),
      { when: "^and now", text: "I see." },
    ],
  });
  const from = rpc.mark();
  await rpc.say("start");
  await rpc.status("unified-exec.sessions", /^execd: 2 sessions running\b/, from);
  const two = rpc.mark();
  writeFileSync(join(place.cwd, "go"), "");
  await rpc.status("unified-exec.sessions", /^execd: 1 session running\b/, two);
  await rpc.command("abort");
  await rpc.settled(from);
  const told = rpc.toolEnds("exec_command").at(-1)?.text ?? "";
  assert.match(told, /^event: session 1 \(.*\) exited 5, \d+ s ago$/m);
  const asked = place.requests().length;
  await rpc.prompt("and now?");
  assert.equal(place.requests().length, asked + 1, "Esc was not followed by a run of its own");
  const seen = place.requests().at(-1)?.messages
    .filter((one) => /exit_code=5|exited 5/.test(one.text));
  assert.equal(seen?.length, 1);
  assert.equal(rpc.custom(WAKE).length, 0);
  assert.equal((await rpc.quit()).code, 0);
});

// Of several messages pi shows one a run. The others wait in its queue, which Esc clears in the TUI.
// rule: pi.md, The extension: What Esc clears from pi's queue is told again, once
test("what Esc clears from pi's queue is told at the end of the next run, and once", async (t) => {
  const place = scratch(t);
  const until = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;
  const rpc = new Rpc(place, {
    args: ["--exec-tools", "unified,bash"],
    script: [
      turn("Start.", exec(until("go"), { yield_time_ms: 250, on_exit: "wake" }),
        background(until("go"), { name: "window" })),
      { text: "Now tell me.", waitForFile: join(place.cwd, "on") },
      { when: "background session ended", text: "Slowly.", waitForFile: join(place.cwd, "never") },
      { when: "^go on", text: "Going on." },
      { when: "^Background command finished", text: "The window has ended." },
      { when: "^and now", text: "Nothing more." },
    ],
  });
  const from = rpc.mark();
  await rpc.say("start");
  await rpc.status(STATUS, /^1$/, from);
  await rpc.toolEnd("exec_command", from);
  const running = rpc.mark();
  writeFileSync(join(place.cwd, "go"), "");
  await rpc.status(STATUS, undefined, running);
  await rpc.status("unified-exec.sessions", undefined, running);
  writeFileSync(join(place.cwd, "on"), "");
  await rpc.waitFor("the wake", (one) => one.message?.customType === WAKE, running);
  await rpc.command("clear_queue");
  await rpc.command("abort");
  await rpc.settled(running);
  assert.equal(rpc.custom(COMPLETED).length, 0);

  await rpc.prompt("go on");
  assert.equal(rpc.said().at(-1), "The window has ended.");
  await rpc.prompt("and now");
  assert.equal(rpc.said().at(-1), "Nothing more.");
  assert.deepEqual([rpc.custom(WAKE).length, rpc.custom(COMPLETED).length], [1, 1]);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, The extension: A user message ends an attached wait
test("a user's message ends the wait early; a waiting follow-up spoils no later wait", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", exec("exec sleep 7201", { yield_time_ms: 30_000 })),
      { when: "^hurry", text: "Hurrying.", calls: [poll(600_000)] },
      { when: "^enough", text: "Enough then.", calls: [poll(600_000)] },
      turn("Poll on.", poll(5_000)),
      turn("I am done."),
      { when: "^later", text: "Now it is later." },
    ],
  });
  await rpc.say("start");
  await waitProcess(place.tag, /^sleep 7201$/);
  const first = await steerDuring("exec_command", "hurry up");
  assert.match(first.text, /^\[still running\]\nsession_id: 1\n/);

  await rpc.waitFor("the poll", (one) => one.args?.["yield_time_ms"] === 600_000);
  const second = await steerDuring("write_stdin", "enough of that");
  assert.equal(second.details["session_id"], 1);

  const from = rpc.mark();
  await rpc.command("follow_up", { message: "later on" });
  const isLastPoll = (one: RpcRecord) =>
    one.type === "tool_execution_start" && one.args?.["yield_time_ms"] === 5_000;
  const polling = await rpc.waitFor("the last poll", isLastPoll, from);
  const third = await rpc.toolEnd("write_stdin", rpc.records.indexOf(polling));
  assert.ok(third.at - polling.at >= 4_900, `the poll lasted ${third.at - polling.at} ms`);
  await rpc.settled(from);
  assert.deepEqual(rpc.said(), [
    "Start.",
    "Hurrying.",
    "Enough then.",
    "Poll on.",
    "I am done.",
    "Now it is later.",
  ]);
  assert.equal(processesLike(place.tag, /^sleep 7201$/).length, 1);

  async function steerDuring(tool: string, message: string) {
    const from = rpc.mark();
    const start = Date.now();
    await rpc.command("steer", { message });
    const end = await rpc.toolEnd(tool, from);
    assert.ok(end.at - start < SOON_MS, `${end.at - start} ms until the wait ended`);
    assert.equal(end.isError, false);
    await rpc.waitFor("the next turn", (one) => one.type === "tool_execution_start", from);
    assert.equal(newest(place.requests().at(-1)).text, message);
    return end;
  }
});

// rule: pi.md, The extension: A wake is exactly one message without output
test("a wake while pi is idle starts a turn, once", async (t) => {
  const place = scratch(t);
  const wait = "until [ -e go ]; do sleep 0.05; done";
  const rpc = new Rpc(place, {
    script: [
      turn("Start.", exec(wait, { yield_time_ms: 250, on_exit: "wake" })),
      turn("My turn ends."),
      { when: "session_id=1\\b", text: "I was woken." },
      { when: "^and now", text: "Nothing more." },
    ],
  });
  await rpc.prompt("start");
  assert.deepEqual(rpc.custom(WAKE), []);
  const from = rpc.mark();
  writeFileSync(`${place.cwd}/go`, "");
  await rpc.settled(from);
  assert.equal(rpc.custom(WAKE).length, 1);
  assert.match(textOf(rpc.custom(WAKE)[0]?.content), /exit_code=0\b/);
  assert.deepEqual(rpc.said(), ["Start.", "My turn ends.", "I was woken."]);
  await rpc.prompt("and now");
  assert.equal(rpc.custom(WAKE).length, 1);
  assert.equal((await rpc.quit()).code, 0);
});
