/**
 * rpc mode with the stream tools: Esc and messages during a wait, and the commands for people.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { textOf } from "./lib/events.ts";
import { newest, turn } from "./lib/model.ts";
import { processesLike, processesOf, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { placedOutput } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";
import { bash, on, STREAM } from "./lib/stream.ts";

/** Esc is answered within this time, and by then all of it is gone. */
const ESC_MS = 1_000;
/** As many chunks as a call sends take two seconds, and a minute on a machine that is very busy. */
const FLOOD_MS = 120_000;

// rule: pi.md, The extension: Esc ends the whole session within 1 s, and never hangs on a
//   grandchild that holds the pipe
test("Esc ends the whole command, silent or not, and what is polled", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: STREAM,
    script: [
      turn("Loud.", bash("trap '' INT TERM HUP; echo up; sleep 7310 & sleep 7310")),
      turn("Silent.", bash("sleep 7311")),
      turn("Start.", bash("sleep 7312", { yieldMs: 1_000 })),
      turn("Poll.", on("poll_process", { waitMs: 1_800_000 })),
      turn("Never."),
    ],
  });
  await rpc.say("loud");
  await rpc.waitFor("its output", (one) => /up/.test(textOf(one.partialResult?.content)));
  const loud = await abortDuring("bash_stream", /^sleep 7310$/);
  assert.equal(placedOutput(loud), "up\n");
  assert.match(loud.text, /\n---\nup\n\n\[The user pressed Esc: /);

  await rpc.say("silent");
  await waitProcess(place.tag, /^sleep 7311$/);
  await abortDuring("bash_stream", /^sleep 7311$/);
  const [, second] = place.requests();
  const remembered = second?.messages.find((one) => one.toolName === "bash_stream");
  assert.match(remembered?.text ?? "", /The user pressed Esc/);

  await rpc.say("polled");
  await rpc.waitFor("the poll", (one) => one.args?.["waitMs"] === 1_800_000);
  await abortDuring("poll_process", /^sleep 7312$/);
  assert.equal((await rpc.quit()).code, 0);

  async function abortDuring(tool: string, victim: RegExp) {
    const from = rpc.mark();
    const start = Date.now();
    await rpc.command("abort");
    const end = await rpc.toolEnd(tool, from);
    assert.ok(end.at - start < ESC_MS, `${end.at - start} ms until Esc was answered`);
    assert.deepEqual(processesLike(place.tag, victim), []);
    await rpc.settled(from);
    assert.deepEqual([end.isError, end.details["signal"]], [false, "SIGKILL"]);
    return end;
  }
});

test("a user's message ends the wait, not the command", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: STREAM,
    script: [
      turn("Start.", bash("exec sleep 7320")),
      { when: "^hurry", text: "Hurrying.", calls: [on("poll_process", { waitMs: 1_800_000 })] },
      { when: "^enough", text: "Enough." },
    ],
  });
  await rpc.say("start");
  await waitProcess(place.tag, /^sleep 7320$/);
  await rpc.command("steer", { message: "hurry up" });
  const first = await rpc.toolEnd("bash_stream");
  assert.deepEqual([first.details["status"], first.details["sessionId"]], ["running", 1]);
  assert.match(first.text, /A message from the user ended this wait/);
  const from = rpc.mark();
  await rpc.waitFor("the poll", (one) => one.args?.["waitMs"] === 1_800_000);
  await rpc.command("steer", { message: "enough of that" });
  const second = await rpc.toolEnd("poll_process");
  assert.equal(second.details["status"], "running");
  await rpc.settled(from);
  assert.equal(newest(place.requests().at(-1)).text, "enough of that");
  assert.equal(processesLike(place.tag, /^sleep 7320$/).length, 1);
  assert.equal((await rpc.quit()).code, 0);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash-stream.md, The stream family: At most 10,000 chunks a call; then
