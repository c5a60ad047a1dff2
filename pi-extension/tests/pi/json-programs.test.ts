/**
 * json mode: programs that go on: servers, builds, REPLs, readers of stdin.
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { ToolEnd } from "./lib/events.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, kill, LAST_SESSION, poll, stdin, turn } from "./lib/model.ts";
import { waitNone } from "./lib/processes.ts";
import { outputOf } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// rule: pi.md, The extension: A dev server is polled, driven and killed
test("a dev server: started, asked by curl, polled, listed, killed", async (t) => {
  const place = scratch(t);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const run = await runJson(place, {
    script: [
      turn(
        "Serve.",
        exec(`exec python3 -u -m http.server ${port} --bind 127.0.0.1`, { yield_time_ms: 250 }),
      ),
      turn("Ask.", exec(`until curl -sf ${url} -o /dev/null; do sleep 0.05; done; echo answered`)),
      turn("Poll.", poll()),
      turn("List.", call("list_sessions")),
      turn("Kill.", kill()),
      turn("Ask again.", exec(`curl -s ${url}; echo status=$?`)),
      turn("List.", call("list_sessions")),
    ],
  });
  const server = run.toolEnd("exec_command", 0);
  assert.match(server.text, /^\[still running\]\nsession_id: 1\n/);
  assert.equal(server.details["session_id"], 1);
  assert.equal("exit_code" in server.details, false);
  assert.equal(outputOf(run.toolEnd("exec_command", 1)), "answered\n");
  const polled = run.toolEnd("write_stdin");
  assert.match(outputOf(polled), /"GET \/ HTTP\/1\.1" 200/);
  assert.equal(polled.details["session_id"], 1);
  assert.equal(polled.details["yield_time_ms"], 5_000);
  const listed = run.toolEnd("list_sessions", 0);
  assert.match(listed.text, /^unified-exec sessions \(1 live, 0 just exited\):\n/);
  assert.match(listed.text, /http\.server/);
  const killed = run.toolEnd("kill_session");
  assert.match(killed.text, /^Killed session 1 \(pid \d+\) with SIGTERM — signal=SIGTERM/);
  assert.equal(killed.details["killed"], true);
  assert.equal(outputOf(run.toolEnd("exec_command", 2)), "status=7\n", "nobody listens any more");
  assert.match(run.toolEnd("list_sessions", 1).text, /\(no live sessions\)/);
  await waitNone(place.tag, 10_000);
});

// rule: pi.md, The extension: A long build is polled once
test("a long build: one long poll answers at its end with all that is new", async (t) => {
  const place = scratch(t);
  const build = "for i in 1 2 3 4; do echo step $i; sleep 0.4; done; echo built; exit 4";
  const run = await runJson(place, {
    script: [
      turn("Build.", exec(build, { yield_time_ms: 250 })),
      turn("Wait.", poll(1_800_000)),
      turn("It said {{last:exit_code: (\\d+)}}."),
    ],
  });
  const [started, built] = [run.toolEnd("exec_command"), run.toolEnd("write_stdin")];
  assert.equal(built.details["yield_time_ms"], 1_800_000);
  assert.equal(built.details["exit_code"], 4);
  assert.equal("session_id" in built.details, false);
  assert.equal(
    outputOf(started) + outputOf(built),
    "step 1\nstep 2\nstep 3\nstep 4\nbuilt\n",
    "nothing is lost and nothing is told twice",
  );
  const updates = run.events.filter((event) => event.type === "tool_execution_update");
  const ends = run.events.filter((event) => event.type === "tool_execution_end");
  const late = updates.filter((update) => ends.some((end) =>
    end.toolCallId === update.toolCallId && run.events.indexOf(update) > run.events.indexOf(end)));
  assert.ok(updates.some((update) => update.partialResult?.details?.["session_id"] === 1));
  assert.deepEqual(late, [], "no progress after the end");
  assert.ok(run.elapsedMs < 30_000, `${run.elapsedMs} ms for a build of 1.6 s`);
  assert.deepEqual(run.said().at(-1), "It said 4.");
});

/** The milliseconds of a poll of a chatty command; PI_TESTS_CHATTY_MS asks for a longer one. */
const CHATTY_MS = Number(process.env["PI_TESTS_CHATTY_MS"] ?? 13_000);
/** Updates a second in the first seconds, and how many of these there are; then there is one. */
const LIVE = { aSecond: 4, seconds: 10 };

