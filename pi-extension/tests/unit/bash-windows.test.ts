/** Windows under a stub of pi: who is told of what, when, and only once. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { promisify } from "node:util";
import {
  listBashWindows,
  loadTmuxBashConfig,
  resolveTmuxBashContext,
} from "../../src/core.ts";
import { Background } from "../../src/bash/background.ts";
import { attachCommand } from "../../src/execd/attach.ts";
import { gitRootOf } from "../../src/bash/scope.ts";
import { backgroundStatus } from "../../src/bash/status.ts";
import { shownCommand } from "../../src/bash/templates.ts";
import { BashPi, type Sent, withBash } from "./bash-lib.ts";
import { EXECD, kill, parentOf, Pi, processesWith, runs, textOf, until } from "./lib.ts";

const dir = mkdtempSync(join(tmpdir(), "execd-windows-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** A command that ends when the file is there. */
let files = 0;
function held(): { command: string; release: () => void } {
  const file = join(dir, `go-${++files}`);
  const command = `until [ -e ${file} ]; do sleep 0.02; done`;
  return { command, release: () => writeFileSync(file, "") };
}

const start = (pi: Pi, command: string, name = "job") =>
  pi.call("bash", { command, background: true, name });

const settled = (stopReason = "stop") => ({ messages: [{ role: "assistant", stopReason }] });

// rule: bash.md, In pi: Without an execd pi keeps its own bash; another extension's bash is used
it("another extension's bash is used, pi's own is replaced", async () => {
  const tools = (source: string) => ({
    getAllTools: () => [{ name: "bash", sourceInfo: { path: "x", source } }],
  });
  await withBash({}, async (pi) => {
    assert.deepEqual([...pi.tools.keys()], []);
    assert.deepEqual(pi.notices,
      ["execd: another extension has bash; its tools are used, not execd's"]);
  }, tools("extension"));
  await withBash({}, async (pi) => {
    assert.deepEqual([...pi.tools.keys()], ["bash", "tmux"]);
    assert.deepEqual([pi.notices, pi.active], [[], ["read", "bash", "edit"]]);
  }, tools("builtin"));
});

// rule: bash.md, bash and tmux: Whoever ends or observes a window, its end is told, and before that
//   of its session
it("a window that a person ends or waits for is told to the model all the same", async () => {
  for (const how of ["kill", "wait"]) {
    await withBash({ tty: true }, async (pi) => {
      // It ends with the line that the waiting call itself writes: none can come too late.
      const command = `read -r line; : ${how}`;
      await start(pi, command);
      const run = async (...words: string[]) =>
        (await promisify(execFile)(EXECD, words, { encoding: "utf8" })).stdout;
      const all = JSON.parse(await run("ls", "--json")) as { command: string; socket: string }[];
      const socket = all.find((one) => one.command === command)?.socket ?? "";
      if (how === "kill") {
        await run("kill", "@1", "--socket", socket);
      } else {
        const params = { session_id: 1, chars: "go\n", yield_time_ms: 30_000 };
        await run("call", "write_stdin", JSON.stringify(params), "--socket", socket);
      }
      await until(() => pi.sent.length > 0, `the model is told after ${how}`);
      assert.match(pi.sent[0]?.content ?? "", /^Background command finished with exit code /);
      assert.equal(pi.sent.length, 1);
    });
  }
});

// It said that tmux list shows the command, which lists none in the foreground.
// rule: pi.md, The extension: Esc while execd starts or does not answer: true words, in those of
//   the surface
it("Esc while execd is stopped: told as it is, and the command ends when execd goes on", async () => {
  await withBash({}, async (pi) => {
    const { command } = held();
    const controller = new AbortController();
    const call = pi.call("bash", { command: `${command}; :` }, { signal: controller.signal });
    const daemon = parentOf(await runs(`${command}; :`));
    assert.ok(daemon > 1);
    process.kill(daemon, "SIGSTOP");
    try {
      controller.abort();
      await assert.rejects(call, {
        message: "execd has not answered within 3 s of the cancel. As soon as it goes on, it ends a "
          + "command in the foreground; tmux list then shows those in the background.",
      });
    } finally {
      process.kill(daemon, "SIGCONT");
    }
    await until(() => processesWith(`${command}; :`).length === 0, "the command's end");
  });
});

