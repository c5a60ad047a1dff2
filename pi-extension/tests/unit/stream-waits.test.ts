/** Waits of the stream tools: what shows while they last, and what ends them early. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { after, before, describe, it } from "node:test";
import { LIVE_TAIL_BYTES, LiveTail } from "../../src/tools/live-tail.ts";
import type { StreamReport } from "../../src/execd/wire-results.ts";
import {
  EXECD, kill, parentOf, outputOf, Pi, processesWith, runs, type Result, textOf, until,
} from "./lib.ts";

process.env.PI_EXECD_TOOLS = "stream";

type Told = Required<StreamReport> & { aborted?: boolean; interrupted?: boolean };

/** The output that an update shows. */
const shownIn = (update: Result | undefined) => update?.content[0]?.text ?? "";
const reportOf = (result: Result | undefined) => result?.details as unknown as Told;

/** Esc must be answered within this time: long for a busy machine, short for the commands. */
const ESC_MS = 10_000;
/** As many chunks as a call sends take two seconds, and a minute on a machine that is very busy. */
const FLOOD_MS = 120_000;

describe("waits of the stream tools", { concurrency: 8 }, () => {
  let pi: Pi;
  const bus = new EventEmitter();
  before(async () => {
    pi = new Pi({ events: bus });
    await pi.start();
  });
  after(() => pi.shutdown());

  // rule: pi.md, The extension: onUpdate has the session's id from the first one on
  // rule: pi.md, The extension: Live chunks go to onUpdate, both notifications to pi.events
  it("updates have the newest of both streams, and never come after the answer", async () => {
    const updates: Result[] = [];
    let settled = false;
    const command = "echo out; sleep 0.3; echo err >&2; sleep 0.3; echo more; sleep 430";
    const call = pi.call(
      "bash_stream",
      { command, yieldMs: 60_000 },
      {
        onUpdate: (update) => {
          assert.equal(settled, false);
          updates.push(update);
        },
      },
    ).finally(() => {
      settled = true;
    });
    await until(() => /more/.test(shownIn(updates.at(-1))), "all of its output");
    const { sessionId, pid } = reportOf(updates.at(-1));
    assert.deepEqual(updates[0]?.details, {
      status: "running", sessionId, pid, command, cwd: process.cwd(), output_at: [0, 0],
    });
    assert.deepEqual(updates.at(-1)?.details, {
      status: "running", sessionId, pid, command, cwd: process.cwd(),
      output_at: [0, 13],
    });
    assert.equal(updates.at(-1)?.content[0]?.text, "out\nerr\nmore\n");
    const killed = await pi.call("kill_process", { sessionId });
    assert.deepEqual([reportOf(killed).pid, outputOf(await call)],
      [pid, "stdout:\nout\nmore\nstderr:\nerr\n"]);
  });

  it("a flood: few updates, of 32 KiB at most", async () => {
    const updates: Result[] = [];
    const start = performance.now();
    const command = "yes 0123456789 | head -c 20000000; echo; echo the end";
    const result = await pi.call("bash_stream", { command }, { onUpdate: (u) => updates.push(u) });
    const seconds = (performance.now() - start) / 1_000;
    assert.equal(reportOf(result).exitCode, 0);
    assert.ok(updates.length <= 4 * seconds + 3, `${updates.length} updates in ${seconds} s`);
    for (const update of updates) {
      assert.ok(Buffer.byteLength(shownIn(update)) <= LIVE_TAIL_BYTES);
    }
    assert.match(outputOf(result), /the end\n$/);
  });

  it("events tell other extensions, with the call's id", async () => {
    const chunks: Record<string, unknown>[] = [];
    const yields: Record<string, unknown>[] = [];
    const mine = (list: Record<string, unknown>[]) => (data: Record<string, unknown>) => {
      if (data.toolCallId === "call_events") list.push(data);
    };
    bus.on("tool_execution_output", mine(chunks));
    bus.on("tool_execution_progress", mine(yields));
    const command = "echo out; sleep 0.2; echo err >&2; sleep 431";
    const call = { id: "call_events" };
    const result = await pi.call("bash_stream", { command, yieldMs: 5_000 }, call);
    const { sessionId, pid, startedAt } = reportOf(result);
    const told = chunks.map(({ request_id: _, toolCallId: __, ...fields }) => fields);
    assert.deepEqual(told, [
      { sessionId, stream: "stdout", chunk: "out\n" },
      { sessionId, stream: "stderr", chunk: "err\n" },
    ]);
    const [{ request_id: _, ...note } = {}] = yields;
    assert.deepEqual(note, {
      sessionId, pid, startedAt, lastOutputTail: "out\nerr\n", toolCallId: "call_events",
    });
    await pi.call("kill_process", { sessionId });
  });

  const says = (pattern: RegExp) => (updates: Result[]) =>
    pattern.test(shownIn(updates.at(-1)));

  /** Presses Esc during a call once `ready`; gives the result, which must come in time. */
  async function escape(
    name: string,
    params: object,
    ready: (updates: Result[]) => unknown,
  ): Promise<Result> {
    const controller = new AbortController();
    const updates: Result[] = [];
    const call = pi.call(name, params, {
      signal: controller.signal,
      onUpdate: (update) => updates.push(update),
    });
    await until(() => ready(updates), "the moment for Esc");
    const start = performance.now();
    controller.abort();
    const result = await call;
    const ms = performance.now() - start;
    assert.ok(ms < ESC_MS, `${ms} ms until Esc was answered`);
    return result;
  }

  /** Esc ended it; a machine that is busy may have answered before the end was known. */
  async function endedByEsc(result: Result, command: string): Promise<void> {
    const { aborted, signal, status } = reportOf(result);
    assert.deepEqual([aborted, signal], [true, status === "running" ? undefined : "SIGKILL"]);
    await until(() => processesWith(command).length === 0, `the end of ${command}`);
  }

  it("Esc ends all of it, the output so far is told", async () => {
    const command = "trap '' TERM INT HUP; echo before; sleep 432 & sleep 432";
    const result = await escape("bash_stream", { command, yieldMs: 60_000 }, says(/before/));
    const { signal, aborted } = reportOf(result);
    assert.deepEqual([signal, aborted, outputOf(result)], ["SIGKILL", true, "before\n"]);
    assert.match(textOf(result), /^\[failed\]\n[^]*\n---\nbefore\n\n\[The user pressed Esc: /);
    assert.match(textOf(result), / were ended\]$/);
    assert.deepEqual(processesWith("sleep 432"), []);
  });

  it("Esc before any notification came", async () => {
    const isUp = () => processesWith("sleep 433").length > 0;
    const result = await escape("bash_stream", { command: "sleep 433", yieldMs: 60_000 }, isUp);
    await endedByEsc(result, "sleep 433");
  });

  // rule: pi.md, The extension: Esc ends the whole session within 1 s, and never hangs on a
  //   grandchild that holds the pipe
  it("Esc never waits for a grandchild that holds the pipe", async () => {
    const command = "setsid --fork sleep 434; echo up; sleep 435";
    const result = await escape("bash_stream", { command, yieldMs: 60_000 }, says(/up/));
    await endedByEsc(result, "sleep 435");
    for (const pid of processesWith("sleep 434")) kill(pid);
  });

  it("Esc during poll_process ends what is polled", async () => {
    for (const wait of [{ maxDrainMs: 120_000 }, { waitMs: 1_800_000 }]) {
      const params = { command: "sleep 436", yieldMs: 1_000 };
      const { sessionId } = reportOf(await pi.call("bash_stream", params));
      const polls = (updates: Result[]) => updates.length > 0;
      const result = await escape("poll_process", { sessionId, ...wait }, polls);
      await endedByEsc(result, "sleep 436");
    }
  });

  it("a call that was aborted before it began runs and ends nothing", async () => {
    const signal = AbortSignal.abort();
    await assert.rejects(pi.call("bash_stream", { command: "touch /tmp/never" }, { signal }));
    const params = { command: "sleep 437", yieldMs: 1_000 };
    const { sessionId } = reportOf(await pi.call("bash_stream", params));
    await assert.rejects(pi.call("poll_process", { sessionId }, { signal }));
    await runs("sleep 437");
    await pi.call("kill_process", { sessionId });
  });
});

