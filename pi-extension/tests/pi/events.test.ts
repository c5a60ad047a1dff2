/**
 * What the model learns of ends, in the real pi: each end stands once in what the model is asked
 * with, whatever happens meanwhile.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { background } from "./lib/bash.ts";
import { runJson } from "./lib/json.ts";
import { call, exec, poll, turn } from "./lib/model.ts";
import type { Call, Turn } from "./lib/model.ts";
import { EXTENSION_DIR, FIXTURES_DIR, execdBinary, piCommand } from "./lib/paths.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";
import { until } from "./lib/waiting.ts";

const WAKE = "unified-exec-completed";
const STATUS = "unified-exec.sessions";
const BOTH = ["--exec-tools", "unified,bash"];

/** A session that ends with this exit once its file is there. */
function session(code: number, args: Record<string, unknown> = {}): Call {
  const cmd = `until [ -e go${code} ]; do sleep 0.05; done; exit ${code}`;
  return exec(cmd, { yield_time_ms: 250, ...args });
}

/** Lets such a session end, and waits until the shell is gone. */
function letEnd(code: number): Call {
  return exec(`touch go${code}; while pgrep -f "exit ${code}$" >/dev/null; do sleep 0.05; done`);
}

/** How often the model was told of this exit, in all that it was asked with last. */
function tellings(place: Scratch, exit: string): number {
  const messages = place.requests().at(-1)?.messages ?? [];
  const told = messages.filter(({ role }) => role !== "assistant").map(({ text }) => text);
  const events = new RegExp(`^event: session \\d+ \\([^\\n]*\\) ${exit}, `, "gm");
  const wakes = new RegExp(`^- session_id=\\d+ · ${exit.replace("exited ", "exit_code=")} ·`, "gm");
  const itself = new RegExp(`^exit_code: ${exit.replace("exited ", "")}$`, "gm");
  return [events, wakes, itself].flatMap((one) => told.join("\n").match(one) ?? []).length;
}

/** Ends a session of the pi while that is idle. */
async function endIdle(rpc: Rpc, place: Scratch, code: number, left: number): Promise<void> {
  const from = rpc.mark();
  writeFileSync(join(place.cwd, `go${code}`), "");
  const words = new RegExp(`^execd: ${left} session`);
  await rpc.status(STATUS, left === 0 ? undefined : words, from);
}

/** A turn that is played for a prompt, and the answer behind it. */
function asked(prompt: string, ...calls: Call[]): Turn[] {
  return [{ when: `^${prompt}$`, text: "Yes.", calls }, turn(`That was ${prompt}.`)];
}

// rule: pi.md, What the model learns of ends: with the next result of these tools, in a line of its
//   own
test("an end that no call waited for is told by the next result, once", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn("Start.", session(41)),
      turn("Let it end.", letEnd(41)),
      turn("Something.", exec("true")),
      turn("More.", exec("true"), call("list_sessions"), call("kill_session",
        { session_id: 77 })),
      turn("Done."),
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.equal(tellings(place, "exited 41"), 1);
  const texts = run.events.filter(({ type }) => type === "tool_execution_end")
    .map(({ result }) => JSON.stringify(result));
  assert.equal(texts.filter((text) => text.includes('"events":[')).length, 1);
  assert.deepEqual(run.custom(WAKE), []);
});

// rule: pi.md, What the model learns of ends: a wake that waits is not sent where a result has told
//   its end
test("a wake and a call at the same time: one of them tells it", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    script: [
      turn("Start.", session(42, { on_exit: "wake" })),
      turn("Let it end.", letEnd(42)),
      turn("Two at once.", exec("true"), exec("true")),
      turn("Done."),
      { when: "background session ended", text: "Woken." },
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.equal(tellings(place, "exited 42"), 1);
  assert.deepEqual(run.custom(WAKE), []);
});

