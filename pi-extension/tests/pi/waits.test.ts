/**
 * Calls that say what they wait for: a server, a build that fails, a REPL, a question, two builds.
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { call, exec, kill, stdin, turn } from "./lib/model.ts";
import { headerOf, outputOf } from "./lib/results.ts";
import { scratch } from "./lib/scratch.ts";

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