// rule: bash.md, In pi: The end is told exactly once for ten that end together, in json mode too,
//   which waits for all
it("idle: what ends together is one message that begins a turn, each window in it once", async () => {
  await withBash({}, async (pi) => {
    const { command, release } = held();
    await Promise.all([1, 2, 3, 4, 5].map((i) => start(pi, `${command}; exit ${i}`, `j${i}`)));
    release();
    const told = () => pi.sent.flatMap(({ details }) => details.windows);
    await until(() => told().length >= 5, "five ends");
    assert.deepEqual(told().map(({ name }) => name).sort(), ["j1", "j2", "j3", "j4", "j5"]);
    for (const { customType, how, content } of pi.sent) {
      assert.equal(customType, "bash-window-completed");
      assert.deepEqual(how, { triggerTurn: true, deliverAs: "followUp" });
      assert.match(content, /^Background command finished with exit code \d\nwindow: j\d @\d\n\$ until/);
    }
  });
});

// rule: bash.md, In pi: The end is a follow-up message that triggers a turn, exactly once
it("commands that end before their start was read are told once as well", async () => {
  await withBash({}, async (pi) => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => start(pi, `exit ${i}`)));
    const told = () => pi.sent.flatMap(({ details }) => details.windows.map((one) => one.window));
    await until(() => told().length >= 20, "twenty ends");
    assert.equal(new Set(told()).size, 20);
    assert.equal(told().length, 20);
    assert.equal(pi.statuses.at(-1), undefined);
  });
});

// rule: bash.md, In pi: The end is told exactly once also where Esc empties pi's queue meanwhile
it("during a run nothing is given to pi; at its end it is, after Esc without a turn", async () => {
  await withBash({}, async (pi) => {
    for (const [reason, triggerTurn] of [["stop", true], ["aborted", false]] as const) {
      await pi.emit("agent_start");
      const { command, release } = held();
      await start(pi, command);
      release();
      // Its status is gone once its end was read.
      await until(() => pi.statuses.at(-1) === undefined, "its end");
      assert.deepEqual(pi.sent, []);
      await pi.emit("agent_end", settled(reason));
      assert.equal(pi.sent.length, reason === "stop" ? 1 : 0);
      await pi.emit("agent_settled");
      const [sent, ...others] = pi.sent.splice(0) as Sent[];
      assert.deepEqual([sent?.how.triggerTurn, others], [triggerTurn, []]);
    }
  });
});

// rule: bash.md, In pi: The end is a follow-up message that triggers a turn, exactly once
it("a message that pi refuses is given to it again when it has settled", async () => {
  let refusals = 1;
  const sent: string[] = [];
  const sendMessage = (message: { content: string }) => {
    if (refusals-- > 0) throw new Error("not now");
    sent.push(message.content);
  };
  await withBash({}, async (pi) => {
    await start(pi, "exit 7");
    await until(() => pi.notices.length > 0, "the notice");
    assert.match(pi.notices[0] ?? "", /^execd: the model could not be told yet of @1: not now$/);
    await pi.emit("agent_settled");
    assert.equal(sent.length, 1);
    await pi.emit("agent_settled");
    assert.equal(sent.length, 1);
  }, { sendMessage });
});