// rule: pi.md, What the model learns of ends: an end that a message has told is no line
test("what a wake has told is not told by a result", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      ...asked("start", session(43, { on_exit: "wake" })),
      { when: "background session ended", text: "Woken.", calls: [exec("true")] },
      turn("I see."),
      ...asked("again", exec("true")),
    ],
  });
  await rpc.prompt("start");
  const from = rpc.mark();
  await endIdle(rpc, place, 43, 0);
  await rpc.settled(from);
  await rpc.prompt("again");
  assert.equal(rpc.custom(WAKE).length, 1);
  assert.equal(tellings(place, "exited 43"), 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: what stands in a result that pi did not keep is told
//   by the next one
test("a result that another extension makes an error has told nothing", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    extensions: [join(FIXTURES_DIR, "failing-results.ts"), EXTENSION_DIR],
    script: [
      turn("Start.", session(44)),
      turn("And this.", session(45)),
      turn("Let it end.", exec("touch go44")),
      // Its result, with its own exit and perhaps the other's, is an error.
      turn("Wait.", exec("touch go45"), poll(30_000)),
      turn("Something.", exec("true")),
      turn("More.", exec("true")),
      turn("Done."),
    ],
  });
  const failed = run.toolEnd("write_stdin");
  assert.equal(failed.isError, true);
  assert.match(failed.text, /^exit_code: 45$/m);
  // The error's text stands there too, as pi and the other extension have made it.
  assert.equal(tellings(place, "exited 45"), 2);
  const more = /^event: session 1 .* exited 44/m.test(failed.text) ? 1 : 0;
  assert.equal(tellings(place, "exited 44"), 1 + more);
});

for (const isLate of [false, true]) {
  const what = isLate ? "comes too late" : "comes after it";
  // rule: pi.md, What the model learns of ends: Esc does not lose an end
  test(`Esc when execd has answered, and the answer ${what}: told once`, async (t) => {
    const place = scratch(t);
    const relay = join(place.dir, "execd");
    const program = JSON.stringify(process.execPath);
    const script = JSON.stringify(join(FIXTURES_DIR, "relay.mjs"));
    writeFileSync(relay, `#!/bin/sh\nexec ${program} ${script} "$@"\n`);
    chmodSync(relay, 0o755);
    const rpc = new Rpc(place, {
      env: {
        EXECD_BIN: relay,
        RELAY_EXECD: execdBinary(),
        RELAY_DIR: place.dir,
        RELAY_UNTIL: isLate ? "file" : "cancel",
      },
      script: [
        ...asked("start", session(46)),
        { when: "^go on$", text: "Now.", calls: [exec("true")] },
        ...asked("and now", exec("true")),
        ...asked("once more", exec("true")),
      ],
    });
    await rpc.prompt("start");
    await endIdle(rpc, place, 46, 0);
    const from = rpc.mark();
    await rpc.say("go on");
    await until("the answer that is held back", () => existsSync(place.path("held")));
    await rpc.command("abort");
    const end = await rpc.toolEnd("exec_command", from);
    assert.equal(end.isError, isLate, end.text);
    if (isLate) writeFileSync(place.path("release"), "");
    await rpc.settled(from);
    await rpc.prompt("and now");
    await rpc.prompt("once more");
    assert.equal(tellings(place, "exited 46"), 1);
    assert.equal((await rpc.quit()).code, 0);
  });
}

