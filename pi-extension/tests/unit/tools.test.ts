/** The unified tools under a minimal stub of pi, against the real execd. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { type Pace, Updates, paceOf } from "../../src/tools/updates.ts";
import { outputOf, Pi, type Result, runs, textOf, until } from "./lib.ts";

/** A test with a pi and an execd of its own: what ends in one is told to no call of another. */
function alone(test: (pi: Pi) => Promise<void>): () => Promise<void> {
  return async () => {
    const pi = new Pi();
    pi.flags["exec-tools"] = "unified,more";
    await pi.start();
    try {
      await test(pi);
    } finally {
      await pi.shutdown();
    }
  };
}

describe("the unified tools", { concurrency: 8 }, () => {
  // rule: pi.md, The extension: Runs under a minimal stub of pi
  // rule: pi.md, The tools: What is rarely used is a set of its own
  it("registers the tools that were asked for and takes pi's bash away", alone(async (pi) => {
    const names = ["exec_command", "write_stdin", "wait_for", "kill_session", "list_sessions"];
    assert.deepEqual([...pi.tools.keys()], [...names, "set_on_exit", "resize_session"]);
    assert.deepEqual(pi.active, ["read", "edit"]);
    assert.deepEqual(pi.notices, []);
  }));

  // rule: pi.md, The extension: Runs under a minimal stub of pi
  // rule: pi.md, The extension: details are the daemon's fields; content is header, output, footer
  it("exec_command: header, output, details", alone(async (pi) => {
    const result = await pi.call("exec_command", { cmd: "echo one; echo two >&2; exit 3" });
    assert.match(textOf(result), /^\[exited\]\nexit_code: 3\n[^]*\n---\none\ntwo\n$/);
    const { exit_code, cwd, yield_time_ms, tty, log_path } = result.details;
    assert.deepEqual(
      { exit_code, output: outputOf(result), cwd, yield_time_ms, tty },
      {
        exit_code: 3,
        output: "one\ntwo\n",
        cwd: process.cwd(),
        yield_time_ms: 10_000,
        tty: false,
      },
    );
    assert.equal(readFileSync(log_path, "utf8"), "one\ntwo\n");
    assert.ok(!("header" in result.details) && !("session_id" in result.details));
  }));

  it("no output reads (no output)", alone(async (pi) => {
    assert.match(textOf(await pi.call("exec_command", { cmd: "true" })), /\n---\n\(no output\)$/);
  }));

  // rule: pi.md, The extension: Base64 input and loose types
  // rule: pi.md, The tools: A parameter that a tool does not have is refused by its name
  it("loose types are coerced, null parameters are dropped, unknown ones are refused",
    alone(async (pi) => {
    const result = await pi.call("exec_command", {
      cmd: "tput cols; echo $N", tty: "true", cols: "77", yield_time_ms: "5000.7", rows: null,
      env: { N: 5 }, stdin: undefined, invented: null,
    });
    assert.equal(outputOf(result), "77\n5\n");
    assert.equal(result.details.yield_time_ms, 5000);
    assert.equal(outputOf(await pi.call("exec_command", { command: "echo as elsewhere" })),
      "as elsewhere\n");
    for (const [tool, params, named] of [
      ["exec_command", { cmd: "true", invented: 1 }, /invented/],
      ["exec_command", { cmdd: "true" }, /^Error: cmdd: unknown param of exec_command; did you mean cmd/],
      ["exec_command", { cmd: "true", command: "true" }, /command/],
      ["write_stdin", { session: 5 }, /session/],
    ] as const) {
      await assert.rejects(pi.call(tool, params), named);
    }
  }));

  /**
   * Params that the extension gives by itself stood in the errors for models, and were taken from
   * them; an id under its camelCase name was not mended.
   */
  // rule: pi.md, The tools: A parameter that a tool does not have is refused by its name
  it("a model is not told of what the extension itself sends, and cannot send it",
    alone(async (pi) => {
    for (const [tool, params, message] of [
      ["kill_session", { session_id: "1", by: "the user" },
        "by: unknown param of kill_session; it takes session_id, signal"],
      ["exec_command", { cmd: "true", header: "full" },
        /^header: unknown param of exec_command; it takes cmd, workdir, yield_time_ms, until, stop, /],
      ["write_stdin", { sessionId: "9999" }, "unknown session_id: 9999"],
      ["write_stdin", { sessionId: "#9999", timeoutMs: "5" }, "unknown session_id: 9999"],
      ["list_sessions", { peek: true }, "peek: unknown param of list_sessions; it takes none"],
      ["write_stdin", { id: 1 }, "id: unknown param of write_stdin; did you mean session_id?"],
      ["exec_command", { cmd: "true", command_prefix: "x" }, /^(?!.*command_prefix,)/],
    ] as const) {
      await assert.rejects(pi.call(tool, params), { message });
    }
    const given = { cmd: "true", on_impossible: "wait", raw_output: true };
    assert.equal((await pi.call("exec_command", given)).details.exit_code, 0);
  }));

  it("drives a session: yields, writes, polls, ends", alone(async (pi) => {
    const started = await pi.call("exec_command", { cmd: "cat", yield_time_ms: 250 });
    const session_id = started.details.session_id;
    assert.match(textOf(started), new RegExp(`^\\[still running\\]\nsession_id: ${session_id}\n`));
    const echoed = await pi.call("write_stdin", { session_id, chars: "hi\\n\\x41" });
    assert.equal(outputOf(echoed), "hi\nA");
    const b64 = Buffer.from("\u0001xyz\n").toString("base64");
    const raw = await pi.call("write_stdin", { session_id: String(session_id), chars_b64: b64 });
    assert.match(outputOf(raw), /xyz/);
    const ended = await pi.call("write_stdin", { session_id, eof: true, yield_time_ms: 20_000 });
    assert.equal(ended.details.exit_code, 0);
    await assert.rejects(pi.call("write_stdin", { session_id }), {
      message: `unknown session_id: ${session_id}`,
    });
  }));

  // rule: pi.md, The extension: Spawn failure, unknown session, bad input: the originals' words
  it("errors are thrown with the words the originals have", alone(async (pi) => {
    await assert.rejects(pi.call("write_stdin", { session_id: 9999 }), {
      message: "unknown session_id: 9999",
    });
    const both = { session_id: 9999, chars: "a", chars_b64: "YQ==" };
    await assert.rejects(pi.call("write_stdin", both), {
      message: "write_stdin: pass either `chars` or `chars_b64`, not both.",
    });
    const bad = { session_id: 9999, chars_b64: "a*b" };
    await assert.rejects(pi.call("write_stdin", bad), /`chars_b64` is not valid base64\./);
    // The signal's name is checked before the id.
    const signal = { session_id: 9999, signal: "FOO" };
    await assert.rejects(pi.call("kill_session", signal), /^Error: unknown signal "FOO" \(/);
  }));

  // rule: pi.md, The extension: kill_session of an unknown id resolves with found false
  it("kill_session: an unknown id is no error; a live one is ended with its output",
    alone(async (pi) => {
    const unknown = await pi.call("kill_session", { session_id: 9999 });
    assert.equal(unknown.details.found, false);
    const cmd = "echo alive; sleep 300";
    const { details } = await pi.call("exec_command", { cmd, yield_time_ms: 250 });
    const { session_id } = details;
    const killed = await pi.call("kill_session", { session_id });
    assert.match(textOf(killed), /^Killed session \d+ \(pid \d+\) with SIGTERM — signal=SIGTERM/);
    assert.equal(killed.details.killed, true);
  }));

  it("list_sessions shows what runs; set_on_exit and resize_session answer in words",
    alone(async (pi) => {
    const params = { cmd: "sleep 301", tty: true, yield_time_ms: 250, name: "nap" };
    const { details: { session_id } } = await pi.call("exec_command", params);
    const listed = await pi.call("list_sessions");
    assert.match(textOf(listed), /sleep 301/);
    const armed = await pi.call("set_on_exit", { session_id, on_exit: "wake" });
    assert.equal(textOf(armed), `session ${session_id}: armed`);
    const off = await pi.call("set_on_exit", { session_id, on_exit: "none" });
    assert.equal(textOf(off), `session ${session_id}: disarmed`);
    const size = await pi.call("resize_session", { session_id, cols: 100, rows: 40 });
    assert.equal(textOf(size), `session ${session_id}: 100x40`);
    await pi.call("kill_session", { session_id });
  }));

  // rule: pi.md, The extension: Spawn failure, unknown session, bad input: the originals' words
  it("a spawn failure is a result, a missing directory too", alone(async (pi) => {
    const shell = await pi.call("exec_command", { cmd: "true", shell: "nosuchshell" });
    assert.match(shell.details.failure_message, /nosuchshell: ENOENT/);
    assert.equal(shell.details.exit_code, -1);
    const dir = await pi.call("exec_command", { cmd: "true", workdir: "no/such/dir" });
    assert.match(dir.details.failure_message, /ENOENT/);
  }));

  // rule: pi.md, The extension: workdir is ctx.cwd resolved
  it("workdir counts from pi's directory, and ~ is the home", alone(async (pi) => {
    const relative = await pi.call("exec_command", { cmd: "pwd", workdir: "tests" });
    assert.equal(outputOf(relative), `${process.cwd()}/tests\n`);
    const home = await pi.call("exec_command", { cmd: "pwd", workdir: "~" });
    assert.equal(home.details.cwd, process.env.HOME);
  }));

  // rule: pi.md, The extension: A command sees what pi's bash would give it
  it("the environment is pi's at that moment", alone(async (pi) => {
    process.env.EXECD_TEST_LATER = "set after the daemon's start";
    const cmd = "echo $EXECD_TEST_LATER; echo $AI_AGENT $PI_CODING_AGENT ${PI_SESSION_ID-none}; "
      + 'echo "${LANG-unset}"';
    const result = await pi.call("exec_command", { cmd, env: { LANG: null } });
    assert.equal(outputOf(result), "set after the daemon's start\npi true none\nunset\n");
    delete process.env.EXECD_TEST_LATER;
    const unset = "echo ${EXECD_TEST_LATER-gone}";
    assert.equal(outputOf(await pi.call("exec_command", { cmd: unset })), "gone\n");
  }));

  // rule: pi.md, The extension: 200 KB: truncated, footer, complete log
  it("200 KB: the tail, its footer, and the complete log", alone(async (pi) => {
    const cmd = "yes 0123456789012345678901234567890123456789012345678 | head -c 200000";
    const result = await pi.call("exec_command", { cmd });
    const { truncation, log_path } = result.details;
    assert.deepEqual([truncation.truncatedBy, truncation.totalLines], ["bytes", 4000]);
    const footer = `[Showing lines 2977-4000 of 4000 (50.0KB limit). Full output: ${log_path}]`;
    assert.ok(textOf(result).endsWith(`\n\n${footer}`), textOf(result).slice(-200));
    assert.equal(readFileSync(log_path).length, 200_000);
  }));

  // What showed updates did not know of a silent command which session it was, until it had ended.
  // rule: pi.md, The extension: onUpdate has the session's id from the first one on
  it("the first onUpdate has the session's id, also where the command is silent",
    alone(async (pi) => {
    const shown = new Map<string, Result[]>();
    const onUpdate = (id: string) => (update: Result) =>
      shown.set(id, [...(shown.get(id) ?? []), update]);
    const first = (id: string) => shown.get(id)?.[0]?.details;
    const cmd = "sleep 303";
    const ids = ["a", "b", "c"];
    const calls = await Promise.all(ids.map((id) =>
      pi.call("exec_command", { cmd, yield_time_ms: 600 }, { id, onUpdate: onUpdate(id) })));
    for (const [at, id] of ids.entries()) {
      const { session_id } = calls[at]?.details ?? {};
      assert.ok(session_id !== undefined, textOf(calls[at] as Result));
      // The log is named once it is there.
      const { pid, log_path: _, ...details } = first(id) as unknown as Record<string, unknown>;
      assert.deepEqual({ ...details, pid: typeof pid }, {
        session_id, pid: "number", running: true, total_bytes: 0, tty: false, command: cmd,
        cwd: process.cwd(), output_at: [0, 0],
      });
    }
    const { session_id } = calls[1]?.details ?? {};
    const poll = { session_id, chars: "x", yield_time_ms: 250 };
    await pi.call("write_stdin", poll, { onUpdate: onUpdate("poll") });
    assert.equal(first("poll")?.session_id, session_id);
    await Promise.all(calls.map(({ details }) =>
      pi.call("kill_session", { session_id: details.session_id })));
  }));

  // rule: pi.md, The extension: onUpdate has the tail and the fields, never after the answer
  it("onUpdate has the tail and who runs, and never comes after the answer", alone(async (pi) => {
    const updates: Result[] = [];
    let settled = false;
    const command = "echo first; sleep 0.5; echo second; sleep 300";
    const result = await pi.call(
      "exec_command",
      { cmd: command, yield_time_ms: 1500 },
      {
        onUpdate: (update) => {
          assert.equal(settled, false);
          updates.push(update);
        },
      },
    );
    settled = true;
    assert.equal(updates.at(-1)?.content[0]?.text, "first\nsecond\n");
    const last = updates.at(-1)?.details as unknown as Record<string, unknown>;
    const { session_id, log_path } = result.details;
    assert.deepEqual(
      { ...last, pid: typeof last.pid },
      {
        session_id, log_path, pid: "number", running: true, total_bytes: 13, tty: false,
        command, cwd: process.cwd(), output_at: [0, 13],
      },
    );
    await pi.call("kill_session", { session_id });
  }));

  // rule: pi.md, The extension: Esc ends the wait, the process lives
  // rule: pi.md, The tools: A wait that Esc, a message of yours or pi's end has ended says so
  it("Esc ends the wait at once and the process lives", alone(async (pi) => {
    const controller = new AbortController();
    const updates: Result[] = [];
    const call = pi.call(
      "exec_command",
      { cmd: "echo ready; sleep 302; echo never", yield_time_ms: 30_000 },
      { signal: controller.signal, onUpdate: (update) => updates.push(update) },
    );
    await until(() => /ready/.test(updates.at(-1)?.content[0]?.text ?? ""), "the first output");
    const before = Date.now();
    controller.abort();
    const stopped = await call;
    const { details } = stopped;
    assert.ok(Date.now() - before < 10_000, "long before its time is over");
    assert.equal(details.wait_status, "cancelled");
    assert.match(textOf(stopped), /^wait_status: cancelled \(the user pressed Esc\)$/m);
    assert.equal(outputOf(stopped), "ready\n", "what a live row showed stays");
    await runs("sleep 302; echo never");
    await pi.call("kill_session", { session_id: details.session_id });
  }));

  it("a call that was aborted before it began runs nothing", alone(async (pi) => {
    const signal = AbortSignal.abort();
    await assert.rejects(pi.call("exec_command", { cmd: "touch /tmp/never" }, { signal }));
  }));
});

/** What an Updates tells, as text, with the moment of each in ms. */
function telling(pace: Pace) {
  const told: { text: string; atMs: number }[] = [];
  const startMs = performance.now();
  const onUpdate = ({ content }: { content: { text: string }[] }) =>
    told.push({ text: content[0]?.text ?? "", atMs: performance.now() - startMs });
  return { told, updates: new Updates(onUpdate, { command: "make" }, pace) };
}

// rule: pi.md, The extension: The extension holds no output beyond the last progress tail
it("a long wait shows fewer updates, and always the newest", async () => {
  const { told, updates } = telling({ everyMs: 0, liveMs: 0, slowMs: 100 });
  for (let i = 1; i <= 10; i++) updates.show(() => ({ output: String(i) }));
  assert.equal(told.length, 1);
  await until(() => told.length === 2, "the newest");
  updates.show(() => ({ output: "not yet" }));
  updates.stop();
  await new Promise((done) => setTimeout(done, 300));
  assert.deepEqual(told.map(({ text }) => text), ["1", "10"]);
});

// rule: pi.md, What you see: a row is drawn anew only where something has changed
it("the same again is not told; the first output does not wait for its turn", async () => {
  const { told, updates } = telling({ everyMs: 50, liveMs: 60_000, slowMs: 1_000 });
  updates.show(() => ({ output: "" }));
  updates.show(() => ({ output: "one" }));
  assert.deepEqual(told.map(({ text }) => text), ["", "one"]);
  for (let i = 0; i < 20; i++) {
    updates.show(() => ({ output: "one" }));
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.equal(told.length, 2);
  updates.show(() => ({ output: "two" }));
  await until(() => told.length === 3, "what is new");
  updates.stop();
});

// rule: pi.md, What you see: pollUpdates says how many a second come after the first 10 s
it("pollUpdates: the pace after 10 s; with 0 none come then", () => {
  assert.deepEqual(paceOf({ pollUpdates: 1 }), { everyMs: 250, liveMs: 10_000, slowMs: 1_000 });
  assert.equal(paceOf({ pollUpdates: 4 }).slowMs, 250);
  const { told, updates } = telling({ ...paceOf({ pollUpdates: 0 }), liveMs: 0 });
  for (let i = 1; i <= 3; i++) updates.show(() => ({ output: String(i) }));
  updates.stop();
  assert.deepEqual(told.map(({ text }) => text), ["1"]);
});
