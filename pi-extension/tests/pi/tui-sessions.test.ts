/**
 * The TUI: footer, widget, wakes, and what ends sessions there.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { BASH, background } from "./lib/bash.ts";
import { exec, turn } from "./lib/model.ts";
import { processesLike, processesOf, waitNone, waitNoneLike, waitProcess }
  from "./lib/processes.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";
import { Tui } from "./lib/tui.ts";

const start = (cmd: string) => exec(cmd, { yield_time_ms: 250 });

/** Moves the tree's cursor up to the first entry that matches, and goes there. */
async function goToEntry(tui: Tui, pattern: RegExp): Promise<void> {
  const chosen = (screen: string) => /^› .*$/m.exec(screen)?.[0] ?? "";
  let line = chosen(await tui.waitScreen((screen) => chosen(screen) !== ""));
  while (!pattern.test(line)) {
    await tui.key("Up");
    line = chosen(await tui.waitScreen((screen) => chosen(screen) !== line));
  }
  await tui.key("Enter");
  await tui.waitScreen(/Summarize branch\?/);
  await tui.key("Enter");
}

/** A pi with two sessions after /tree went back to the first prompt. */
async function afterTree(t: TestContext): Promise<{ place: Scratch; tui: Tui }> {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    script: [turn("Two.", start("exec sleep 7410"), start("exec sleep 7411")), turn("Running.")],
  });
  await tui.submit("please start");
  await tui.waitScreen(/Running\.[^]*execd: 2 sessions running/);
  await tui.submit("/tree");
  await goToEntry(tui, /user: please start/);
  return { place, tui };
}

test("/tree: a warning is on the screen", async (t) => {
  const { tui } = await afterTree(t);
  await tui.waitScreen(/\/sessions shows them all/);
  await tui.waitScreen(/Warning: execd: 2 sessions still running after \/tree\./, 10_000);
  await tui.keepScreen("3-tree");
});

