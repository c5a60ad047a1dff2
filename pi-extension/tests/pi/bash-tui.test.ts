/**
 * The TUI with the bash tools: rows as pi draws its own, cards of ends and check-ins, Esc.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BASH, background, bash, configure, tmux } from "./lib/bash.ts";
import { turn } from "./lib/model.ts";
import { EXTENSION_DIR, FIXTURES_DIR, execdBinary } from "./lib/paths.ts";
import { processesLike, waitProcess } from "./lib/processes.ts";
import { scratch, Scratch } from "./lib/scratch.ts";
import { rowOf, Tui } from "./lib/tui.ts";

const until = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;

// rule: bash.md, In pi: bash is drawn as pi draws its own, but for the lines of what was cut
test("a command's rows are those of pi's own bash, running, done, failed, cut", async (t) => {
  const screens: string[][] = [];
  for (const ours of [false, true]) {
    const place = new Scratch();
    t.after(() => place.close());
    const tui = await Tui.start(place, {
      ...(ours ? { args: BASH } : { extensions: [] }),
      script: [
        turn("Short.", bash("echo one; printf 'two\\n'")),
        turn("Failed.", bash("echo bad >&2; exit 3", { timeout: 20 })),
        turn("Long.", bash("seq 1 3000")),
        turn("Slow.", bash("for i in 1 2 3 4 5 6 7; do echo row $i; done; sleep 2.5")),
        turn("That was it."),
      ],
    });
    await tui.submit("go");
    const running = await tui.waitScreen(/row 7\n+ *Elapsed \d/);
    await tui.waitScreen(/That was it\./);
    const all = await tui.scrollback();
    const rows = ["$ echo one", "$ echo bad", "$ seq 1 3000", "$ for i"].map((one) =>
      rowOf(all, one).replace(/\d+\.\ds/g, "TIME").replace(/\S+\.log/g, "LOG")
        // Where a long path breaks the line is no difference.
        .replace("3000\nlines]", "3000 lines]"));
    screens.push([rowOf(running, "$ for i").replace(/\d+\.\ds/g, "TIME"), ...rows]);
    await tui.key("C-o");
    await tui.waitScreen(/row 1\n/);
  }
  // Of what was cut tmux-bash shows two lines. On a busy machine the log is not there in time, and
  // is not named.
  const [theirs = "", ours = ""] = screens.map((one) =>
    (one.splice(3, 1)[0] ?? "").replace("Full output: LOG. ", ""));
  assert.deepEqual(screens[1], screens[0]);
  const cut = /… 1998 earlier lines[^\n]*\n *2999\n *3000\n+ *(\[Truncated: showing 2000 of 3000 lines\])/;
  assert.match(ours, cut);
  assert.ok(theirs.includes(cut.exec(ours)?.[1] ?? "?"), theirs);
});

// rule: bash.md, In pi: Completion and poll messages have renderers
// rule: bash.md, In pi: pollDelivery display: shown without a turn, while pi works too, and no
//   model reads it
test("background: its row, the footer, a check-in while pi works, the card of its end", async (t) => {
  const place = scratch(t);
  configure(place, {
    bashPollIntervalEnabled: true, pollDelivery: "display", completedCompactDisplayLines: 2,
  });
  const script = [
    turn("Start.", background(`seq 1 9; ${until("go")}; seq 11 15; exit 3`, {
      name: "nine", pollInterval: 0.3, pollLines: 4,
    })),
    turn("Look.", tmux("list"), tmux("peek", { window: "@1" })),
    turn("Work.", bash(until("worked"))),
    turn("My turn ends."),
    { when: "finished with exit code 3", text: "I was told." },
  ];
  const tui = await Tui.start(place, { args: BASH, script });
  await tui.submit("go");
  await tui.waitScreen(/↻ #1 nine is running\n.*\$ seq 1 9;.*\n+( *…[^\n]*\n)?( *\d\n)*? *9\n/);
  // The footer is below, and drawn after the row.
  await tui.waitScreen(/1 background proc\b/);
  await tui.keepScreen("bash-1-poll");
  writeFileSync(join(place.cwd, "worked"), "");
  await tui.waitScreen(/My turn ends\./);
  writeFileSync(join(place.cwd, "go"), "");
  const told = await tui.waitScreen(/I was told\./);
  await tui.keepScreen("bash-2-completed");
  assert.match(told, /✕ #1 nine ended · exit 3\n *\$ seq 1 9;[^\n]*\n+ *… \d+ earlier lines.*\n *14\n *15\n/);
  await tui.goneScreen(/background proc/);
  const all = await tui.scrollback();
  assert.match(rowOf(all, "$ seq 1 9"), /\n\(background\) · #1 nine$/);
  assert.doesNotMatch(rowOf(all, "$ seq 1 9"), /Took/);
  assert.match(rowOf(all, "tmux list"), /^tmux list\n+Background windows — 1 window\(s\)\n+nine @1 \(/m);
  assert.match(rowOf(all, "tmux peek @1"), /^tmux peek @1\n/);
  await tui.key("C-d");
  await tui.waitExit();

  const resumed = await Tui.start(place, { args: [...BASH, "--continue"], script });
  const restored = await resumed.waitScreen(/I was told\./);
  assert.match(restored, /✕ #1 nine ended · exit 3/);
  const history = await resumed.scrollback();
  assert.match(history, /↻ #1 nine is running/);
  assert.match(rowOf(history, "tmux peek @1"), /^tmux peek @1\n/);
});

// It said `2 background procs execd: 2 sessions running`.
// rule: bash.md, In pi: The footer says `2 background procs` while any run, and names them behind
//   `execd:`
test("pi's own footer counts the background commands once, and names them", async (t) => {
  const place = scratch(t);
  const held = (name: string) => background("exec sleep 7496", { name });
  const script = [turn("Start.", held("left"), held("right")), turn("Both run.")];
  const tui = await Tui.start(place, { args: BASH, script });
  await tui.submit("go");
  const shown = await tui.waitScreen(/2 background procs execd: #1 \d+s left: [^]*#2 \d+s right: /);
  assert.doesNotMatch(shown, /sessions running/);
});

// rule: bash.md, In pi: The end is told exactly once also where Esc empties pi's queue meanwhile
// rule: bash.md, In pi: The status backgroundBashTmuxCommands: a number of which the README's code
//   makes `2 background procs`, as pi's own footer does with the words beside it; cleared at 0,
//   foreground commands don't count
test("Esc empties pi's queue, and an end that came before is told all the same", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    args: BASH,
    extensions: [EXTENSION_DIR, join(FIXTURES_DIR, "readme-footer.ts")],
    script: [
      turn("Start.", background(`${until("go")}; exit 4`, { name: "soon" })),
      turn("Wait.", bash("exec sleep 7495")),
      { when: "^and now", text: "I see." },
    ],
  });
  await tui.submit("go");
  await waitProcess(place.tag, /^sleep 7495$/);
  const running = await tui.waitScreen(/^ *1 background proc *$/m);
  assert.equal(running.split("background proc").length, 2, "that footer says it once");
  writeFileSync(join(place.cwd, "go"), "");
  await tui.goneScreen(/background proc/);
  await tui.key("Escape");
  await tui.waitScreen(/Command aborted[^]*✕ #1 soon ended · exit 4/);
  assert.deepEqual(processesLike(place.tag, /^sleep 7495$/), []);
  await tui.submit("and now?");
  await tui.waitScreen(/I see\./);
  const seen = place.requests().at(-1)?.messages.filter((one) =>
    /finished with exit code 4/.test(one.text));
  assert.equal(seen?.length, 1);
});

// rule: bash.md, In pi: Nothing that a window holds reaches the terminal as a code
test("nothing of a window's name, command or output steers the terminal", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    args: BASH,
    script: [
      turn("Evil.", background("printf '\\033]0;owned\\007\\033[2Jout\\n'; sleep 0.5", {
        name: "\u001b[31mred\u001b]0;owned\u0007name",
      })),
      turn("Evil too.", bash("echo '\u001b]0;owned\u0007\u009b2Jhi'")),
      turn("My turn ends."),
      { when: "finished with exit code 0", text: "I was told." },
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/I was told\./);
  assert.match(await tui.screen(), /✓ #1 .*name ended · exit 0/);
  assert.doesNotMatch(await tui.screenAnsi(), /owned\u0007|\u001b\[2J/);
});

// What had been free was registered in the factory, so that the rows that pi restores could be drawn:
// pi told of a conflict, and where ours was loaded first the other one's bash was not used.
// rule: pi.md, The extension: /reload with an extension that has one of the names by now: no
//   conflict, ours step aside, restored rows are drawn
test("/reload with an extension that has a bash by now: it is used, and no conflict is told", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    args: BASH,
    extensions: [EXTENSION_DIR, join(FIXTURES_DIR, "other-bash.ts")],
    script: [turn("Run.", bash("echo hi")), turn("Done."),
      turn("Again.", bash("echo ho")), turn("All done.")],
  });
  await tui.submit("go");
  await tui.waitScreen(/Done\./);
  writeFileSync(place.path("other-bash"), "");
  await tui.submit("/reload");
  const reloaded = await tui.waitScreen(/Reloaded/);
  assert.match(reloaded, /\$ echo hi\n+ *hi\n/, "the row is drawn as before");
  assert.match(reloaded, /Warning: execd: another extension has bash; its tools are used/);
  assert.doesNotMatch(reloaded, /conflicts? with/);
  await tui.submit("again");
  assert.match(await tui.waitScreen(/All done\./), /theirs: echo ho/);
});

// The row called it the full output; the model was told what is kept.
// rule: pi.md, What the model learns of ends: Where the beginning of a log is gone, rows say what is kept
test("a log whose beginning is gone is not named as the full output", async (t) => {
  const place = scratch(t);
  const bin = place.path("small-logs");
  const line = `exec "${execdBinary()}" --log-keep-bytes 1048576 "$@"`;
  writeFileSync(bin, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  const tui = await Tui.start(place, {
    args: BASH, env: { EXECD_BIN: bin },
    script: [
      turn("Long.", bash("seq 500000"), background("seq 500001")), turn("That was it."),
      { when: "seq 500001[^]*finished|finished[^]*seq 500001", text: "All is told." },
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/That was it\.[^]*All is told\./);
  const screen = (await tui.scrollback()).replaceAll(/\s+/g, " ");
  const kept = "\\[Full output: \\S+\\.log \\(bytes \\d+– kept\\)";
  assert.match(screen, new RegExp(`\\$ seq 500000 [^$]*${kept}\\. Truncated: `));
  assert.match(screen, new RegExp(`ended · exit 0 \\$ seq 500001 [^$]*${kept}\\]`));
});
