/** Start, shutdown, crash and absence of the daemon, under a stub of pi. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { promisify } from "node:util";
import { Client } from "../../src/execd/client.ts";
import { locate } from "../../src/execd/locate.ts";
import {
  EXECD, kill, parentOf, outputOf, Pi, processesWith, type Result, runs, textOf, until,
} from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-ext-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Processes of this pid's children that are execd. */
function daemons(): number[] {
  return processesWith(EXECD).filter((pid) => parentOf(pid) === process.pid);
}

// rule: pi.md, The extension: One daemon an instance, not in the factory
it("the factory starts nothing, and one session start one daemon", async () => {
  const before = daemons().length;
  const pi = new Pi();
  assert.equal(daemons().length, before);
  await pi.start();
  await pi.call("exec_command", { cmd: "true" });
  assert.equal(daemons().length, before + 1);
  await pi.shutdown();
  assert.equal(daemons().length, before);
});

/**
 * execd deletes logs after a week, pi-unified-exec never did, and nobody who came from there could
 * say that they are to stay.
 */
// rule: architecture.md, The keeper: `--log-keep-days 0`: execd deletes no logs; in pi as
//   `PI_EXECD_LOG_KEEP_DAYS` says
it("PI_EXECD_LOG_KEEP_DAYS reaches execd: old logs stay, or go", async () => {
  const logs = mkdtempSync(join(scratch, "logs-"));
  const monthAgo = new Date(Date.now() - 30 * 86_400_000);
  const old = join(logs, "execd-1-0123abcd.log");
  writeFileSync(old, "", { mode: 0o600 });
  utimesSync(old, monthAgo, monthAgo);
  // The extension appends its flags to this line.
  process.env.EXECD_COMMAND = `exec ${EXECD} --log-dir ${logs}`;
  try {
    const cases = [["0", true, 0], ["31", true, 0], ["x", false, 1]] as const;
    for (const [days, stays, notices] of cases) {
      process.env.PI_EXECD_LOG_KEEP_DAYS = days;
      // The mark of the last look: the directory is looked at once an hour.
      rmSync(join(logs, ".execd-cleaned"), { force: true });
      const pi = new Pi();
      await pi.start();
      const { details } = await pi.call("exec_command", { cmd: "echo out" });
      assert.ok(existsSync(details.log_path));
      assert.equal(pi.notices.length, notices, pi.notices.join());
      // Old logs are looked for soon after execd's start, or when it ends.
      if (!stays) await until(() => !existsSync(old), "the old log is deleted");
      await pi.shutdown();
      assert.equal(existsSync(old), stays, days);
    }
  } finally {
    delete process.env.PI_EXECD_LOG_KEEP_DAYS;
    delete process.env.EXECD_COMMAND;
  }
});

/** In `pi -p` nobody was told, and nowhere what holds in its place. */
// rule: architecture.md, The keeper: A `PI_EXECD_LOG_KEEP_DAYS` that is no number of days is told,
//   without a user interface on stderr, and what holds then
it("PI_EXECD_LOG_KEEP_DAYS that is no number: without a user interface on stderr", async () => {
  const said: string[] = [];
  const { error } = console;
  console.error = (text: string) => said.push(text);
  process.env.PI_EXECD_LOG_KEEP_DAYS = "never\u001b[2J";
  try {
    for (const noLog of ["", "1"]) {
      process.env.PI_EXECD_NO_LOG = noLog;
      const pi = new Pi({}, { mode: "print", ui: undefined, hasUI: false });
      await pi.start();
      await pi.shutdown();
    }
  } finally {
    console.error = error;
    delete process.env.PI_EXECD_LOG_KEEP_DAYS;
    delete process.env.PI_EXECD_NO_LOG;
  }
  const [first = "", second = "", ...more] = said;
  assert.match(first, /^execd: PI_EXECD_LOG_KEEP_DAYS=never is no whole number of days /);
  assert.match(first, / As without it, execd deletes logs after 7 days$/);
  assert.match(second, / As without it, no logs are written$/);
  assert.deepEqual(more, []);
});