// rule: bash.md, In pi: Polls to the model; unpoll; list-polls
it("only the newest check-in waits for the end of a run, and none after the window's end", async () => {
  const settings = {
    bashPollIntervalEnabled: true, minimumPollIntervalSeconds: 0.1,
    tmuxEnabledActions: ["peek", "poll", "unpoll"],
  };
  await withBash(settings, async (pi) => {
    await pi.emit("agent_start");
    const { command, release } = held();
    const ticks = `for i in $(seq 1 6); do echo tick $i; sleep 0.1; done; ${command}`;
    await pi.call("bash", { command: ticks, background: true, pollInterval: 0.1 });
    const peek = () => pi.call("tmux", { action: "peek", window: "@1" }).then(textOf);
    // execd has sent several check-ins before this answer.
    while (!/tick 6/.test(await peek()));
    await pi.emit("agent_end", settled());
    assert.equal(pi.sent.length, 1);
    assert.match(pi.sent.splice(0)[0]?.content ?? "", /^poll: job|^poll: /);
    await pi.emit("agent_start");
    // Three intervals: a check-in comes before the last of these answers.
    for (const from = Date.now(); Date.now() < from + 300; ) await peek();
    await pi.call("tmux", { action: "unpoll", window: "@1" });
    await pi.emit("agent_end", settled());
    assert.deepEqual(pi.sent, [], "unpolled, it has no news");
    await pi.call("tmux", { action: "poll", window: "@1", pollInterval: 0.1 });
    await pi.emit("agent_start");
    release();
    await until(() => pi.statuses.at(-1) === undefined, "its end");
    await pi.emit("agent_end", settled());
    assert.deepEqual(pi.sent.map(({ customType }) => customType), ["bash-window-completed"]);
  });
});

// rule: bash.md, In pi: What was told at a run's end is answered before anything else is waited for
it("json mode: told at a run's end, pi goes on at once; a check-in taken back ends no wait", async () => {
  const settings = {
    bashPollIntervalEnabled: true, minimumPollIntervalSeconds: 0.1,
    tmuxEnabledActions: ["peek", "unpoll"],
  };
  await withBash(settings, async (pi) => {
    const [first, second] = [held(), held()];
    const polled = { command: first.command, background: true, pollInterval: 0.1 };
    await pi.emit("agent_start");
    await pi.call("bash", polled);
    await start(pi, "exit 9");
    await until(() => pi.statuses.at(-1) === "1", "one of both has ended");
    const told = Date.now();
    await pi.emit("agent_end", settled());
    assert.match(pi.sent[0]?.content ?? "", /exit code 9/);
    assert.ok(Date.now() - told < 5_000, "the other one was not waited for");

    await pi.emit("agent_start");
    await pi.call("bash", {
      command: second.command, timeout: 0.2, timeoutAction: "background",
    });
    for (const from = Date.now(); Date.now() < from + 200; ) {
      await pi.call("tmux", { action: "peek", window: "@1" });
    }
    await pi.call("tmux", { action: "unpoll", window: "@1" });
    pi.sent.splice(0);
    let over = false;
    const run = pi.emit("agent_end", settled()).then(() => (over = true));
    // Longer than reports are gathered: whatever came before this wait is not what ends it.
    for (const from = Date.now(); Date.now() < from + 500; ) {
      await pi.call("tmux", { action: "peek", window: "@1" });
    }
    assert.deepEqual([over, pi.sent], [false, []]);
    first.release();
    await run;
    assert.match(pi.sent[0]?.content ?? "", /^Background command finished with exit code 0/);
    second.release();
  }, {}, { mode: "json" });
});

