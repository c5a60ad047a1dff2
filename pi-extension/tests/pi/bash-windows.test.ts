/**
 * json mode with the bash tools: windows that go on, their ends and check-ins, as the model is told
 * of them.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { BASH, background, bash, COMPLETED, configure, POLL, slow, tmux } from "./lib/bash.ts";
import { textOf } from "./lib/events.ts";
import { runJson } from "./lib/json.ts";
import { exec, newest, turn } from "./lib/model.ts";
import { processesOf } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";

/** A command that ends when this file is there. */
const until = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;

/** What is polled is waited for, also where it was asked for in the background. */
const AWAITED = { pollInterval: 3_600 };

interface Told {
  window: string;
  exit_code?: number;
  kind: string;
}

const windowsOf = (message: { details?: Record<string, unknown> } | undefined) =>
  (message?.details?.["windows"] ?? []) as Told[];

// rule: bash.md, In pi: Foreground to background on timeout
// rule: bash.md, In pi: The end is a follow-up message that triggers a turn, exactly once
test("a timeout: it goes on in the background, and its end is told once", async (t) => {
  const place = scratch(t);
  const command = `echo begun; ${until("go")}; seq 1 30; exit 4`;
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Run.", bash(command, { timeout: 0.5, name: "long" })),
      turn("Peek.", tmux("peek", { window: "@1" })),
      turn("List.", tmux("list")),
      turn("Let go.", bash("touch go")),
      turn("I end my turn."),
      { when: "finished with exit code 4", text: "I was told." },
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  const first = run.toolEnd("bash");
  assert.equal(
    first.text,
    "begun\n\n\nStill running after 0.5s in background window @1. Use tmux peek/list/kill to "
      + "inspect or stop it. Result will be reported when it finishes.",
  );
  assert.equal(first.isError, false);
  assert.equal(run.toolEnd("tmux", 0).text, `window: long @1\n$ ${command}\nbegun`);
  assert.match(run.toolEnd("tmux", 1).text,
    /^Background windows — 1 window\(s\)\n+ {2}long @1 \(\d+s\)$/);
  const [told, ...others] = run.custom(COMPLETED);
  assert.deepEqual(others, []);
  const lines = Array.from({ length: 20 }, (_, i) => i + 11).join("\n");
  const text = textOf(told?.content);
  assert.ok(text.startsWith("Background command finished with exit code 4\n"), text);
  assert.ok(text.includes("window: long @1\n"), text);
  assert.ok(text.includes(`\n\`\`\`\n${lines}\n\`\`\``), text);
  assert.deepEqual([told?.display, windowsOf(told).map((one) => one.window)], [true, ["@1"]]);
  assert.deepEqual(run.said(),
    ["Run.", "Peek.", "List.", "Let go.", "I end my turn.", "I was told."]);
  assert.equal(newest(run.requests.at(-1)).text, text);
  assert.equal(newest(run.requests.at(-1)).role, "user");
});

// rule: bash.md, In pi: Background at once, in the words of the specification
test("background at once: the call answers before the command has done anything", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    args: BASH,
    script: [
      turn("Start.", background(`${until("go")}; echo was here`, { name: "server" })),
      turn("Let go.", bash("touch go; echo gone on")),
      turn("My turn ends."),
      { when: "finished with exit code 0", text: "Told." },
    ],
  });
  await rpc.say("go");
  await rpc.waitFor("the answer", () => rpc.said().at(-1) === "Told.");
  const [first, second] = rpc.toolEnds("bash");
  assert.match(first?.text ?? "", new RegExp(
    "^Started in background window: server @1\\.\\nResult will be reported when it finishes\\.\\n\\n"
      + "Attach with: \\S*execd attach @1( --pid \\d+)?$"));
  assert.equal(second?.text, "gone on\n");
  assert.equal(rpc.custom(COMPLETED).length, 1);
  assert.match(textOf(rpc.custom(COMPLETED)[0]?.content), /```\nwas here\n```/);
});

// A server kept `pi -p` for ten minutes.
// rule: pi.md, What happens when: `pi -p` never waits for what was started with `background: true`
test("json mode does not wait for what was asked for in the background, and says so", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: BASH,
    script: [turn("Start.", background("exec sleep 7433")), turn("My turn ends.")],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.toolEnd("bash").text, /^It ends with your turn; if it finishes before that, /m);
  assert.doesNotMatch(run.toolEnd("bash").text, /when it finishes/);
  assert.doesNotMatch(run.stderr, /waiting for/);
  assert.match(run.stderr, /^execd: ended 1 session$/m);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash.md, In pi: The end is told exactly once for ten that end together, in json mode too,