// rule: pi.md, The extension: After shutdown exec_command rejects and list_sessions is empty; a new
//   start works
it("shutdown ends every process, reaps execd, and a new session starts again", async () => {
  const pi = new Pi();
  await pi.start();
  const stubborn = `trap '' TERM; sleep 311 & sleep 311; echo ${scratch}`;
  const { details } = await pi.call("exec_command", { cmd: stubborn, yield_time_ms: 250 });
  const jobs = { cmd: `set -m; sleep 312 & exec sleep 313 # ${scratch}`, yield_time_ms: 250 };
  await pi.call("exec_command", jobs);
  await pi.shutdown();
  assert.deepEqual(processesWith("sleep 31"), []);
  await assert.rejects(pi.call("exec_command", { cmd: "true" }), {
    message: "unified-exec: shutting down",
  });
  const listed = await pi.call("list_sessions");
  assert.match(textOf(listed), /no live sessions/);
  assert.deepEqual((listed.details as unknown as { sessions: [] }).sessions, []);

  await pi.start();
  const again = await pi.call("exec_command", { cmd: "sleep 314", yield_time_ms: 250 });
  assert.ok(again.details.session_id > details.session_id, "ids are never used twice");
  await pi.shutdown();
});

it("a wait that is pending at shutdown is answered", async () => {
  const pi = new Pi();
  await pi.start();
  const wait = pi.call("exec_command", { cmd: "sleep 315", yield_time_ms: 30_000 });
  await runs("sleep 315");
  await pi.shutdown();
  const { details } = await wait;
  assert.equal(details.wait_status, "shutting_down");
});

