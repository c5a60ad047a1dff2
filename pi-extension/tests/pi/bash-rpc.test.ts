/**
 * rpc mode with the bash tools: windows that outlive pi's sessions, whom their ends are told, the
 * footer's count, notices, Esc.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BASH, background, bash, COMPLETED, configure, STATUS, tmux } from "./lib/bash.ts";
import { textOf } from "./lib/events.ts";
import { exec, newest, turn } from "./lib/model.ts";
import type { Turn } from "./lib/model.ts";
import { processesLike, processesOf, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";

const until = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;

/** The turns of one look at the list, begun by the prompt `list`. */
const looks = (times: number): Turn[] => Array.from({ length: times }, () => [
  { when: "^list$", text: "Look.", calls: [tmux("list")] },
  { when: "^Background windows", text: "Looked." },
]).flat();

async function listed(rpc: Rpc): Promise<string> {
  const from = rpc.mark();
  await rpc.prompt("list");
  return (await rpc.toolEnd("tmux", from)).text;
}

async function sessionFile(rpc: Rpc): Promise<string> {
  return String((await rpc.command("get_state")).data?.["sessionFile"]);
}

function release(place: Scratch, file: string): void {
  writeFileSync(join(place.cwd, file), "");
}

// rule: bash.md, In pi: Windows live until pi's process ends: /reload, /new, /fork and /resume keep
//   them
// rule: bash.md, In pi: tmuxWindowScope: pi-session, git-root, all
test("windows live through /reload, /new, /fork and /resume, and end with pi", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      { when: "^start$", text: "Start.", calls: [background("exec sleep 7440", { name: "lives" })] },
      { when: "^Started in", text: "Started." },
      ...looks(6),
    ],
  });
  await rpc.prompt("start");
  const process = await waitProcess(place.tag, /^sleep 7440$/);
  const first = await sessionFile(rpc);
  const has = /^Background windows — 1 window\(s\)\n+ {2}lives @1 \(\d+s\)$/;
  const none = /^Background windows — 0 window\(s\)$/;

  await rpc.say("/test-reload");
  assert.match(await listed(rpc), has);
  await rpc.command("new_session");
  assert.match(await listed(rpc), none, "a new session has windows of its own");
  await rpc.command("switch_session", { sessionPath: first });
  assert.match(await listed(rpc), has);
  await rpc.command("clone");
  assert.notEqual(await sessionFile(rpc), first);
  assert.match(await listed(rpc), has, "a fork goes on with its parent's conversation");
  await rpc.say("/test-reload");
  assert.match(await listed(rpc), has, "also after a reload");
  const answer = await rpc.command("get_fork_messages");
  const [message] = answer.data?.["messages"] as { entryId: string }[];
  await rpc.command("fork", { entryId: message?.entryId });
  assert.match(await listed(rpc), has);

  const pids = processesLike(place.tag, /^sleep 7440$/).map(({ pid }) => pid);
  assert.deepEqual(pids, [process.pid], "it is the same process");
  assert.deepEqual(rpc.custom(COMPLETED), []);
  assert.equal((await rpc.quit()).code, 0, rpc.stderr);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash.md, In pi: Ends of windows are told to the session they belong to