//   which waits for all
test("ten that end together: each told once, in few messages; json mode waits for all", async (t) => {
  const place = scratch(t);
  const ten = Array.from({ length: 10 }, (_, i) =>
    slow(`${until("go")}; exit ${i}`, { name: `job${i}` }));
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Ten.", ...ten),
      turn("Let go.", bash("touch go")),
      turn("My turn ends."),
      ...Array.from({ length: 10 }, () => ({
        when: "finished with exit code", text: "Told.",
      })),
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  const messages = run.custom(COMPLETED);
  const told = messages.flatMap(windowsOf);
  assert.deepEqual(told.map((one) => one.window).sort(), [
    "@1", "@10", "@2", "@3", "@4", "@5", "@6", "@7", "@8", "@9",
  ]);
  assert.deepEqual(told.map((one) => one.exit_code).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const all = messages.map((one) => textOf(one.content)).join("\n");
  for (let i = 0; i < 10; i++) {
    assert.equal(all.split(`finished with exit code ${i}\n`).length, 2, `code ${i} once`);
  }
  t.diagnostic(`${messages.length} message(s) for ten windows`);
  // Each message was answered before pi ended.
  assert.equal(run.said().filter((one) => one === "Told.").length, messages.length);
});

// rule: bash.md, In pi: tmux kill sends no completion; errors are texts
test("killed: no word of its end, and nothing is waited for", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Start.", background("trap '' TERM HUP; sleep 7430 & sleep 7430", { name: "tough" })),
      turn("Kill.", tmux("kill", { window: "@1" })),
      turn("Kill again.", tmux("kill", { window: "@1" })),
      turn("None.", tmux("peek")),
      turn("None.", tmux("peek", { window: "@99" })),
      turn("Done."),
    ],
    patienceMs: 30_000,
  });
  assert.equal(run.toolEnd("tmux", 0).text, "Killed background window: tough @1.");
  assert.deepEqual(
    run.toolEnds("tmux").slice(1).map((end) => [end.isError, end.text]),
    [
      [true, "No background window @1."],
      [true, "Error: peek requires a window id, e.g. @123."],
      [true, "No background window @99."],
    ],
  );
  assert.deepEqual(run.custom(COMPLETED), []);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash.md, In pi: Polls to the model; unpoll; list-polls
// rule: bash.md, tmux-bash.jsonc, key by key: `minimumPollIntervalSeconds`
test("check-ins to the model, from bash and from tmux; unpoll; list-polls", async (t) => {
  const place = scratch(t);
  configure(place, {
    bashPollIntervalEnabled: true, minimumPollIntervalSeconds: 0.3,
    tmuxEnabledActions: ["list", "list-polls", "peek", "kill", "poll", "unpoll"],
  });
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Start.", background(`seq 1 9; ${until("go")}`, {
        name: "nine", pollInterval: 0.1, pollLines: 2,
      })),
      turn("Which?", tmux("list-polls")),
      turn("I wait."),
      { when: "^poll: nine @1", text: "Seen.", calls: [tmux("unpoll", { window: "@1" })] },
      { when: "^Stopped polling nine$", text: "Which?", calls: [tmux("list-polls")] },
      {
        when: "^No active polls", text: "Again.",
        calls: [tmux("unpoll", { window: "@1" }), tmux("poll", { window: "1", pollInterval: 0.3 })],
      },
      { when: "^Polling nine every 0.3s", text: "I wait again." },
      { when: "^poll: nine @1[^]*1\n2\n3", text: "All of it.", calls: [bash("touch go")] },
      { when: "^\\(no output\\)", text: "It ends." },
      { when: "finished with exit code 0", text: "It ended." },
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.toolEnd("bash").text, /@1\. Polling every 0\.3s\.\nResult will be reported/);
  const answers = run.toolEnds("tmux").map((end) => end.text);
  assert.match(answers[0] ?? "", /^Active polls:\n+ {2}nine every 0\.3s \(2 lines\)$/);
  assert.deepEqual(answers.slice(1), [
    "Stopped polling nine", "No active polls.", "No poller for nine.", "Polling nine every 0.3s.",
  ]);
  const polls = run.custom(POLL);
  assert.match(textOf(polls[0]?.content), /^poll: nine @1\n\$ seq 1 9; until[^\n]*\n(\[[^\n]*\n\n)?8\n9/);
  assert.match(textOf(polls.at(-1)?.content), /\n1\n2\n3\n/);
  assert.equal(run.custom(COMPLETED).length, 1);
  assert.equal(run.said().at(-1), "It ended.");
});