// rule: pi.md, The extension: The daemon dies: pending calls fail, the next call starts afresh and
//   says so once
// rule: pi.md, The extension: A restarted daemon gets --first-session-id; old ids reach nobody
it("execd killed: the call fails clearly, the next one works and says so once", async () => {
  const pi = new Pi();
  await pi.start();
  const first = await pi.call("exec_command", { cmd: "sleep 316", yield_time_ms: 250 });
  const wait = pi.call("write_stdin", {
    session_id: first.details.session_id,
    yield_time_ms: 60_000,
  });
  const failed = assert.rejects(wait, {
    message: "execd was killed by SIGKILL. Its sessions are gone; "
      + "the next call starts a fresh execd.",
  });
  kill(daemons()[0]);
  await failed;
  assert.equal(pi.notices.length, 1);
  assert.match(pi.notices[0] ?? "", /^execd: execd was killed by SIGKILL\. Its sessions/);
  assert.equal(pi.statuses.at(-1), undefined);

  const next = await pi.call("exec_command", { cmd: "sleep 317", yield_time_ms: 250 });
  assert.match(textOf(next), /^\[execd was restarted: the one before was killed by SIGKILL; sessio/);
  assert.ok(next.details.session_id > first.details.session_id, "ids go on");
  assert.doesNotMatch(textOf(await pi.call("exec_command", { cmd: "true" })), /restarted/);
  await until(() => processesWith("sleep 316").length === 0, "the old session is gone");
  await pi.shutdown();
});

// rule: pi.md, The extension: The daemon dies: pending calls fail, the next call starts afresh and
//   says so once
it("a restart is also told with an error", async () => {
  const pi = new Pi();
  await pi.start();
  const first = await pi.call("exec_command", { cmd: "sleep 318", yield_time_ms: 250 });
  kill(daemons()[0]);
  await until(() => pi.notices.length > 0, "the loss is noticed");
  const { session_id } = first.details;
  await assert.rejects(pi.call("write_stdin", { session_id }), {
    message: `unknown session_id: ${session_id} (execd was restarted: the one before was killed `
      + "by SIGKILL; sessions started before are gone)",
  });
  await pi.shutdown();
});

// rule: pi.md, The extension: Without an execd pi starts, keeps its bash, one notice, one clear
//   error
it("without any execd pi keeps its bash; one notice and a clear error say why", async () => {
  await withEnv({ EXECD_BIN: join(scratch, "none"), EXECD_COMMAND: undefined }, async () => {
    const pi = new Pi();
    await pi.start();
    assert.deepEqual(pi.active, ["read", "bash", "edit"]);
    assert.equal(pi.notices.length, 1);
    assert.match(pi.notices[0] ?? "", /pi keeps its own bash: no execd to run commands with\. Tri/);
    const call = pi.call("exec_command", { cmd: "true" });
    await assert.rejects(call, /Tried: EXECD_BIN \(.*none\): .*ENOENT.*EXECD_COMMAND/s);
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: What is found but cannot start is told with its last lines
it("what is found but is no execd is told with what it said", async () => {
  const fake = join(scratch, "fake");
  writeFileSync(fake, "#!/bin/sh\necho cannot open display >&2\nexit 3\n");
  chmodSync(fake, 0o755);
  await withEnv({ EXECD_BIN: fake }, async () => {
    const client = new Client({ onNotification: () => {}, onLost: () => assert.fail() });
    await assert.rejects(client.start(), /exited with status 3; it said: cannot open display/);
  });
});

// rule: pi.md, The extension: Order: EXECD_COMMAND, EXECD_BIN, package, PATH, checkout
it("the order in which execd is looked for", () => {
  const here = join(scratch, "ext", "src");
  const none = locate({ PATH: "/nonexistent" }, here);
  assert.deepEqual(none.candidates, []);
  assert.equal(none.missing.length, 3);
  writeFileSync(join(scratch, "execd"), "#!/bin/sh\n");
  chmodSync(join(scratch, "execd"), 0o755);
  const env = { PATH: `relative:${scratch}` };
  assert.deepEqual(locate(env, here).candidates.map((c) => c.command), [join(scratch, "execd")]);
  const bin = { ...env, EXECD_BIN: "/x/execd" };
  assert.deepEqual(locate(bin, here).candidates.map((c) => c.command), ["/x/execd"]);
  const both = locate({ ...bin, EXECD_COMMAND: "ssh 'my box' execd" }, here).candidates;
  assert.deepEqual(both.map((c) => c.args), [["-c", "ssh 'my box' execd \"$@\"", "execd"]]);
});

// rule: pi.md, The extension: EXECD_COMMAND is a command line; an absent workdir stays absent,
//   nothing of this environment is sent
it("EXECD_COMMAND: a command line; nothing of this machine's environment is sent", async () => {
  const line = `env -i EXECD_THERE='a b' PATH="$PATH" '${EXECD}'`;
  await withEnv({ EXECD_COMMAND: line, EXECD_TEST_HERE: "1" }, async () => {
    const pi = new Pi();
    await pi.start();
    assert.match(pi.tools.get("exec_command")?.description ?? "", /on another machine/);
    const cmd = 'echo "$EXECD_THERE ${EXECD_TEST_HERE-none} $AI_AGENT"; pwd';
    const result = await pi.call("exec_command", { cmd });
    assert.equal(outputOf(result), `a b none pi\n${process.cwd()}\n`);
    await pi.shutdown();
  });
});

it("EXECD_COMMAND with the stream tools: the same, and logs are read there", async () => {
  const line = `env -i EXECD_THERE='a b' PATH="$PATH" '${EXECD}'`;
  const env = {
    EXECD_COMMAND: line, EXECD_TEST_HERE: "1", PI_EXECD_TOOLS: "stream", PI_BASH_YIELD_MS: "1000",
  };
  await withEnv(env, async () => {
    const pi = new Pi();
    await pi.start();
    assert.match(pi.tools.get("bash_stream")?.description ?? "", /on another machine/);
    const command = 'echo "$EXECD_THERE ${EXECD_TEST_HERE-none} $AI_AGENT"; pwd; sleep 461';
    const started = await pi.call("bash_stream", { command });
    const wanted = `a b none pi\n${process.cwd()}\n`;
    const { sessionId, status } = started.details as unknown as Record<string, unknown>;
    const told = [status, outputOf(started)];
    assert.deepEqual(told, ["running", wanted], "the window of this environment");
    const page = await pi.call("get_process_log", { sessionId });
    assert.equal(outputOf(page), wanted);
    await pi.call("kill_process", { sessionId });
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: Another extension owns a name: ours step aside, one notice
it("a second extension with one of the names: theirs win, one notice", async () => {
  const theirs = { name: "exec_command", sourceInfo: { path: "/theirs.ts" } };
  const pi = new Pi({ getAllTools: () => [{ name: "bash" }, theirs] });
  await pi.start();
  assert.deepEqual([...pi.tools.keys()], []);
  assert.deepEqual(pi.active, ["read", "bash", "edit"]);
  assert.deepEqual(pi.notices, [
    "execd: another extension has exec_command; its tools are used, not execd's",
  ]);
  await pi.shutdown();
});

// rule: pi.md, The extension: --exec-tools, PI_EXECD_TOOLS
it("--keep-builtin-bash, --exec-tools and PI_EXECD_TOOLS", async () => {
  const keep = new Pi({ getAllTools: () => [] });
  keep.flags["keep-builtin-bash"] = true;
  await keep.start();
  assert.deepEqual(keep.active, ["read", "bash", "edit"]);
  await keep.shutdown();

  const unknown = new Pi({ getAllTools: () => [] });
  unknown.flags["exec-tools"] = "unified,magic";
  await unknown.start();
  assert.equal(unknown.tools.size, 5);
  assert.match(unknown.notices[0] ?? "", /unknown tools magic in --exec-tools; there are: unified/);
  await unknown.shutdown();

  await withEnv({ PI_EXECD_TOOLS: "magic" }, async () => {
    const none = new Pi({ getAllTools: () => [] });
    await none.start();
    assert.deepEqual([none.tools.size, none.active.includes("bash")], [0, true]);
    await none.shutdown();
  });
});

// rule: pi.md, The extension: Instances in one process are independent
it("instances in one process are independent", async () => {
  const [one, two] = [new Pi(), new Pi()];
  await Promise.all([one.start(), two.start()]);
  const params = { cmd: "sleep 319", yield_time_ms: 250 };
  const { session_id } = (await one.call("exec_command", params)).details;
  await assert.rejects(two.call("write_stdin", { session_id }), /unknown session_id/);
  await two.shutdown();
  assert.match(textOf(await one.call("list_sessions")), /sleep 319/);
  await one.shutdown();
});

// rule: pi.md, The extension: A restarted daemon gets --first-session-id; old ids reach nobody
it("ids of a conversation that goes on are not given again", async () => {
  const message = { role: "toolResult", toolName: "exec_command", details: { session_id: 41 } };
  const entries = [{ type: "message", message }];
  const pi = new Pi({}, { sessionManager: { getEntries: () => entries } });
  await pi.start();
  const { details } = await pi.call("exec_command", { cmd: "sleep 320", yield_time_ms: 250 });
  assert.equal(details.session_id, 42);
  // A session that begins with this execd names other ids: in messages, and in an error's text.
  entries.splice(0);
  const told = (customType: string, told: object) =>
    entries.push({ type: "custom_message", customType, details: told } as never);
  const goesOn = async (id: number) => {
    await pi.start();
    const result = await pi.call("exec_command", { cmd: "sleep 320", yield_time_ms: 250 });
    assert.equal(result.details.session_id, id);
  };
  told("unified-exec-completed", { sessions: [{ session_id: 50 }, { session_id: 49 }] });
  await goesOn(51);
  told("bash-window-completed", { windows: [{ window: "@60" }] });
  await goesOn(61);
  pi.flags["exec-tools"] = "bash";
  const text = "no\n\nCommand exited with code 3\n\n\nStill running in background window @70: x (pid 7)";
  const failed = { role: "toolResult", toolName: "bash", details: {}, isError: true };
  entries.push({ type: "message", message: { ...failed, content: [{ type: "text", text }] } } as never);
  await goesOn(71);
  await pi.shutdown();
});

// rule: pi.md, The extension: /reload with an extension that has one of the names by now: no
//   conflict, ours step aside, restored rows are drawn
it("after /reload rows can be drawn before tools are registered, where the host can do it", async () => {
  type Resolver = (name: string, next: () => unknown) => object | undefined;
  const resolvers: Resolver[] = [];
  const extra = {
    getAllTools: () => [],
    registerToolRenderer: (resolver: Resolver) => resolvers.push(resolver),
  };
  const first = new Pi(extra);
  first.flags["exec-tools"] = "unified,bash";
  await first.start();
  await first.emit("session_shutdown", { reason: "reload" });
  const second = new Pi(extra);
  second.flags["exec-tools"] = "unified,bash";
  assert.equal(second.tools.size, 0, "nothing that could clash is registered in the factory");
  const theirs = { renderCall: () => "theirs" };
  const drawnBy = (name: string) => resolvers.at(-1)?.(name, () => theirs);
  for (const name of ["exec_command", "bash", "tmux"]) {
    assert.equal(typeof (drawnBy(name) as { renderResult?: unknown }).renderResult, "function", name);
  }
  assert.equal(drawnBy("read"), theirs);
  await second.emit("session_start", { reason: "reload" });
  assert.ok(second.tools.has("bash"));
  assert.equal(drawnBy("bash"), theirs);
  await second.shutdown();
});

// rule: pi.md, The extension: An idle extension never keeps Node alive; 40 instances leave no
//   handle
it("a session and an idle daemon do not keep Node alive, nor do 40 instances", async () => {
  for (const script of ["idle.ts", "forty.ts"]) {
    const args = [join(import.meta.dirname, "scripts", script)];
    const run = promisify(execFile)(process.execPath, args, { timeout: 60_000 });
    const { stdout } = await run;
    assert.equal(stdout, "done\n", script);
  }
});

it("an id that only the model named is never counted from", async () => {
  const pi = new Pi();
  pi.flags["exec-tools"] = "unified,more";
  await pi.start();
  await pi.call("kill_session", { session_id: 1e300 });
  await pi.call("set_on_exit", { session_id: 4_000_000_000, on_exit: "none" });
  kill(daemons()[0]);
  await until(() => pi.notices.length > 0, "the loss is noticed");
  const { details } = await pi.call("exec_command", { cmd: "sleep 323", yield_time_ms: 250 });
  assert.equal(details.session_id, 1);
  await pi.shutdown();
});

// rule: pi.md, The extension: Only pi's own bash leaves, only where exec_command is active
it("bash stays where exec_command is not active, or where it is another extension's", async () => {
  const tools = (source: string) => ({
    getAllTools: () => [{ name: "bash", sourceInfo: { path: "x", source } }],
  });
  const cases: [string, string[], string[]][] = [
    ["builtin", ["bash", "exec_command"], ["exec_command"]],
    ["builtin", ["bash", "read"], ["bash", "read"]],
    ["extension", ["bash", "exec_command"], ["bash", "exec_command"]],
  ];
  for (const [source, active, left] of cases) {
    const pi = new Pi(tools(source));
    pi.active = active;
    await pi.start();
    assert.deepEqual(pi.active, left);
    await pi.shutdown();
  }
});

// rule: pi.md, The extension: What answers wrongly, hangs or babbles disturbs nothing
// rule: pi.md, The extension: Esc while execd starts or does not answer: true words, in those of
//   the surface
it("an execd that hangs holds up neither pi's start nor Esc nor shutdown", async () => {
  await withEnv({ EXECD_COMMAND: "sleep 324 #" }, async () => {
    const pi = new Pi({ getAllTools: () => [] });
    pi.flags["exec-tools"] = "unified,bash";
    const started = Date.now();
    await pi.start();
    assert.ok(Date.now() - started < 8_000, "session_start returns before the start's deadline");
    assert.deepEqual(pi.active, ["read", "bash", "edit"]);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [
      pi.call("exec_command", { cmd: "true" }, { signal }),
      pi.call("bash", { command: "true" }, { signal }),
    ];
    const pressed = Date.now();
    controller.abort();
    // Esc said "This operation was aborted", in the words of Node.
    const said = (await Promise.allSettled(calls)).map((one) =>
      one.status === "rejected" ? (one.reason as Error).message : "answered");
    assert.deepEqual(said, [
      "cancelled before execd was asked for anything: nothing was done",
      "Command aborted",
    ]);
    await pi.shutdown();
    assert.ok(Date.now() - pressed < 5_000, "Esc and shutdown do not wait for it");
    assert.deepEqual(pi.notices, []);
    await until(() => processesWith("sleep 324").length === 0, "it is gone");
  });
});

// rule: pi.md, The extension: What answers wrongly, hangs or babbles disturbs nothing
it("what answers but is no execd is ended; nothing of it stays", async () => {
  await withEnv({ EXECD_COMMAND: fake("stranger") }, async () => {
    const pi = new Pi();
    await pi.start();
    await assert.rejects(pi.call("exec_command", { cmd: "true" }), /is not execd: no such method/);
    assert.deepEqual(processesWith("fake-execd.mjs stranger"), []);
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: What answers wrongly, hangs or babbles disturbs nothing
it("lines that a transport prints, and notifications without sense, disturb nothing", async () => {
  await withEnv({ EXECD_COMMAND: fake("noisy") }, async () => {
    const pi = new Pi();
    await pi.start();
    const result = await pi.call("exec_command", { cmd: "true" });
    assert.equal(outputOf(result), "fine");
    assert.deepEqual([pi.notices, pi.statuses.at(-1)], [[], undefined]);
    await pi.shutdown();
  });
});

// A row lacked its log to the end of the wait where the first output, and no more, came before
// execd knew that the log was there: only session_started names it then.
// rule: pi.md, The extension: onUpdate has the tail and the fields, never after the answer
it("a log that comes later than the first output is named in the updates", async () => {
  await withEnv({ EXECD_COMMAND: fake("slow-log") }, async () => {
    const pi = new Pi();
    await pi.start();
    const told: unknown[][] = [];
    const onUpdate = (update: Result) => {
      const { session_id, log_path, cwd } = update.details;
      told.push([session_id, textOf(update), log_path, cwd]);
    };
    await pi.call("exec_command", { cmd: "true" }, { onUpdate });
    assert.deepEqual(told, [
      [7, "hi\n", undefined, undefined],
      [7, "hi\n", "/tmp/7.log", "/there"],
    ]);
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: onUpdate has the tail and the fields, never after the answer
it("a log that comes later than a silent session is named, also to the next call", async () => {
  await withEnv({ EXECD_COMMAND: fake("late-log") }, async () => {
    const pi = new Pi();
    await pi.start();
    const told: unknown[] = [];
    const onUpdate = ({ details }: Result) => told.push(details.log_path);
    await pi.call("exec_command", { cmd: "true" }, { onUpdate });
    assert.deepEqual(told, [undefined, "/tmp/7.log"]);
    await pi.call("write_stdin", { session_id: 7 }, { onUpdate });
    assert.equal(told[2], "/tmp/7.log");
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: What answers wrongly, hangs or babbles disturbs nothing
it("a cancel that is not answered: an error that says what may have become of the call", async () => {
  await withEnv({ EXECD_COMMAND: fake("deaf") }, async () => {
    const pi = new Pi();
    await pi.start();
    const signal = AbortSignal.timeout(200);
    await assert.rejects(pi.call("exec_command", { cmd: "true" }, { signal }), {
      message: "execd has not answered within 3 s of the cancel. It may still do what it was asked "
        + "for: list_sessions shows what runs once it answers again.",
    });
    await pi.shutdown();
  });
});

// rule: pi.md, The extension: What answers wrongly, hangs or babbles disturbs nothing
it("out of file descriptors a call fails, and pi lives", async () => {
  const script = join(import.meta.dirname, "scripts", "emfile.ts");
  const limited = `ulimit -Sn 64; exec "${process.execPath}" "${script}"`;
  const { stdout } = await promisify(execFile)("bash", ["-c", limited], { timeout: 60_000 });
  assert.match(stdout, /^failed: no execd to run commands with\. Tried: .*EMFILE.*\nthen: back\n$/);
});

// rule: pi.md, The extension: Runs under a minimal stub of pi
it("the sessions command and /tree on a host without select and widgets", async () => {
  const pi = new Pi();
  await pi.start();
  const run = async () => pi.commands.get("unified-exec-sessions")?.("", pi.ctx);
  await run();
  assert.deepEqual(pi.notices.splice(0), ["execd: no sessions"]);
  await pi.call("exec_command", { cmd: "sleep 325", yield_time_ms: 250 });
  await run();
  assert.match(pi.notices.splice(0).join(), /^execd: 1 session running: #1 \d+s sleep 325$/);
  await pi.emit("session_tree");
  await until(() => pi.notices.length > 0, "the notice");
  assert.deepEqual(pi.notices, ["execd: 1 session still running after /tree."]);
  await pi.shutdown();
});

// rule: pi.md, The extension: Restored rows hide nothing
it("after /reload the tools are there before session_start, and only once", async () => {
  const first = new Pi({ getAllTools: () => [] });
  await first.start();
  await first.emit("session_shutdown", { reason: "reload" });
  const second = new Pi({ getAllTools: () => [] });
  assert.equal(second.tools.size, 5);
  const third = new Pi({ getAllTools: () => [] });
  assert.equal(third.tools.size, 0);
});

// rule: pi.md, The extension: The extension holds no output beyond the last progress tail
it("the extension holds no output: a hundred large answers leave the heap as it was", async () => {
  const script = join(import.meta.dirname, "scripts", "heap.ts");
  const args = ["--expose-gc", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
  const grown = Number(stdout);
  // Held, they would be 100 x 50 KiB twice over.
  assert.ok(grown < 3_000_000, `${grown} bytes`);
});

/** The command line of a stand-in for execd that misbehaves as `how` says. */
function fake(how: string): string {
  const script = join(import.meta.dirname, "scripts", "fake-execd.mjs");
  return `'${process.execPath}' '${script}' ${how} #`;
}

async function withEnv(env: Record<string, string | undefined>, run: () => Promise<void>) {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  for (const [name, value] of Object.entries(env)) set(name, value);
  try {
    await run();
  } finally {
    for (const [name, value] of before) set(name, value);
  }
}