for (const args of [[], BOTH]) {
  const which = args.length > 0 ? "an execd that is kept" : "an execd that is started anew";
  // rule: pi.md, What the model learns of ends: /reload, /resume and /fork hand on what was not told
  test(`/reload, /new and back, with ${which}: once, and only to who knew the session`, async (t) => {
    const place = scratch(t);
    const rpc = new Rpc(place, {
      args,
      script: [
        ...asked("start", session(47), session(48)),
        ...asked("reloaded", exec("true")),
        ...asked("once more", exec("true"), session(49), session(50)),
        ...asked("elsewhere", exec("true")),
        ...asked("back", exec("true")),
        ...asked("and again", exec("true")),
      ],
    });
    await rpc.prompt("start");
    await endIdle(rpc, place, 47, 1);
    await rpc.say("/test-reload");
    await rpc.say("/test-reload");
    await rpc.prompt("reloaded");
    const ended = () => [
      tellings(place, "exited 47"), tellings(place, "was killed \\(the user: /\\w+\\)"),
    ];
    assert.deepEqual(ended(), [1, 1]);
    await rpc.prompt("once more");
    assert.deepEqual(ended(), [1, 1]);
    await endIdle(rpc, place, 49, 1);
    const { data } = await rpc.command("get_state");
    await rpc.command("new_session");
    await rpc.prompt("elsewhere");
    assert.deepEqual([...ended(), tellings(place, "exited 49")], [0, 0, 0]);
    await rpc.command("switch_session", { sessionPath: data?.["sessionFile"] });
    await rpc.prompt("back");
    await rpc.prompt("and again");
    assert.deepEqual([...ended(), tellings(place, "exited 49")], [1, 2, 1]);
    assert.equal((await rpc.quit()).code, 0);
  });
}

