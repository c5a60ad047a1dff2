/**
 * The harness itself: the real pi, offline, with its own bash and no extension of ours.
 */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { toolEnds } from "./lib/events.ts";
import { runJson, startJson } from "./lib/json.ts";
import { call, EXHAUSTED, newest, turn } from "./lib/model.ts";
import { processesLike, waitNone, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import { Tui } from "./lib/tui.ts";
import { until } from "./lib/waiting.ts";

const bash = (command: string) => call("bash", { command });

test("json: the script is played, its placeholders are filled, requests are kept", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    extensions: [],
    script: [
      turn("Look.", bash("echo number=42; pwd; echo $HOME; echo $GIVEN")),
      turn("It is {{last:number=(\\d+)}}.", bash("exit 3")),
    ],
    prompt: "please look",
    env: { GIVEN: "by the test" },
  });
  assert.equal(run.code, 0, run.stderr);
  const shown = `number=42\n${place.cwd}\n${place.home}\nby the test\n`;
  assert.equal(run.toolEnd("bash", 0).text, shown);
  assert.equal(run.toolEnd("bash", 1).isError, true);
  assert.deepEqual(run.said(), ["Look.", "It is 42.", EXHAUSTED]);
  assert.equal(run.requests.length, 3);
  assert.deepEqual(run.requests[0]?.tools, ["bash", "edit", "read", "write"]);
  assert.deepEqual(newest(run.requests[0]), { role: "user", text: "please look" });
  assert.equal(newest(run.requests[1]).text, shown);
  t.diagnostic(`pi ran for ${run.elapsedMs} ms`);
});

test("json: a turn waits for a file, `when` picks a turn, a signal ends pi", async (t) => {
  const place = scratch(t);
  const pi = startJson(place, {
    extensions: [],
    script: [
      { text: "for later", when: "never said" },
      { text: "slow", waitForFile: place.path("made"), calls: [bash("echo first")] },
      { text: "chosen", when: "^first", calls: [bash("echo here; exec sleep 7100")] },
      { text: "not yet" },
    ],
  });
  await until("the request", () => place.requests().length === 1);
  assert.deepEqual(toolEnds(pi.journal.records), []);
  writeFileSync(place.path("made"), "");
  await waitProcess(place.tag, /^sleep 7100$/);
  pi.signal("SIGKILL");
  assert.deepEqual(await pi.end(), { code: null, signal: "SIGKILL" });
  assert.equal(newest(place.requests()[1]).text, "first\n");
  assert.equal(processesLike(place.tag, /^sleep 7100$/).length, 1, "pi's own bash leaves it");
});

test("a scratch place takes everything with it", async (t) => {
  const place = scratch(t);
  await runJson(place, {
    extensions: [],
    script: [turn("Leave one.", bash("setsid sleep 7101 >/dev/null 2>&1 &"))],
  });
  await waitProcess(place.tag, /^sleep 7101$/);
  await place.close();
  await waitNone(place.tag, 0);
  assert.equal(existsSync(place.dir), false);
});

test("rpc: prompts, events, abort, the end of input", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    extensions: [],
    script: [turn("Run.", bash("echo one")), turn("Done."), turn("Wait.", bash("sleep 7102"))],
  });
  await rpc.prompt("first");
  assert.equal(rpc.toolEnds("bash")[0]?.text, "one\n");
  assert.deepEqual(rpc.said(), ["Run.", "Done."]);
  const from = rpc.mark();
  await rpc.say("second");
  await waitProcess(place.tag, /^sleep 7102$/);
  await rpc.command("abort");
  await rpc.settled(from);
  assert.match((await rpc.toolEnd("bash", from)).text, /Command aborted/);
  await assert.rejects(rpc.command("fork", { entryId: "none" }), /fork was refused/);
  assert.equal((await rpc.quit()).code, 0);
});

test("TUI: typing, keys, the screen, the exit", async (t) => {
  const place = scratch(t);
  const started = Date.now();
  const tui = await Tui.start(place, {
    extensions: [],
    script: [turn("Counting.", bash("seq 1 9")), turn("Counted it all.")],
  });
  t.diagnostic(`pi's screen was there after ${Date.now() - started} ms`);
  await tui.submit("count please");
  const folded = await tui.waitScreen(/Counted it all\./);
  assert.match(folded, /4 earlier lines/);
  await tui.key("C-o");
  await tui.goneScreen(/earlier lines/);
  assert.match(await tui.screenAnsi(), /\x1b\[/);
  assert.equal(tui.exited(), undefined);
  await tui.key("C-d");
  assert.equal(await tui.waitExit(), 0);
  await waitNone(place.tag, 10_000);
});