// rule: bash.md, In pi: pollDelivery display: shown without a turn, while pi works too, and no
//   model reads it
// rule: bash.md, tmux-bash.jsonc, key by key: `pollDelivery`
test("display-only check-ins: entries that no model reads, and no turn begins", async (t) => {
  const place = scratch(t);
  configure(place, { bashPollIntervalEnabled: true, pollDelivery: "display" });
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Start.", background(`echo shown-420; ${until("go")}`, { pollInterval: 0.2 })),
      // Display-only ones come while pi works, and only where the text has changed.
      turn("Work.", bash("sleep 1.5; touch go")),
      turn("My turn ends."),
      { when: "finished with exit code 0", text: "Told." },
    ],
  });
  const entries = run.events.filter((event) => event.type === "entry_appended")
    .map((event) => (event as unknown as { entry: { customType?: string; data?: unknown } }).entry)
    .filter((entry) => entry.customType === POLL);
  assert.equal(entries.length, 1, JSON.stringify(entries));
  assert.match(JSON.stringify(entries[0]?.data), /"kind":"poll".*shown-420/);
  assert.deepEqual(run.custom(POLL), []);
  const seen = run.requests.flatMap((request) => request.messages)
    .filter((message) => message.role === "user" && /shown-420/.test(message.text));
  assert.ok(seen.every((message) => /finished with exit code/.test(message.text)));
  assert.deepEqual(run.said(), ["Start.", "Work.", "My turn ends.", "Told."]);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `autoCloseWindowsOnCompletion`
test("autoCloseWindowsOnCompletion: false keeps what has ended listed and peekable", async (t) => {
  const place = scratch(t);
  configure(place, { autoCloseWindowsOnCompletion: false, bashPollIntervalEnabled: true });
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Start.", background("echo kept; exit 2", { name: "short", ...AWAITED })),
      turn("My turn ends."),
      { when: "finished with exit code 2", text: "Look.", calls: [tmux("list")] },
      { when: "^Background windows — 1", text: "Peek.", calls: [tmux("peek", { window: "@1" })] },
      { when: "^window: short", text: "Close.", calls: [tmux("kill", { window: "@1" })] },
      { when: "^Closed", text: "Look.", calls: [tmux("list")] },
    ],
  });
  const answers = run.toolEnds("tmux").map((end) => end.text);
  assert.match(answers[0] ?? "", / {2}short @1 \(\d+s\)/);
  assert.equal(answers[1], "window: short @1\n$ echo kept; exit 2\nkept");
  assert.equal(answers[2], "Closed background window: short @1. It had ended before.");
  assert.match(answers[3] ?? "", /0 window\(s\)$/);
  assert.equal(run.custom(COMPLETED).length, 1);
});