// rule: pi.md, What the model learns of ends: what was not told when pi ended is told to a later
//   `pi --continue`
test("pi quits, and others go on: what was not told and what ended with pi, once", async (t) => {
  const place = scratch(t);
  const script = [
    ...asked("start", session(56), session(57)),
    ...asked("later", exec("true")),
    ...asked("once more", exec("true")),
    ...asked("elsewhere", session(58)),
    ...asked("back", exec("true")),
  ];
  const ended = () => [
    tellings(place, "exited 56"), tellings(place, "ended when pi quit"),
    tellings(place, "exited 58"),
  ];
  const first = new Rpc(place, { script });
  await first.prompt("start");
  await endIdle(first, place, 56, 1);
  assert.equal((await first.quit()).code, 0);
  // This one tells nothing, and leaves it to the next.
  assert.equal((await new Rpc(place, { script, args: ["--continue"] }).quit()).code, 0);
  const third = new Rpc(place, { script, args: ["--continue"] });
  await third.prompt("later");
  assert.deepEqual(ended(), [1, 1, 0]);
  assert.equal((await third.quit()).code, 0);
  const fourth = new Rpc(place, { script, args: ["--continue"] });
  await fourth.prompt("once more");
  assert.deepEqual(ended(), [1, 1, 0]);
  // Another conversation knows nothing of it, and is gone on with by a pi that began yet another.
  await fourth.command("new_session");
  await fourth.prompt("elsewhere");
  assert.deepEqual(ended(), [0, 0, 0]);
  await endIdle(fourth, place, 58, 0);
  const { data } = await fourth.command("get_state");
  await fourth.command("new_session");
  assert.equal((await fourth.quit()).code, 0);
  const fifth = new Rpc(place, { script });
  await fifth.command("switch_session", { sessionPath: data?.["sessionFile"] });
  await fifth.prompt("back");
  assert.deepEqual(ended(), [0, 0, 1]);
  assert.equal((await fifth.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: /reload, /resume and /fork hand on what was not told
test("/fork: both conversations are told, each once", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      ...asked("start", session(59)),
      ...asked("nothing"),
      ...asked("forked", exec("true")),
      ...asked("once more", exec("true")),
      ...asked("back", exec("true")),
    ],
  });
  await rpc.prompt("start");
  await rpc.prompt("nothing");
  const { data: before } = await rpc.command("get_state");
  await endIdle(rpc, place, 59, 0);
  const { data } = await rpc.command("get_fork_messages");
  const messages = data?.["messages"] as { entryId: string }[];
  await rpc.command("fork", { entryId: messages.at(-1)?.entryId });
  await rpc.prompt("forked");
  await rpc.prompt("once more");
  assert.equal(tellings(place, "exited 59"), 1);
  await rpc.command("switch_session", { sessionPath: before?.["sessionFile"] });
  await rpc.prompt("back");
  assert.equal(tellings(place, "exited 59"), 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: with the next result of these tools, in a line of its
//   own
test("a script of codemode that calls a tool is told as the model is, once", async (t) => {
  const place = scratch(t);
  const [program, ...words] = piCommand();
  const env = { HOME: place.dir, PI_CODING_AGENT_DIR: place.agentDir, PI_OFFLINE: "1" };
  const version = execFileSync(program, [...words, "--version"], { env, encoding: "utf8" });
  if (/^0\./.test(version.trim())) return t.skip("this pi has no codemode");
  const code = "return await tools.exec_command({ cmd: 'true' });";
  const rpc = new Rpc(place, {
    args: ["--tools", "+codemode"],
    script: [
      ...asked("start", session(60)),
      ...asked("code", call("codemode", { code })),
      ...asked("once more", exec("true")),
      ...asked("reloaded", exec("true")),
    ],
  });
  await rpc.prompt("start");
  await endIdle(rpc, place, 60, 0);
  await rpc.prompt("code");
  // It stands in the text that the script has returned.
  assert.equal(tellings(place, "exited 60"), 1);
  await rpc.prompt("once more");
  await rpc.say("/test-reload");
  await rpc.prompt("reloaded");
  assert.equal(tellings(place, "exited 60"), 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: what people end or look at is still told
test("people look at an end, and end another: the model is told of both", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      ...asked("start", session(51), session(52)),
      ...asked("and now", exec("true")),
      ...asked("once more", exec("true")),
    ],
  });
  await rpc.prompt("start");
  await endIdle(rpc, place, 51, 1);
  await rpc.choose("/jobs", () => undefined);
  const from = rpc.mark();
  await rpc.say("/kill 2");
  await rpc.status(STATUS, undefined, from);
  await rpc.prompt("and now");
  await rpc.prompt("once more");
  assert.equal(tellings(place, "exited 51"), 1);
  assert.equal(tellings(place, "was killed \\(the user\\), ended by SIGTERM"), 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: the end of a window is told by its message alone
test("the end of a window is told by its message, and by no result of the other tools", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BOTH,
    script: [
      ...asked("start", background("until [ -e go53 ]; do sleep 0.05; done; exit 53",
        { name: "w" })),
      { when: "exit code 53", text: "Told.", calls: [exec("true")] },
      turn("I see."),
      ...asked("and now", exec("true")),
    ],
  });
  await rpc.prompt("start");
  const from = rpc.mark();
  writeFileSync(join(place.cwd, "go53"), "");
  await rpc.settled(from);
  await rpc.prompt("and now");
  assert.equal(tellings(place, "exited 53"), 0);
  const all = place.requests().at(-1)?.messages.map(({ text }) => text).join("\n") ?? "";
  assert.equal(all.match(/exit code 53/g)?.length, 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: pi.md, What the model learns of ends: compaction
test("a compaction in between: what was told is not told again, and the rest once", async (t) => {
  const place = scratch(t);
  const settings = join(place.agentDir, "settings.json");
  const compaction = { enabled: false, keepRecentTokens: 1 };
  writeFileSync(settings, JSON.stringify({ quietStartup: true, compaction }));
  const rpc = new Rpc(place, {
    script: [
      ...asked("start", session(54), session(55)),
      ...asked("and now", exec("true")),
      { when: "summar", text: "A summary of all that." },
      ...asked("once more", exec("true")),
      ...asked("and again", exec("true")),
    ],
  });
  await rpc.prompt("start");
  await endIdle(rpc, place, 54, 1);
  await rpc.prompt("and now");
  assert.equal(tellings(place, "exited 54"), 1);
  await endIdle(rpc, place, 55, 0);
  await rpc.command("compact");
  await rpc.prompt("once more");
  await rpc.prompt("and again");
  const all = place.requests().at(-1)?.messages.map(({ text }) => text).join("\n") ?? "";
  assert.match(all, /A summary of all that/);
  assert.equal(tellings(place, "exited 55"), 1);
  assert.equal(tellings(place, "exited 54"), 0, "the summary stands for it");
  assert.equal((await rpc.quit()).code, 0);
});