// rule: pi.md, What you see: updates come four times a second for 10 s, then once, and only where
//   something has changed
test("a chatty poll: few updates, each with the output once; a silent wait has one", async (t) => {
  const place = scratch(t);
  const chatty = "while :; do echo a line of some forty characters, again; sleep 0.02; done";
  const run = await runJson(place, {
    script: [
      turn("Chat.", exec(chatty, { yield_time_ms: 250 })),
      turn("Wait.", poll(CHATTY_MS)),
      turn("Be silent.", exec("sleep 2.5; true", { yield_time_ms: 30_000 })),
      turn("Done."),
    ],
  });
  const ends = run.events.filter((event) => event.type === "tool_execution_end");
  const [, polled, silent] = ends.map(({ toolCallId }) => run.events.filter((event) =>
    event.type === "tool_execution_update" && event.toolCallId === toolCallId));
  const bytes = JSON.stringify(polled).length;
  t.diagnostic(`${polled?.length} updates, ${bytes} bytes in ${CHATTY_MS} ms`);
  const late = Math.max(0, CHATTY_MS / 1_000 - LIVE.seconds);
  const most = LIVE.aSecond * LIVE.seconds + late + 2;
  assert.ok(polled !== undefined && polled.length >= 5 && polled.length <= most, `${polled?.length}`);
  for (const update of polled) {
    const { content, details } = update.partialResult ?? {};
    assert.equal(details?.["output"], undefined, "the output stands in the text alone");
    assert.equal(details?.["session_id"], 1);
    assert.deepEqual(details?.["output_at"], [0, content?.[0]?.text?.length ?? 0]);
    assert.ok(JSON.stringify(update).length < 6_000, "an update is small");
  }
  assert.ok((silent?.length ?? 0) <= 2, `${silent?.length} updates of a silent command`);
});

// rule: pi.md, The extension: PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS is read at each call
test("the cap of empty polls is the environment's", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    env: { PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS: "6000" },
    script: [turn("Start.", exec("sleep 1", { yield_time_ms: 250 })), turn("Wait.", poll(900_000))],
  });
  assert.equal(run.toolEnd("write_stdin").details["yield_time_ms"], 6_000);
});

// rule: pi.md, The extension: A Python REPL in a PTY, with Ctrl-C
test("a Python REPL on a terminal: print, Ctrl-C, resize, exit", async (t) => {
  const place = scratch(t);
  const size = "import os; print('SIZE', *os.get_terminal_size())\\n";
  const run = await runJson(place, {
    args: ["--exec-tools", "unified,more"],
    script: [
      turn("REPL.", exec("exec python3 -q", { tty: true, yield_time_ms: 1_500 })),
      turn("Print.", stdin({ chars: "print(6*7)\\n", yield_time_ms: 1_000 })),
      turn("Sleep.", stdin({ chars: "import time; time.sleep(600)\\n", yield_time_ms: 500 })),
      turn("Stop.", stdin({ chars: "\\x03", yield_time_ms: 1_000 })),
      turn("Resize.", call("resize_session", { session_id: LAST_SESSION, cols: 91, rows: 33 })),
      turn("Size.", stdin({ chars: size, yield_time_ms: 1_000 })),
      turn("Exit.", stdin({ chars: "exit()\\n", yield_time_ms: 10_000 })),
    ],
  });
  assert.match(outputOf(run.toolEnd("exec_command")), />>> ?$/);
  assert.equal(run.toolEnd("exec_command").details["tty"], true);
  const [printed, slept, stopped, sized, left] = [0, 1, 2, 3, 4].map((n) =>
    run.toolEnd("write_stdin", n),
  ) as [ToolEnd, ToolEnd, ToolEnd, ToolEnd, ToolEnd];
  assert.match(outputOf(printed), /^print\(6\*7\)\n42\n/);
  assert.doesNotMatch(outputOf(slept), />>>/, "it sleeps");
  assert.match(outputOf(stopped), /KeyboardInterrupt/);
  assert.equal(run.toolEnd("resize_session").isError, false);
  assert.match(outputOf(sized), /SIZE 91 33/);
  assert.equal(left.details["exit_code"], 0);
  assert.doesNotMatch(run.toolEnds().map((end) => end.text).join(""), /\x1b/);
});

// rule: pi.md, The extension: Base64 input and loose types
test("input: exact bytes in base64, end of input, loose types; wakes armed later", async (t) => {
  const place = scratch(t);
  const bytes = Buffer.from([0, 255, 10, 27, 92]).toString("base64");
  const run = await runJson(place, {
    args: ["--exec-tools", "unified,more"],
    script: [
      turn("Dump.", exec("exec od -An -tx1", { yield_time_ms: "250" })),
      turn("Arm.", call("set_on_exit", { session_id: "1", on_exit: "wake" })),
      turn("Disarm.", call("set_on_exit", { session_id: 1, on_exit: "none" })),
      turn("Bytes.", call("write_stdin", { session_id: "1", chars_b64: bytes, eof: "true" })),
      turn("No input.", exec("cat; echo end", { stdin: "null" })),
    ],
  });
  assert.equal(run.toolEnd("exec_command").details["yield_time_ms"], 250);
  assert.equal(run.toolEnd("set_on_exit", 0).details["status"], "armed");
  assert.equal(run.toolEnd("set_on_exit", 1).details["status"], "disarmed");
  assert.equal(outputOf(run.toolEnd("write_stdin")), " 00 ff 0a 1b 5c\n");
  assert.equal(run.toolEnd("write_stdin").details["exit_code"], 0);
  assert.equal(outputOf(run.toolEnd("exec_command", 1)), "end\n");
});