// rule: bash.md, In pi: pollDelivery display: shown without a turn, while pi works too, and no
//   model reads it
it("display-only check-ins without entries are notices; with entries no model reads them", async () => {
  const settings = { bashPollIntervalEnabled: true, pollDelivery: "display" };
  const poll = (pi: Pi) =>
    pi.call("bash", { command: "echo shown; sleep 9", background: true, pollInterval: 0.2 });
  await withBash(settings, async (pi) => {
    await poll(pi);
    await until(() => pi.notices.length > 0, "the notice");
    assert.match(pi.notices[0] ?? "", /^execd: poll: echo @1 \$ echo shown; sleep 9 shown$/);
    assert.deepEqual(pi.sent, []);
  });
  const entries: [string, object][] = [];
  const extra = {
    registerEntryRenderer: () => {},
    appendEntry: (type: string, data: object) => entries.push([type, data]),
  };
  await withBash(settings, async (pi) => {
    await poll(pi);
    await until(() => entries.length > 0, "the entry");
    const [type, data] = entries[0] ?? ["", {}];
    assert.equal(type, "bash-window-poll");
    assert.match(JSON.stringify(data), /"kind":"poll".*"tail":"shown/);
    assert.deepEqual([pi.sent, pi.notices], [[], []]);
  }, extra);
});

// rule: bash.md, In pi: Windows live until pi's process ends: /reload, /new, /fork and /resume keep
//   them
it("a reload in one process: the next instance has the windows, and is told of their end", async () => {
  const manager = (id: string, file?: string) => ({
    sessionManager: { getSessionId: () => id, getSessionFile: () => file },
  });
  const first = new BashPi({}, {}, manager("s1", "/s1.jsonl"));
  await first.start();
  const { command, release } = held();
  await start(first, command, "kept");
  const daemons = processesWith(EXECD).length;
  await first.emit("session_shutdown", { reason: "reload" });
  // Ended while nobody was there to be told.
  release();
  const other = new BashPi({}, {}, manager("s9"));
  await other.emit("session_start", { reason: "reload" });
  assert.doesNotMatch(textOf(await other.call("tmux", { action: "list" })), /kept/);
  const second = new BashPi({}, {}, manager("s1", "/s1.jsonl"));
  assert.ok(second.tools.has("bash"), "its rows can be drawn before session_start");
  await second.emit("session_start", { reason: "reload" });
  await until(() => second.sent.length > 0, "its end");
  assert.match(second.sent[0]?.content ?? "", /window: kept @1/);
  assert.deepEqual([first.sent, other.sent], [[], []]);
  assert.ok(processesWith(EXECD).length >= daemons);
  await second.shutdown();
  await other.shutdown();
  await assert.rejects(first.call("bash", { command: "true" }), /bash: shutting down/);
  await first.shutdown();
});

it("what another version of the extension has left is ended, not taken over", async () => {
  const manager = { sessionManager: { getSessionId: () => "v1", getSessionFile: () => "/v.jsonl" } };
  const first = new BashPi({}, {}, manager);
  await first.start();
  await start(first, "exec sleep 7492");
  await first.emit("session_shutdown", { reason: "reload" });
  await runs("sleep 7492");
  const key = Symbol.for("pi-execd.handover");
  const shared = (globalThis as unknown as Record<symbol, { left: { version: number }[] }>)[key];
  for (const left of shared?.left ?? []) left.version += 1;
  const second = new BashPi({}, {}, manager);
  await second.emit("session_start", { reason: "reload" });
  assert.deepEqual(processesWith("sleep 7492"), []);
  assert.match(textOf(await second.call("tmux", { action: "list" })), /0 window/);
  await second.shutdown();
});

it("an execd that died before /new: the old session is told when it comes back", async () => {
  const manager = (id: string) => ({
    sessionManager: { getSessionId: () => id, getSessionFile: () => `/${id}.jsonl` },
  });
  const first = new BashPi({}, {}, manager("d1"));
  await first.start();
  await first.emit("agent_start");
  await start(first, "exec sleep 7493", "dies");
  kill(parentOf(await runs("sleep 7493")));
  await until(() => first.notices.length > 0, "the loss is noticed");
  await first.emit("session_shutdown", { reason: "new" });
  const second = new BashPi({}, {}, manager("d2"));
  await second.emit("session_start", { reason: "new", previousSessionFile: "/d1.jsonl" });
  await second.emit("session_shutdown", { reason: "resume" });
  const third = new BashPi({}, {}, manager("d1"));
  await third.emit("session_start", { reason: "resume", previousSessionFile: "/d2.jsonl" });
  await until(() => third.sent.length > 0, "it is told");
  assert.match(third.sent[0]?.content ?? "", /was lost: dies @1/);
  assert.deepEqual([first.sent, second.sent], [[], []]);
  await third.shutdown();
});

// rule: bash.md, In pi: Windows live until pi's process ends: /reload, /new, /fork and /resume keep
//   them
it("a foreground command ends with its session, also where pi does not abort it", async () => {
  const pi = new BashPi({});
  await pi.start();
  const call = pi.call("bash", { command: "exec sleep 7490" });
  const failed = assert.rejects(call, /Command aborted/);
  await runs("sleep 7490");
  await pi.emit("session_shutdown", { reason: "new" });
  await failed;
  assert.deepEqual(processesWith("sleep 7490"), []);
  await pi.emit("session_start", { reason: "new" });
  assert.equal(textOf(await pi.call("bash", { command: "echo again" })), "again\n");
  await pi.shutdown();
});

// rule: bash.md, In pi: On another machine nothing of this one is sent
it("on another machine: its directory, its shell; nothing of this one is sent", async () => {
  process.env.EXECD_COMMAND = `cd ${dir} && exec '${EXECD}'`;
  process.env.EXECD_TEST_HERE = "1";
  try {
    await withBash({}, async (pi) => {
      const command = 'pwd; echo "${EXECD_TEST_HERE-none} $AI_AGENT"';
      // The line's own environment is the other machine's.
      assert.match(textOf(await pi.call("bash", { command })), new RegExp(`^${dir}\n`));
      const started = textOf(await start(pi, "sleep 9"));
      assert.match(started, /\n\nAttach with: execd attach @2$/);
    });
  } finally {
    delete process.env.EXECD_COMMAND;
    delete process.env.EXECD_TEST_HERE;
  }
});

// rule: pi.md, The extension: A log on another machine is named as one there: in headers, footers,
//   wakes and rows
it("on another machine: what is lost has its log there, and none is a file here", async () => {
  process.env.EXECD_COMMAND = `exec '${EXECD}'`;
  try {
    await withBash({}, async (pi) => {
      await start(pi, "echo up; exec sleep 7493", "far");
      const windows = listBashWindows(resolveTmuxBashContext(pi.ctx as never, { tmuxWindowScope: "all" }));
      assert.deepEqual(windows.map(({ title, outputFile }) => [title, outputFile]), [["far", undefined]]);
      kill(parentOf(await runs("sleep 7493")));
      await until(() => pi.sent.length > 0, "the word of it");
      assert.match(JSON.stringify(pi.sent), /Its output so far, on the machine where it ran: \//);
    });
  } finally {
    delete process.env.EXECD_COMMAND;
  }
});

// rule: bash.md, In pi: The end is told exactly once also where execd is killed
it("killed execd: what ran is lost, and said so once", async () => {
  await withBash({}, async (pi) => {
    await start(pi, "exec sleep 7491", "gone");
    kill(parentOf(await runs("sleep 7491")));
    await until(() => pi.sent.length > 0, "the word of it");
    assert.match(pi.sent[0]?.content ?? "", /^Background command was lost: gone @1\. execd was killed/);
    const text = textOf(await pi.call("bash", { command: "echo back" }));
    assert.match(text, /^\[execd was restarted: [^]*\]\nback\n$/);
    assert.equal(pi.sent.length, 1);
  });
});

// rule: bash.md, In pi: pi-execd/core: loadTmuxBashConfig, resolveTmuxBashContext, listBashWindows
it("core: the windows of a context, and none of others", async () => {
  const ctx = (id: string, cwd = dir) => ({ cwd, sessionManager: { getSessionId: () => id } });
  await withBash({}, async (pi) => {
    await start(pi, "sleep 9", "mine");
    const titles = (context: object) =>
      listBashWindows(resolveTmuxBashContext(context as never, loadTmuxBashConfig()))
        .map(({ id, index, title }) => [id, index, title]);
    assert.deepEqual(titles(ctx("s1")), [["@1", 1, "mine"]]);
    assert.deepEqual(titles(ctx("s2")), []);
    const of = (tmuxWindowScope: "all" | "git-root", cwd?: string) =>
      listBashWindows(resolveTmuxBashContext(ctx("s2", cwd), { tmuxWindowScope })).length;
    assert.deepEqual([of("all"), of("git-root"), of("git-root", tmpdir())], [1, 1, 0]);
    await pi.call("tmux", { action: "kill", window: "@1" });
    assert.deepEqual(titles(ctx("s1")), []);
  }, {}, ctx("s1"));
});

// rule: bash.md, In pi: pi-execd/core: loadTmuxBashConfig, resolveTmuxBashContext, listBashWindows
// rule: bash.md, tmux-bash.jsonc, key by key: `autoCloseWindowsOnCompletion`
it("core: with autoCloseWindowsOnCompletion: false what has ended stays, bounded", async () => {
  await withBash({ autoCloseWindowsOnCompletion: false }, async (pi) => {
    await start(pi, "exit 3", "ended");
    await until(() => pi.sent.length > 0, "its end");
    await pi.call("bash", { command: "true", name: "short" });
    const listed = () => listBashWindows({ filters: {} }).map(({ id, title }) => `${title} ${id}`);
    assert.deepEqual(listed(), ["ended @1", "short @2"]);
    const list = async () => textOf(await pi.call("tmux", { action: "list" }));
    assert.match(await list(), /2 window\(s\)\n+ {2}ended @1 .*\n {2}short @2 /);
    assert.equal(pi.statuses.at(-1), undefined, "none of them runs");
    for (let i = 0; i < 70; i++) await pi.call("bash", { command: "true", name: "many" });
    assert.equal(listed().length, 64);
    assert.match(await list(), /64 window/);
    await pi.call("tmux", { action: "kill", window: "@72" });
    assert.equal(listed().length, 63);
  });
});

// rule: bash.md, In pi: Outside of git is fine
it("the git root is found upwards, also where .git is a file", () => {
  const root = join(dir, "repo");
  mkdirSync(join(root, "a", "b"), { recursive: true });
  assert.equal(gitRootOf(join(root, "a", "b")), undefined);
  writeFileSync(join(root, ".git"), "gitdir: elsewhere");
  assert.equal(gitRootOf(join(root, "a", "b")), root);
  assert.equal(gitRootOf(root), root);
  const context = resolveTmuxBashContext({ cwd: join(root, "a") }, { tmuxWindowScope: "git-root" });
  assert.deepEqual([context.gitRoot, context.filters], [root, { gitRoot: root }]);
});

// The value had the words, and the code that tmux-bash's README gives for a footer puts them behind
// the value: it said "2 background procs background procs".
// rule: bash.md, In pi: The status backgroundBashTmuxCommands: a number of which the README's code
//   makes `2 background procs`, as pi's own footer does with the words beside it; cleared at 0,
//   foreground commands don't count
it("a footer by tmux-bash's README counts the windows, execd's status only what that doesn't", async () => {
  const key = "backgroundBashTmuxCommands";
  const formatBackgroundBashStatus = (value: string) =>
    `${value} background proc${value === "1" ? "" : "s"}`;
  const footers = (statuses: Map<string, string>) => {
    const status = statuses.get(key);
    // As pi's footer has them: by key, in one line.
    const pis = [...statuses].sort(([a], [b]) => a.localeCompare(b)).map(([, text]) => text);
    return [status ? formatBackgroundBashStatus(status) : "", pis.join(" ")];
  };
  for (const [count, words] of [[0, ""], [1, "1 background proc"], [2, "2 background procs"]]) {
    const shown = backgroundStatus(Number(count)).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as [string, string]]);
    assert.deepEqual(footers(new Map(shown)), [words, words]);
  }
  await withBash({}, async (pi) => {
    for (const _ of [1, 2]) await pi.call("bash", { command: "exec sleep 60", background: true });
    await until(() => pi.footer.get(key) === "2", "both run");
    const named = "execd: #1 exec sleep 60 · #2 exec sleep 60";
    assert.deepEqual(footers(pi.footer), ["2 background procs", `2 background procs ${named}`]);
    await pi.call("tmux", { action: "kill", window: "@1" });
    await pi.call("tmux", { action: "kill", window: "@2" });
    await until(() => pi.footer.size === 0, "none runs");
  });
});