// It was a sentence in the chunks, which a person took for output of the command.
// rule: bash-stream.md, The stream family: At most 10,000 chunks a call; then
//   tool_execution_truncated, once, and never as output
it("where live output ends, a person is told beside it and not in it", async () => {
  const bus = new EventEmitter();
  const pi = new Pi({ events: bus });
  await pi.start();
  const notes: Record<string, unknown>[] = [];
  bus.on("tool_execution_truncated", (note) => notes.push(note));
  const updates: Result[] = [];
  const params = { command: "while :; do echo x; echo x >&2; done", yieldMs: 120_000 };
  const call = pi.call("bash_stream", params, { onUpdate: (update) => updates.push(update) });
  const ended = () => (updates.at(-1)?.details as { liveEnded?: true }).liveEnded;
  await until(() => updates.length > 0 && ended(), "the end of live output", FLOOD_MS);
  const { sessionId } = reportOf(updates.at(-1));
  assert.match(shownIn(updates.at(-1)), /^[x\n]+$/);
  const { logPath } = reportOf(await pi.call("kill_process", { sessionId }));
  const told = notes.map(({ request_id: _, toolCallId: __, ...note }) => note);
  assert.deepEqual(told, [{ sessionId, chunks: 10_000, logPath }]);
  assert.ok(!("liveEnded" in reportOf(await call)));
  await pi.shutdown();
});