// rule: pi.md, The extension: The widget after /tree
test("/tree: a widget; the selector ends a session; all of it goes", async (t) => {
  const { place, tui } = await afterTree(t);
  const shown = await tui.waitScreen(/⚠ execd: 2 sessions still running\n/);
  assert.match(shown, /^ *#1 \d+s exec sleep 741\d \(~\/project\)\n *#2 \d+s exec sleep 741\d \(/m);
  assert.match(shown, /^ +\/sessions shows them all: follow one, end it, send it a line/m);
  await tui.key("C-u");
  await tui.submit("/unified-exec-sessions");
  await tui.waitScreen(/execd: 2 sessions running\n *→ #2 \S+ exec sleep 741\d *\n *#1 /);
  await tui.keepScreen("4-sessions");
  await tui.type("k");
  await tui.waitScreen(/ended #2 exec sleep 741\d\n/);
  await tui.key("Escape");
  await tui.goneScreen(/enter follows/);
  await tui.waitScreen(
    /⚠ execd: 1 session still running\n[^]*execd: 1 session running/,
  );
  const [left] = processesLike(place.tag, /^sleep 741\d$/);
  assert.ok(left);
  process.kill(left.pid);
  await tui.goneScreen(/execd: 1 session running|\/sessions shows/);
});

// rule: pi.md, The extension: Sessions end at every session_shutdown
test("a wake while idle; then /new, /reload and ctrl+d end what runs", async (t) => {
  const place = scratch(t);
  const wait = "until [ -e go ]; do sleep 0.05; done; echo $((6*7))0042";
  const tui = await Tui.start(place, {
    script: [
      turn("Wait.", exec(wait, { yield_time_ms: 250, on_exit: "wake" })),
      turn("My turn ends."),
      { when: "session_id=1\\b", text: "I was woken." },
      ...[7420, 7421, 7422].flatMap((n) => [turn(`S${n}.`, start(`exec sleep ${n}`)), turn("Up.")]),
    ],
  });
  await tui.submit("first");
  await tui.waitScreen(/My turn ends\.[^]*execd: 1 session running/);
  writeFileSync(`${place.cwd}/go`, "");
  const woken = await tui.waitScreen(/I was woken\./);
  assert.match(woken, /✓ #1 ended · exit 0/);
  assert.doesNotMatch(woken, /420042/);
  assert.doesNotMatch(woken, /session running/);
  await tui.keepScreen("5-wake");

  await begin(7420);
  await tui.submit("/new");
  await tui.waitScreen(/New session started/);
  await waitNoneLike(place.tag, /^sleep 7420$/, 0);
  assert.doesNotMatch(await tui.screen(), /session running/);

  await begin(7421);
  await tui.submit("/reload");
  // pi's own "Reloaded …" stood in the place of what was said before it.
  await tui.waitScreen(/Warning: execd: \/reload ended 1 session: #\d+ exec sleep 7421[^]*Reloaded/);
  await waitNoneLike(place.tag, /^sleep 7421$/, 0);

  await begin(7422);
  await tui.key("C-d");
  assert.equal(await tui.waitExit(), 0);
  assert.deepEqual(processesOf(place.tag), []);

  async function begin(number: number) {
    await tui.submit(`begin ${number}`);
    await tui.waitScreen(new RegExp(`S${number}\\.[^]*Up\\.[^]*1 session running`));
    await waitProcess(place.tag, new RegExp(`^sleep ${number}$`));
  }
});

// rule: pi.md, The extension: /reload with an extension that has one of the names by now: no
//   conflict, ours step aside, restored rows are drawn
// rule: pi.md, The extension: Restored rows hide nothing
test("rows that pi restores are drawn as they were", async (t) => {
  const place = scratch(t);
  const script = [turn("Run.", exec("echo hi; exit 3"), start("exec sleep 7440")), turn("Done.")];
  const first = await Tui.start(place, { script });
  const rows = [
    /\$ echo hi; exit 3.*\n+ *hi\n+ *took \d+\.\ds · exit 3 · log: /,
    /\$ exec sleep 7440 \(yield 0\.3s.*\n+ *yielded \d+\.\ds · #\d · log: /,
  ];
  const isRestored = (screen: string) => rows.every((row) => row.test(screen));
  await first.submit("go");
  await first.waitScreen(/Done\./);
  assert.ok(isRestored(await first.screen()), await first.screen());
  await first.key("C-d");
  await first.waitExit();
  const resumed = await Tui.start(place, { script, args: ["--continue"] });
  assert.ok(isRestored(await resumed.waitScreen(/Done\./)), "after --continue");
  await resumed.submit("/reload");
  const reloaded = await resumed.waitScreen(/Reloaded/);
  assert.ok(isRestored(reloaded), `after /reload:\n${reloaded}`);
});

// rule: pi.md, The extension: Sessions end at every session_shutdown
test("/quit during a wait", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    script: [turn("Long.", exec("exec sleep 7430", { yield_time_ms: 30_000 })), turn("Never.")],
  });
  await tui.submit("go");
  await waitProcess(place.tag, /^sleep 7430$/);
  await tui.submit("/quit");
  assert.equal(await tui.waitExit(), 0);
  assert.deepEqual(processesOf(place.tag), []);
});

// rule: pi.md, The extension: pi killed: nothing is left after 2 s
test("the terminal goes away: so do the sessions", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    script: [turn("Long.", start("trap '' HUP; exec sleep 7431")), turn("Up.")],
  });
  await tui.submit("go");
  await tui.waitScreen(/Up\./);
  await waitProcess(place.tag, /^sleep 7431$/);
  await tui.close();
  t.diagnostic(`all gone after ${await waitNone(place.tag, 5_000)} ms`);
});

// rule: pi.md, The extension: Without an execd pi starts, keeps its bash, one notice, one clear
//   error
test("no execd: the notice is on the screen, and pi's bash works", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    env: { EXECD_BIN: "/nonexistent/execd" },
    script: [turn("Nothing to do.")],
  });
  await tui.waitScreen(/Warning: execd: [^─]*\/nonexistent\/execd/);
  await tui.submit("go");
  await tui.waitScreen(/Nothing to do\./);
  assert.ok(place.requests()[0]?.tools.includes("bash"));
});