//   tool_execution_truncated, once, and never as output
test("the end of live output is told beside the output, not in it", async (t) => {
  const place = scratch(t);
  const flood = bash("while :; do echo x; echo x >&2; done", { yieldMs: 120_000 });
  const script = [turn("Flood.", flood), turn("Never.")];
  const rpc = new Rpc(place, { args: STREAM, script });
  await rpc.say("flood");
  const last = await rpc.waitFor(
    "the end of live output",
    (one) => one.partialResult?.details?.["liveEnded"] === true,
    undefined,
    FLOOD_MS,
  );
  assert.match(textOf(last.partialResult?.content), /^[x\n]+$/);
  await rpc.command("abort");
  const end = await rpc.toolEnd("bash_stream");
  assert.equal(end.details["signal"], "SIGKILL");
  assert.ok(!("liveEnded" in end.details));
  assert.equal((await rpc.quit()).code, 0);
});

test("/jobs, /tail and /kill; the footer counts", async (t) => {
  const place = scratch(t);
  const KEY = "unified-exec.sessions";
  const rpc = new Rpc(place, {
    args: STREAM,
    script: [
      turn(
        "Both.",
        bash("seq 1 500; exit 3"),
        bash("echo up; exec sleep 7330", { yieldMs: 1_000 }),
      ),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  await rpc.status(KEY, /^execd: 1 session running\b/);
  const isUp = (label: string) => /^#\d \d+s echo up; exec sleep 7330$/.test(label);
  let from = rpc.mark();
  const options = await rpc.choose("/jobs", (all) => all.find(isUp));
  assert.equal(options.length, 2, options.join("\n"));
  assert.ok(isUp(options[0] ?? ""), "what runs comes first");
  assert.match(options[1] ?? "", /^#\d \d+s seq 1 500; exit 3 · exit 3$/);
  const shown = await rpc.notice(/^#\d \d+s echo up/, from);
  assert.deepEqual(shown.kind, "info");
  assert.match(shown.text, /\nup\nlog: \S+\.log$/);

  from = rpc.mark();
  await rpc.choose("/jobs", () => undefined);
  assert.deepEqual(rpc.notices(from), [], "Esc shows nothing");

  const [ended, running] = [options[1], options[0]].map((label) => label?.slice(1, 2));
  from = rpc.mark();
  await rpc.say(`/tail ${ended} 3`);
  const tail = await rpc.notice(/last 3 lines/, from);
  assert.match(tail.text, /^#\d \d+s .* · exit 3 · last 3 lines\n498\n499\n500\nlog: /);
  from = rpc.mark();
  await rpc.say(`/tail ${ended}`);
  assert.equal((await rpc.notice(/last 200 lines/, from)).text.split("\n").length, 202);
  await rpc.say("/tail");
  await rpc.notice(/^execd: usage: \/tail ID \[LINES\]/, from);

  from = rpc.mark();
  await rpc.say(`/kill ${running}`);
  await rpc.notice(/^execd: ended #\d echo up; exec sleep 7330$/, from);
  assert.deepEqual(processesLike(place.tag, /^sleep 7330$/), []);
  await rpc.status(KEY, undefined, from);
  await rpc.say(`/kill ${running}`);
  await rpc.notice(/^execd: #\d .* · signal SIGTERM: it had ended already$/, from);
  await rpc.say("/kill 99");
  await rpc.notice(/^execd: no session #99$/, from);
  assert.equal((await rpc.quit()).code, 0);
});

test("unified and stream asked for together: one notice, the first is used", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    env: { PI_EXECD_TOOLS: "stream,unified" },
    script: [turn("Hi.")],
  });
  const from = 0;
  await rpc.notice(/unified and stream|stream and unified both have write_stdin; stream, /, from);
  await rpc.prompt("start");
  const tools = place.requests()[0]?.tools ?? [];
  assert.ok(tools.includes("bash_stream") && !tools.includes("exec_command"), tools.join());
  assert.equal((await rpc.quit()).code, 0);
});