it("a user's message ends the wait and nothing else", async () => {
  let pending = false;
  const pi = new Pi({}, { hasPendingMessages: () => pending });
  await pi.start();
  const wait = pi.call("bash_stream", { command: "echo hi; sleep 438", yieldMs: 60_000 });
  await runs("sleep 438");
  pending = true;
  const result = await wait;
  pending = false;
  const { status, sessionId, interrupted } = reportOf(result);
  assert.deepEqual([status, interrupted], ["running", true]);
  assert.match(textOf(result), /\n\[A message from the user ended this wait; the command goes on/);
  await runs("sleep 438");
  const poll = pi.call("poll_process", { sessionId, maxDrainMs: 120_000 });
  assert.equal(outputOf(await poll), "hi\n");
  const second = pi.call("poll_process", { sessionId, maxDrainMs: 120_000 });
  pending = true;
  assert.equal(reportOf(await second).status, "running");
  pending = false;
  const killIf = "timeout";
  const third = pi.call("poll_process", { sessionId, waitMs: 1_800_000, killIf });
  pending = true;
  assert.deepEqual([reportOf(await third).status, reportOf(await third).interrupted],
    ["running", true]);
  await runs("sleep 438");
  await pi.shutdown();
});

// Nobody could give the password: the poll was cancelled, and with it the kill that it was for.
// rule: pi.md, Secrets: A poll with `killIf` opens none, and its time goes on
it("a poll with killIf ends what asks for a password, in its time", async () => {
  const pi = new Pi();
  await pi.start();
  const command = "read -rsp 'Secret: ' s";
  const asked = await pi.call("bash_stream", { command, stdinMode: "pty" });
  assert.match(textOf(asked), /^\[running\]\n[^]*\n\[a password is asked for/);
  const { sessionId } = reportOf(asked);
  const started = performance.now();
  const poll = pi.call("poll_process", { sessionId, waitMs: 1_500, killIf: "timeout" });
  const { status, signal } = reportOf(await poll);
  assert.deepEqual([status, signal], ["failed", "SIGKILL"]);
  assert.ok(performance.now() - started >= 1_400, "not before its time");
  await pi.shutdown();
});

// rule: pi.md, Secrets: `timeoutMs` of `bash_stream` goes on while the box is open
it("the time of a command goes on while a person is asked for a password", async () => {
  let boxes = 0;
  const ui = {
    notify: () => {},
    setStatus: () => {},
    // Somebody who types nothing: the box is there until it is closed.
    custom: (open: (...args: unknown[]) => object) => new Promise((close) => {
      boxes += 1;
      open({ requestRender: () => {} }, { fg: (_: string, text: string) => text }, {}, close);
    }),
  };
  const pi = new Pi({}, { mode: "tui", ui });
  await pi.start();
  const command = "read -rsp 'Secret: ' s";
  const timed = { command, stdinMode: "pty", timeoutMs: 5_000, yieldMs: 60_000 };
  const { status, timedOut } = reportOf(await pi.call("bash_stream", timed));
  assert.deepEqual([boxes, status, timedOut], [1, "failed", true]);
  await pi.shutdown();
});

it("a deaf execd does not keep Esc waiting", async () => {
  const pi = new Pi();
  await pi.start();
  const controller = new AbortController();
  const { signal } = controller;
  const call = pi.call("bash_stream", { command: "echo up; sleep 439" }, { signal });
  await runs("sleep 439");
  const daemon = processesWith(EXECD).find((pid) => parentOf(pid) === process.pid);
  assert.ok(daemon);
  process.kill(daemon, "SIGSTOP");
  const start = performance.now();
  controller.abort();
  const answer = await call.then((result) => textOf(result), (error: Error) => error.message);
  assert.ok(performance.now() - start < ESC_MS, "in time");
  assert.match(answer, /Esc/);
  process.kill(daemon, "SIGCONT");
  await until(() => processesWith("sleep 439").length === 0, "the kill that came late");
  await pi.shutdown();
});

it("shutdown: a pending wait is answered, later calls are refused, lists are empty", async () => {
  const pi = new Pi();
  await pi.start();
  const wait = pi.call("bash_stream", { command: "sleep 440", yieldMs: 60_000 });
  await runs("sleep 440");
  await pi.shutdown();
  await wait;
  assert.deepEqual(processesWith("sleep 440"), []);
  const refused = { message: "bash_stream: shutting down" };
  await assert.rejects(pi.call("bash_stream", { command: "true" }), refused);
  await assert.rejects(pi.call("poll_process", { sessionId: 1 }), refused);
  assert.equal(textOf(await pi.call("list_processes")), "no processes");
});

it("execd killed: the next call works, says so once, and ids go on", async () => {
  const pi = new Pi();
  await pi.start();
  const params = { command: "sleep 441", yieldMs: 1_000 };
  const { sessionId } = reportOf(await pi.call("bash_stream", params));
  kill(processesWith(EXECD).find((pid) => parentOf(pid) === process.pid));
  await until(() => pi.notices.length > 0, "the notice");
  const next = await pi.call("bash_stream", { command: "true" });
  assert.match(textOf(next), /^\[execd was restarted: /);
  assert.ok(reportOf(next).sessionId > sessionId);
  await pi.shutdown();
});

it("ids of a conversation that goes on belong to nobody else", async () => {
  const message = (toolName: string, details: object) =>
    ({ type: "message", message: { role: "toolResult", toolName, details } });
  const entries = [message("bash_stream", { sessionId: 40 }), message("other", { sessionId: 90 })];
  const pi = new Pi({}, { sessionManager: { getEntries: () => entries } });
  await pi.start();
  assert.equal(reportOf(await pi.call("bash_stream", { command: "true" })).sessionId, 41);
  await pi.shutdown();
});

it("the live tail: bounded, in order, cut at a character", () => {
  const tail = new LiveTail();
  assert.equal(tail.text, "");
  tail.push("one ");
  tail.push("two");
  assert.equal(tail.text, "one two");
  const text = [..."aé漢😀".repeat(10_000)];
  for (const size of [1, 7, 1_000, 8_192, 100_000]) {
    const live = new LiveTail();
    for (let at = 0; at < text.length; at += size) {
      live.push(text.slice(at, at + size).join(""));
    }
    const bytes = Buffer.byteLength(live.text);
    assert.ok(bytes <= LIVE_TAIL_BYTES && bytes > LIVE_TAIL_BYTES - 4, `${bytes} bytes`);
    assert.ok(text.join("").endsWith(live.text));
  }
});