test("an end is told to the session that began it: at once after /reload", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Start.", background(`${until("go")}; echo late`, { name: "late" })),
      turn("Started."),
      { when: "finished with exit code 0", text: "I was told." },
    ],
  });
  await rpc.prompt("start");
  await rpc.say("/test-reload");
  const from = rpc.mark();
  release(place, "go");
  await rpc.settled(from);
  assert.equal(rpc.custom(COMPLETED).length, 1);
  assert.match(textOf(rpc.custom(COMPLETED)[0]?.content), /window: late @1\n[^]*```\nlate\n```/);
  assert.equal(rpc.said().at(-1), "I was told.");
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: Ends of windows are told to the session they belong to
test("… after /new when it comes back; meanwhile a notice says so", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Start.", background(`${until("go")}; exit 6`, { name: "away" })),
      turn("Started."),
      { when: "^hello$", text: "Hello." },
      { when: "finished with exit code 6", text: "I was told." },
    ],
  });
  await rpc.prompt("start");
  const first = await sessionFile(rpc);
  await rpc.command("new_session");
  const from = rpc.mark();
  release(place, "go");
  const notice = await rpc.notice(/away @1 of another session/, from);
  assert.equal(notice.kind, "info");
  assert.match(notice.text,
    /^execd: away @1 of another session ended with exit code 6; that session will be told$/);
  await rpc.prompt("hello");
  assert.deepEqual(rpc.custom(COMPLETED), []);
  const back = rpc.mark();
  await rpc.command("switch_session", { sessionPath: first });
  await rpc.settled(back);
  assert.equal(rpc.custom(COMPLETED).length, 1);
  assert.equal(rpc.said().at(-1), "I was told.");
  assert.match(newest(place.requests().at(-1)).text, /finished with exit code 6/);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: tmuxWindowScope: pi-session, git-root, all
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxWindowScope`
test("tmuxWindowScope: all sessions, or those of one git repository, see and hear of it", async (t) => {
  for (const scope of ["all", "git-root"]) {
    const place = scratch(t);
    configure(place, { tmuxWindowScope: scope });
    mkdirSync(join(place.cwd, ".git"));
    mkdirSync(join(place.cwd, "below"));
    const rpc = new Rpc(place, {
      args: BASH,
      script: [
        turn("Start.", background(until("go"), { name: "wide" })),
        turn("Started."),
        ...looks(1),
        { when: "finished with exit code 0", text: "I was told." },
      ],
    });
    await rpc.prompt("start");
    await rpc.command("new_session");
    // With "all" those of other pis of this user stand behind it.
    assert.match(await listed(rpc), /\d+ window\(s\)\n+ {2}wide @1 /, scope);
    const from = rpc.mark();
    release(place, "go");
    await rpc.settled(from);
    assert.equal(rpc.custom(COMPLETED).length, 1);
    assert.equal(rpc.said().at(-1), "I was told.");
    assert.equal((await rpc.quit()).code, 0);
  }
});

// Each pi has an execd of its own, and "all" was all of one pi.
// rule: bash.md, In pi: tmuxWindowScope all has the windows of other pis: list, peek, kill, by
//   addresses that are unambiguous; asked within 200 ms over sockets that can be trusted
test("tmuxWindowScope all: a second pi lists, shows and ends the window of the first", async (t) => {
  const [one, two] = [scratch(t), scratch(t)];
  const name = `of-${one.tag.slice(0, 8)}`;
  const first = new Rpc(one, {
    args: BASH,
    script: [
      turn("Start.", background("echo out of one; exec sleep 7442", { name })),
      turn("Started."),
      { when: "finished with exit code", text: "I was told." },
    ],
  });
  await first.prompt("start");
  configure(two, { tmuxWindowScope: "all" });
  const address = `{{last:${name} (execd-[-0-9a-z]+:@\\d+) }}`;
  const second = new Rpc(two, {
    args: BASH,
    script: [
      ...looks(8),
      { when: "^peek$", text: "Peek.", calls: [tmux("peek", { window: address })] },
      { when: "^kill$", text: "Kill.", calls: [tmux("kill", { window: address })] },
      { when: "^(window:|Killed)", text: "Done." },
    ],
  });
  // Who takes longer than 200 ms is not listed, but named.
  while (!(await listed(second)).includes(name));
  let from = second.mark();
  await second.prompt("peek");
  assert.match((await second.toolEnd("tmux", from)).text,
    new RegExp(`^window: ${name} execd-\\d+\\S*:@1\n\\$ echo out of one; .*\n+out of one`));
  const told = first.mark();
  from = second.mark();
  await second.prompt("kill");
  assert.match((await second.toolEnd("tmux", from)).text,
    new RegExp(`^Killed background window: ${name} execd-\\d+\\S*:@1\\.$`));
  await first.settled(told);
  assert.equal(first.said().at(-1), "I was told.");
  for (const rpc of [first, second]) assert.equal((await rpc.quit()).code, 0);
});

// The execd of the session before goes on, and went on counting where it was: its next window had
// the id of one that the resumed conversation names.
// rule: unified-exec.md, exec_command, params: `reserve_session_ids`: ids of a conversation that
//   goes on are given to nobody, in a running execd
test("a resumed conversation: its windows are nobody else's, in an execd that was taken over", async (t) => {
  const place = scratch(t);
  const one = background("exec sleep 7441", { name: "late" });
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      ...["first", "second"].flatMap((name) => [
        { when: `^${name}$`, text: name, calls: [one] },
        { when: "^Started in background window", text: "Started." },
      ]),
    ],
  });
  await rpc.prompt("first");
  // A conversation of another time: it is this one, but for the id that it was given.
  const old = place.path("old.jsonl");
  writeFileSync(old, readFileSync(await sessionFile(rpc), "utf8").replaceAll("@1", "@9"));
  await rpc.command("switch_session", { sessionPath: old });
  const from = rpc.mark();
  await rpc.prompt("second");
  assert.match((await rpc.toolEnd("bash", from)).text, /^Started in background window: late @10\./);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: session_started and list_sessions name the window of what bash started, so
//   that it is counted apart
// rule: bash.md, In pi: The status backgroundBashTmuxCommands: a number of which the README's code
//   makes `2 background procs`, as pi's own footer does with the words beside it; cleared at 0,
//   foreground commands don't count
test("the footer counts what runs in the background, foreground commands not", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Three.", background(until("one")), background(until("two")), bash("sleep 1")),
      turn("Done."),
      { when: "finished with", text: "Told." },
      { when: "finished with", text: "Told." },
    ],
  });
  await rpc.prompt("start");
  await rpc.status(STATUS, /^1$/);
  await rpc.status(STATUS, /^2$/);
  const values = rpc.records.filter((one) => one.method === "setStatus" && one.statusText);
  assert.deepEqual(
    [...new Set(values.map((one) => `${one.statusKey}: ${one.statusText}`))]
      .filter((one) => one.startsWith(STATUS)),
    [`${STATUS}Words: background proc`, `${STATUS}: 1`, `${STATUS}Words: background procs`,
      `${STATUS}: 2`],
  );
  let from = rpc.mark();
  await rpc.command("new_session");
  await rpc.status(STATUS, /^2$/, from);
  from = rpc.mark();
  release(place, "one");
  await rpc.status(STATUS, /^1$/, from);
  release(place, "two");
  await rpc.status(STATUS, undefined, from);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: The end is told exactly once also where Esc empties pi's queue meanwhile
test("an end during a run that Esc stops is not lost, and begins no run", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Start.", background(`${until("go")}; exit 5`, { name: "quiet" })),
      turn("Wait.", bash("exec sleep 7450")),
      { when: "^and now", text: "I see." },
    ],
  });
  const from = rpc.mark();
  await rpc.say("start");
  await waitProcess(place.tag, /^sleep 7450$/);
  release(place, "go");
  await rpc.status(STATUS, undefined, from);
  await rpc.command("abort");
  await rpc.settled(from);
  const told = await rpc.waitFor("the message", (one) =>
    one.type === "message_end" && one.message?.customType === COMPLETED, from);
  assert.match(textOf(told.message?.content), /finished with exit code 5/);
  const asked = place.requests().length;
  await rpc.prompt("and now?");
  assert.equal(place.requests().length, asked + 1, "Esc was not followed by a run of its own");
  const seen = place.requests().at(-1)?.messages.filter((one) => /exit code 5/.test(one.text));
  assert.equal(seen?.length, 1);
  assert.equal(rpc.custom(COMPLETED).length, 1);
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: The end is told exactly once also where execd is killed
test("execd is killed: the model is told that its window is lost", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Start.", background("exec sleep 7460", { name: "unlucky" })),
      turn("Started."),
      { when: "was lost: unlucky @1", text: "A pity.", calls: [background("echo new")] },
      turn("Started again."),
      { when: "finished with exit code 0", text: "Better." },
    ],
  });
  await rpc.prompt("start");
  const [daemon] = processesLike(place.tag, /execd( --log-\S+ \S+)*$/);
  assert.ok(daemon !== undefined && daemon.pid > 1);
  const from = rpc.mark();
  process.kill(daemon.pid, "SIGKILL");
  await rpc.waitFor("the last word", (one) => /Better\./.test(textOf(one.message?.content)), from);
  const texts = rpc.custom(COMPLETED).map((one) => textOf(one.content));
  assert.equal(texts.length, 2);
  assert.match(texts[0] ?? "", /^Background command was lost: unlucky @1\. execd was killed by SIGKILL/);
  assert.match(texts[1] ?? "", /window: echo @2/, "ids are not given again");
  assert.equal((await rpc.quit()).code, 0);
});

// rule: bash.md, In pi: Windows live until pi's process ends: /reload, /new, /fork and /resume keep
//   them
test("/new ends the unified sessions and leaves the windows", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: ["--exec-tools", "unified,bash"],
    script: [
      turn(
        "Both.",
        background("exec sleep 7470"),
        exec("exec sleep 7471", { yield_time_ms: 250 }),
      ),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  await rpc.status("unified-exec.sessions", /^execd: .*sleep 7471/);
  await rpc.command("new_session");
  assert.equal(processesLike(place.tag, /^sleep 7471$/).length, 0);
  assert.equal(processesLike(place.tag, /^sleep 7470$/).length, 1);
  assert.equal((await rpc.quit()).code, 0);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash.md, In pi: A wrong type is an error naming key, expected type and file, and the
//   default applies
// rule: bash.md, In pi: An unknown key is named in a warning; keys of a real tmux are named once in
//   a notice
// rule: bash.md, tmux-bash.jsonc, key by key: `globalTmuxSessionName`
// rule: bash.md, tmux-bash.jsonc, key by key: `tmuxBinary`
test("what is wrong with the settings is said once, with key and file", async (t) => {
  const place = scratch(t);
  const path = configure(place, `{
    // of tmux-bash
    "tmuxBinary": "tmux", "globalTmuxSessionName": "x", "tty": "yes", "unheard": 1, "of": 2,
  }`);
  const rpc = new Rpc(place, { args: BASH, script: [turn("Hi.")] });
  await rpc.prompt("start");
  await rpc.command("new_session");
  const afterNew = rpc.notices();
  await rpc.say("/test-reload");
  assert.deepEqual(rpc.notices().slice(3).map(({ kind }) => kind), ["error", "warning"]);
  assert.deepEqual(afterNew, [
    {
      kind: "error",
      text: `execd: tty in ${path}: expected true or false, not "yes"; the default is used`,
    },
    { kind: "warning", text: `execd: unknown keys in ${path}: unheard, of` },
    {
      kind: "info",
      text: `execd: tmuxBinary, globalTmuxSessionName in ${path}: without effect, there is no tmux `
        + "underneath",
    },
  ]);
  assert.equal((await rpc.quit()).code, 0);
});