// rule: pi.md, Sessions in a terminal: each key, at every width
test("/sessions: state and age, follow, send a line, copy, attach, end; 60, 80, 120 columns", async (t) => {
  const place = scratch(t);
  const reads = "echo up; while read -r line; do echo got $line; done";
  const script = [
    turn("Two.", start("echo one; exit 3"), exec(reads, { yield_time_ms: 250, name: "reader" })),
    turn("Running."),
  ];
  const tui = await Tui.start(place, { script });
  await tui.submit("go");
  await tui.waitScreen(/Running\.[^]*execd: 1 session running · #2 \d+s reader: echo up/);
  for (const columns of [60, 80, 120]) {
    await tui.resize(columns);
    await tui.submit("/sessions");
    const list = await tui.waitScreen(
      /execd: 1 session running\n *→ #2 \d+s reader: .* · waits for a line \(bash\) *\n/,
    );
    for (const line of list.split("\n")) assert.ok(line.length <= columns, line);
    await tui.keepScreen(`sessions-${columns}`);
    await tui.type("s");
    await tui.waitScreen(/a line for #2:/);
    await tui.submit(`hello ${columns}`);
    await tui.waitScreen(new RegExp(`sent to #2: hello ${columns}`));
    await tui.type("a");
    await tui.waitScreen(/attach 2\b[^]*in\s+another\s+terminal/);
    await tui.type("c");
    await tui.waitScreen(/(copied|could not be copied):\s/);
    await tui.key("Enter");
    const tail = new RegExp(`got hello ${columns}\n *following · `);
    const followed = await tui.waitScreen(tail);
    assert.match(followed, /#2 \d+s reader: echo up/);
    // The same keys are there.
    await tui.waitScreen(/k ends · s sends a line · c copies the log's path · a attach/);
    await tui.type("s");
    await tui.waitScreen(/a line for #2:/);
    await tui.submit(`again ${columns}`);
    await tui.waitScreen(new RegExp(`got again ${columns}\n[^]*sent to #2: again ${columns}`));
    await tui.type("a");
    const above = await tui.waitScreen(/attach 2\b[^]*in\s+another\s+terminal/);
    for (const line of above.split("\n")) assert.ok(line.length <= columns, line);
    await tui.keepScreen(`sessions-tail-${columns}`);
    await tui.key("q");
    await tui.goneScreen(/following · /);
  }
  await tui.submit("/sessions");
  await tui.waitScreen(/→ #2 /);
  await tui.key("Enter");
  await tui.waitScreen(/following · [^]*k ends/);
  await tui.type("k");
  await tui.waitScreen(/ended #2 reader: echo up[^]*ended · /);
  await tui.key("q");
  await tui.goneScreen(/ended · /);
  await tui.submit("/sessions");
  await tui.waitScreen(/(execd: 0 sessions|no session) running/);
  await tui.waitScreen(/#2 \d+s reader: .* · ended by you · signal SIGTERM/);
  await tui.key("Escape");
  await tui.goneScreen(/enter follows/);
  await tui.submit("/kill int #2");
  await tui.waitScreen(/execd: #2 \d+s reader: .* · signal SIGTERM: it\s+had\s+ended\s+already/);
});

// pi writes a notice over the one before it: of two /kill only the second one had an answer.
// rule: pi.md, Commands that you type: An answer stays when the next one comes
test("the answers to two /kill both stay, each once", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    script: [turn("Two.", start("exec sleep 7450"), start("exec sleep 7451")), turn("Up."), turn("And on.")],
  });
  await tui.submit("go");
  await tui.waitScreen(/Up\./);
  await tui.submit("/kill 1");
  await tui.waitScreen(/execd: ended #1 exec sleep 7450/);
  await tui.submit("/kill 2");
  const both = /execd: ended #1 exec sleep 7450 *\n *execd: ended #2 exec sleep 7451/;
  await tui.waitScreen(both);
  await tui.submit("on");
  await tui.waitScreen(/And on\./);
  await tui.submit("/tail 2");
  const shown = await tui.waitScreen(/\(no output\)/);
  assert.match(shown, both);
  assert.equal(shown.match(/ended #\d exec/g)?.length, 2, shown);
});

// rule: pi.md, Sessions in a terminal: Windows of bash stand there with their states, like all others
test("/sessions has the windows of bash with their states; k there is told as yours", async (t) => {
  const place = scratch(t);
  const asks = "read -p 'ok? ' x; echo got $x";
  const tui = await Tui.start(place, {
    args: BASH,
    script: [
      turn("Ask.", background(asks, { name: "asker", tty: true })),
      turn("My turn ends."),
      { when: "finished with exit code 143[^]*ended by the user", text: "I was told." },
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/My turn ends\./);
  await tui.submit("/sessions");
  await tui.waitScreen(/execd: 1 session running\n *→ #1 \d+s asker: read .* · waits for a line \(bash\)/);
  await tui.key("Enter");
  await tui.waitScreen(/\n *ok\? *\n *following · /);
  await tui.type("k");
  await tui.waitScreen(/ended #1 asker: read/);
  await tui.key("q");
  await tui.waitScreen(/✕ #1 asker ended by you · signal SIGTERM[^]*I was told\./);
});