// rule: bash.md, In pi: json mode waits for ends at most --exec-hold-seconds
test("--exec-hold-seconds gives up in time, and the command ends with pi", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: ["--exec-hold-seconds", "1", ...BASH],
    script: [turn("Server.", slow("exec sleep 7431")), turn("My turn ends.")],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /^execd: waited 1 s \(--exec-hold-seconds\) for #1 exec sleep 7431; pi ends$/m);
  assert.deepEqual(run.custom(COMPLETED), []);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: bash.md, In pi: with `tty: true` a REPL in the background waits, attachable and peekable
test("a program with a terminal waits in the background, and is looked into", async (t) => {
  const place = scratch(t);
  const outputDir = place.path("out");
  configure(place, { outputDir, bashPollIntervalEnabled: true });
  const run = await runJson(place, {
    args: BASH,
    script: [
      turn("Start.", background("read -p 'Go on? ' answer", { name: "asks", tty: true })),
      turn("Wait.", bash(`until grep -q 'Go on' ${outputDir}/*.log; do sleep 0.05; done`)),
      turn("Look.", tmux("peek", { window: "@1" }), tmux("list")),
      turn("End.", tmux("kill", { window: "@1" })),
      turn("Done."),
    ],
  });
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual(run.custom(COMPLETED), []);
  assert.match(run.toolEnd("bash", 0).text, /^Started in background window: asks @1\.[^]*attach @1/);
  // What it waits for is told once two looks have seen it.
  assert.match(run.toolEnd("tmux", 0).text,
    /^window: asks @1\n\$ read -p 'Go on\? ' answer\nGo on\? (\n\n\[waiting for a line \(bash\)\])?$/);
  assert.match(run.toolEnd("tmux", 1).text, /^Background windows — 1 window\(s\)\n+ {2}asks @1 \(/);
  assert.equal(run.toolEnd("tmux", 2).text, "Killed background window: asks @1.");
  assert.equal(run.said().at(-1), "Done.");
});

// rule: bash.md, tmux-bash.jsonc, key by key: `preserveOutputFiles`
// rule: bash.md, tmux-bash.jsonc, key by key: `outputDir`
test("outputDir holds the logs; preserveOutputFiles: false deletes them at the end", async (t) => {
  for (const preserve of [true, false]) {
    const place = scratch(t);
    const outputDir = place.path("deep/out");
    configure(place, { outputDir, preserveOutputFiles: preserve, bashPollIntervalEnabled: true });
    const run = await runJson(place, {
      args: ["--exec-tools", "bash,unified"],
      script: [
        turn("Some.", bash("seq 1 3000"), background("echo hi", AWAITED)),
        turn("One more.", exec("echo short")),
        turn("My turn ends."),
        { when: "finished with", text: "Told.", calls: [bash(`ls ${outputDir} | wc -l`)] },
        turn("Done."),
      ],
    });
    const texts = run.toolEnds("bash").map((end) => end.text);
    assert.ok(Number(texts[2]) >= 2, texts[2]);
    // Each log has the facts of its session beside it; the mark of the last cleaning is no log.
    const logs = readdirSync(outputDir).filter((name) => !name.startsWith("."));
    assert.equal(logs.length, preserve ? 8 : 0);
  }
});

// rule: bash.md, In pi: A wrong type is an error naming key, expected type and file, and the
//   default applies
test("a failing settings file: said on stderr, and the defaults hold", async (t) => {
  const place = scratch(t);
  const path = configure(place, '{ "bashContextLines": "ten", "nonsense": 1, }');
  const run = await runJson(place, {
    args: BASH,
    script: [turn("Run.", bash("seq 1 12")), turn("Done.")],
  });
  assert.ok(run.stderr.includes(`bashContextLines in ${path}: expected a whole number above 0, `
    + 'not "ten"; the default is used'), run.stderr);
  assert.ok(run.stderr.includes(`unknown key in ${path}: nonsense`), run.stderr);
  assert.equal(run.toolEnd("bash").text.split("\n").length, 13);
});

// rule: bash.md, In pi: Without an execd pi keeps its own bash; another extension's bash is used
test("without an execd pi keeps its own bash, and there is no tmux", async (t) => {
  const place = scratch(t);
  const run = await runJson(place, {
    args: BASH,
    env: { EXECD_BIN: "/no/such/execd" },
    script: [turn("Run.", bash("echo pi")), turn("Done.")],
  });
  assert.equal(run.toolEnd("bash").text, "pi\n");
  assert.deepEqual(run.requests[0]?.tools, ["bash", "edit", "read", "write"]);
  assert.equal(existsSync(place.path("tmp/pi-execd-0")), false);
});

// rule: bash.md, In pi: `unified,bash` together
test("unified and bash together: both sets, and pi's own bash is replaced", async (t) => {
  const place = scratch(t);
  writeFileSync(place.path("marker"), "");
  const run = await runJson(place, {
    args: ["--exec-tools", "unified,bash"],
    script: [
      turn("Both.", bash("echo one"), { name: "exec_command", args: { cmd: "echo two" } }),
      turn("Window.", background("exec sleep 7432")),
      turn("Sessions.", { name: "list_sessions", args: {} }, tmux("kill", { window: "@3" })),
      turn("Done."),
    ],
  });
  assert.equal(run.toolEnd("bash").text, "one\n");
  assert.match(run.toolEnd("exec_command").text, /\n---\ntwo\n$/);
  assert.match(run.toolEnd("tmux").text, /^Killed background window/);
  const tools = run.requests[0]?.tools ?? [];
  for (const name of ["bash", "tmux", "exec_command", "list_sessions"]) {
    assert.ok(tools.includes(name), name);
  }
  assert.deepEqual(processesOf(place.tag), []);
});