// rule: bash.md, tmux-bash.jsonc, key by key: `displayCommandStartMarker`
it("the shown command begins behind the last line that is the marker", () => {
  const cases: [string, string, string][] = [
    ["ls", "# SHIM_END", "ls"],
    ["a\n# SHIM_END\nls", "# SHIM_END", "ls"],
    ["a\n  # SHIM_END \n# SHIM_END\n\n  ls\nx", "# SHIM_END", "ls\nx"],
    ["echo '# SHIM_END' x", "# SHIM_END", "echo '# SHIM_END' x"],
    ["a\n# SHIM_END\n", "# SHIM_END", "a\n# SHIM_END\n"],
    ["a\n# SHIM_END\nls", "", "a\n# SHIM_END\nls"],
  ];
  for (const [command, marker, shown] of cases) {
    assert.equal(shownCommand(command, marker), shown, command);
  }
});

// rule: bash.md, In pi: attachCommand: the absolute path where PATH has another execd, --pid where
//   several run
it("the attach command: the program's path where PATH has another, --pid where several run", () => {
  const bin = join(dir, "bin");
  const run = join(dir, "run", "execd");
  for (const made of [bin, run]) mkdirSync(made, { recursive: true });
  writeFileSync(join(bin, "execd"), "#!/bin/sh\n", { mode: 0o755 });
  const env = { PATH: `${bin}:/usr/bin`, XDG_RUNTIME_DIR: join(dir, "run") };
  const own = { pid: process.pid, program: join(bin, "execd") };
  assert.equal(attachCommand(own, env, dir), "execd attach @123");
  assert.equal(attachCommand({ ...own, program: "/opt/execd" }, env, dir), "/opt/execd attach @123");
  assert.equal(attachCommand({ ...own, program: "/opt/my execd" }, env, dir),
    "'/opt/my execd' attach @123");
  assert.equal(attachCommand(own, { ...env, PATH: "/usr/bin" }, dir), `${bin}/execd attach @123`);
  assert.equal(attachCommand({}, env, dir), "execd attach @123");
  writeFileSync(join(run, `${process.pid}.sock`), "");
  assert.equal(attachCommand(own, env, dir), "execd attach @123");
  const inTmp = join(dir, `execd-${process.getuid?.()}`);
  mkdirSync(inTmp);
  writeFileSync(join(inTmp, "1.sock"), "");
  assert.equal(attachCommand(own, env, dir), `execd attach @123 --pid ${process.pid}`);
  rmSync(inTmp, { recursive: true });
  assert.equal(attachCommand(own, env, dir), "execd attach @123");
  writeFileSync(join(run, "1.sock"), "");
  assert.equal(attachCommand(own, env, dir), `execd attach @123 --pid ${process.pid}`);
  rmSync(join(run, "1.sock"));
  writeFileSync(join(run, "99999999.sock"), "");
  assert.equal(attachCommand(own, env, dir), "execd attach @123", "that one is dead");
});

it("ends of windows that are not ours are not kept without bound, nor told", () => {
  const background = new Background();
  const told: unknown[] = [];
  background.listen({ onChange: () => {}, onReport: (report) => told.push(report) > 0 });
  const note = (id: number) => ({
    window: `@${id}`, name: "n", command: "c", tail: "", text: "t", exit_code: 0,
  });
  for (let id = 1; id <= 1_000; id++) background.onNotification("window_exited", note(id));
  const scope = { piSession: "", gitRoot: "/" };
  const open = (id: number) => background.opened({
    window: `@${id}`, name: "n", command: "c", scope, startedAtMs: 0,
  });
  open(1_000);
  assert.deepEqual([told.length, background.running], [1, 0], "its end had come before");
  open(1);
  assert.deepEqual([told.length, background.running], [1, 1], "that one was forgotten");
  for (const junk of [null, 7, {}, { window: 7 }, { window: "@1" }, { session_id: "x" }]) {
    for (const method of ["window_exited", "window_poll", "session_exited", "session_started"]) {
      assert.doesNotThrow(() => background.onNotification(method, junk));
    }
  }
  background.close();
});
