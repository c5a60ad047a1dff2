/**
 * The TUI with the stream tools: rows, the jobs selector, tails.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { call, turn } from "./lib/model.ts";
import { processesLike } from "./lib/processes.ts";
import { scratch } from "./lib/scratch.ts";
import { bash, on, STREAM } from "./lib/stream.ts";
import { rowOf, Tui } from "./lib/tui.ts";

// rule: pi.md, The extension: Rows of the stream tools
test("rows: live tail, yield, poll, input, kill, list, log", async (t) => {
  const place = scratch(t);
  const go = place.path("go");
  const held = `until [ -e ${go} ]; do sleep 0.1; done`;
  const loop = `for i in $(seq 1 12); do echo row $i; done; ${held}; exit 3`;
  const tui = await Tui.start(place, {
    args: STREAM,
    script: [
      turn("A loop.", bash(loop)),
      turn("A REPL.", bash("exec python3 -q", { stdinMode: "pty", yieldMs: 1_000 })),
      turn("Ask it.", on("write_stdin", { data: "print(7*6)\n" })),
      turn("Look.", on("poll_process", { maxDrainMs: 5_000 })),
      turn("Kill.", on("kill_process")),
      turn("List.", call("list_processes")),
      turn("Log.", call("get_process_log", { sessionId: 1, limit: 40 })),
      turn("Nobody.", call("poll_process", { sessionId: 99 })),
      turn("That was it."),
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(
    /\$ for i in [^\n]*\n[^]*7 earlier lines.*\n( *row \d+\n)+\n *elapsed \d+\.\ds · #1[^]*1 session running/,
  );
  await tui.keepScreen("stream-1-running");
  writeFileSync(go, "");
  await tui.waitScreen(/That was it\./);
  const all = await tui.scrollback();
  assert.match(rowOf(all, "$ for"), /^… 7 earlier lines[^]*^row 8\n[^]*^row 12\n/m);
  assert.match(rowOf(all, "$ for"), /^took \d+\.\ds · exit 3 · log: \S+\.log$/m);
  assert.match(rowOf(all, "$ exec python3"), /^\$ exec python3 -q \(yield 1s · pty\)$/m);
  // Where Python is there in time, its prompt waits already.
  const shown = /^(yielded|waited) \d+\.\ds · #2 · (waits for a \w+ \(python3\S*\) ·\s)?log:\s/m;
  assert.match(rowOf(all, "$ exec python3"), shown);
  assert.match(rowOf(all, "» 11 bytes"), /^» 11 bytes → #2\n+wrote 11 bytes$/m);
  assert.match(
    rowOf(all, "↻ poll → #2"),
    /^↻ poll → #2 \(wait 5s\)\n[^]*^running \d+\.\ds · #2/m,
  );
  assert.match(rowOf(all, "✕ kill"), /^✕ kill #2 SIGKILL\n[^]*^took .* · signal SIGKILL/m);
  // Where Python has answered before the poll, the poll has the answer, else the kill.
  assert.match(rowOf(all, "↻ poll → #2") + rowOf(all, "✕ kill"), /^\W*42$/m);
  assert.match(all, /#2 \d+s exec python3 -q \(~\/project\) · pty · signal SIGKILL/);
  assert.match(rowOf(all, "log #1"), /^log #1 \(40 bytes\)\n+row 1\n[^]*^bytes 0 to 40 of /m);
  assert.match(rowOf(all, "↻ poll → #99"), /no session #99/);
  assert.doesNotMatch(await tui.screen(), /session running/, "the footer is empty again");
  await tui.keepScreen("stream-2-rows");
});

// rule: pi.md, The extension: /jobs with Enter, /tail ID [N], /kill ID on what runs and what has
//   ended
// rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
test("/jobs and Enter, /tail, Esc, restored rows", async (t) => {
  const place = scratch(t);
  const go = place.path("go");
  const held = `until [ -e ${go} ]; do sleep 0.1; done`;
  const script = [
    turn("One.", bash(`printf 'up\\033[2J\\n'; ${held}; echo more; exec sleep 7340`, {
      yieldMs: 1_000,
    })),
    turn("Running."),
    turn("Wait.", bash("echo waiting; exec sleep 7341")),
    turn("Never."),
  ];
  const tui = await Tui.start(place, { args: STREAM, script });
  await tui.submit("go");
  await tui.waitScreen(/Running\.[^]*execd: 1 session running/);
  await tui.submit("/jobs");
  await tui.waitScreen(/→ #1 \d+s printf 'up/);
  await tui.keepScreen("stream-3-jobs");
  await tui.key("Enter");
  // It follows, in the place of the editor, until it is closed.
  await tui.waitScreen(/^ *#1 \d+s printf 'up.*\n *up\n *following · /m);
  writeFileSync(go, "");
  await tui.waitScreen(/\n *up\n *more\n *following · /);
  await tui.keepScreen("stream-4-follow");
  await tui.key("q");
  await tui.goneScreen(/following · /);
  await tui.submit("/tail 1");
  await tui.waitScreen(/^ *#1 \d+s printf 'up.*\n *up\n *more\n *log: \S+\.log/m);
  await tui.submit("/tail 1 1");
  await tui.waitScreen(/^ *#1 \d+s printf 'up.* · last line\n *more\n/m);

  await tui.submit("wait");
  await tui.waitScreen(/waiting\n[^]*elapsed \d/);
  await tui.key("Escape");
  await tui.waitScreen(/ended by Esc\n *took \d+\.\ds · signal SIGKILL/);
  assert.equal(processesLike(place.tag, /^sleep 7341$/).length, 0);
  assert.equal(processesLike(place.tag, /^sleep 7340$/).length, 1, "only what was waited for");
  await tui.submit("/kill 1");
  await tui.waitScreen(/execd: ended #1 printf/);
  assert.equal(processesLike(place.tag, /^sleep 7340$/).length, 0);
  await tui.key("C-d");
  await tui.waitExit();

  const resumed = await Tui.start(place, { script, args: [...STREAM, "--continue"] });
  const restored = await resumed.waitScreen(/ended by Esc/);
  const row = /\$ printf 'up.*\s+\(yield 1s\)\n+ *up\n+ *yielded \d+\.\ds · #1 · /;
  assert.match(restored, row);
});

// rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
test("/jobs scrolls where there are more than 30; the last one can be chosen", async (t) => {
  const place = scratch(t);
  const calls = Array.from({ length: 33 }, (_, at) => bash(`echo number-${at + 1}`));
  const tui = await Tui.start(place, {
    args: STREAM, script: [turn("Many.", ...calls), turn("All done.")],
  });
  await tui.submit("go");
  await tui.waitScreen(/All done\./);
  await tui.submit("/jobs");
  await tui.waitScreen(/→ #\d+ \d+s echo number-\d+ · exit 0 *\n[^]*\(1\/33\)/);
  await tui.key("Up");
  // They ran side by side: which one has ended first is open.
  const last = await tui.waitScreen(/→ #\d+ \d+s echo number-\d+ · exit 0 *\n *\(33\/33\)/);
  const number = /→ #\d+ \d+s echo number-(\d+)/.exec(last)?.[1] ?? "";
  await tui.key("Enter");
  await tui.waitScreen(
    new RegExp(`^ *#\\d+ \\d+s echo number-${number} .*\n *number-${number}\n *ended · `, "m"),
  );
  await tui.key("Escape");
  await tui.goneScreen(/ended · /);
});
