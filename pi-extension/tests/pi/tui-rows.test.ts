/**
 * The TUI: what a person sees of tool calls.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { call, exec, stdin, turn } from "./lib/model.ts";
import { processesLike } from "./lib/processes.ts";
import { scratch } from "./lib/scratch.ts";
import { rowOf, Tui } from "./lib/tui.ts";

// rule: pi.md, The extension: Rows: calls, output, status lines
test("exec_command and write_stdin: calls, output, status, Esc, ctrl+o", async (t) => {
  const place = scratch(t);
  const loop = "for i in $(seq 1 12); do echo row $i; done; until [ -e ../go ]; do sleep 0.1; done";
  const tui = await Tui.start(place, {
    script: [
      turn("A loop.", exec(loop, { yield_time_ms: 30_000 })),
      turn("A REPL.", exec("exec python3 -q", { tty: true, yield_time_ms: 1_000 })),
      turn("Ask it.", stdin({ chars: "print(7*6)\\n", yield_time_ms: 1_000 })),
      turn("Bytes.", stdin({ chars_b64: "MSsxCg==", yield_time_ms: 500 })),
      turn("Interrupt.", stdin({ chars: "\\x03", yield_time_ms: 500 })),
      turn("Wait for nothing.", call("write_stdin", {
        session_id: 2, yield_time_ms: 20_000, on_impossible: "wait",
      })),
      turn("Went on."),
    ],
  });
  await tui.submit("go");
  // The rows come at once and no more follow: execd may tell of them before it knows that the log
  // is there. Once in some runs the row then had no log while the loop ran.
  const running = await tui.waitScreen(
    /elapsed \d+\.\ds · #1 · log: [^]*execd: 1 session running/,
  );
  assert.ok(running.includes(`$ ${loop}`));
  await tui.keepScreen("1-running");
  writeFileSync(join(place.home, "go"), "");

  const looped = rowOf(await tui.waitScreen(/took \d+\.\ds/), `$ ${loop}`);
  assert.match(looped, /^… 7 earlier lines/m);
  assert.match(looped, /^row 8\nrow 9\nrow 10\nrow 11\nrow 12\n/m);
  assert.doesNotMatch(looped, /^row 7$/m);
  assert.match(looped, /^took \d+\.\ds · exit 0$/m);

  const elapsed = (screen: string) =>
    Number(/↻ poll → #2 \(yield 20\.0s\)[^]*elapsed (\d+)\.\ds/.exec(screen)?.[1]);
  const before = elapsed(await tui.waitScreen((screen) => elapsed(screen) >= 0));
  await tui.waitScreen((screen) => elapsed(screen) > before);
  const all = await tui.scrollback();
  assert.match(rowOf(all, "$ exec python3"), /^\$ exec python3 -q \(yield 1\.0s · .*tty\)/);
  // Where Python is there in time, its prompt waits already.
  const shown = /^(yielded|waited) \d+\.\ds · #2 · (waits for a \w+ \(python3\S*\) ·\s)?log:\s/m;
  assert.match(rowOf(all, "$ exec python3"), shown);
  const asked = rowOf(all, "» print");
  assert.match(asked, /^» print\(7\*6\)\\n → #2 \(yield 1\.0s\)$/m);
  // Where Python starts slowly they stand in a later row.
  assert.match(all, /^ *>>>/m);
  assert.match(all, /^ *42$/m);
  assert.match(all, /» \(base64, 4 bytes\) → #2/);
  assert.match(rowOf(all, "» ^C"), /^» \^C → #2[^]*KeyboardInterrupt/);

  await tui.key("Escape");
  await tui.waitScreen(/↻ poll → #2 .*\n[^]*still running( · Esc again within 2 s sends Ctrl-C)? · \/kill 2 ends it\n *yielded .* · #2/);
  assert.equal(processesLike(place.tag, /^python3 -q$/).length, 1);
  assert.match(await tui.screen(), /execd: 1 session running/);
  await tui.keepScreen("2-rows");

  await tui.key("C-o");
  await tui.goneScreen(/earlier lines/);
  const expanded = rowOf(await tui.scrollback(), `$ ${loop}`);
  const rows = Array.from({ length: 12 }, (_, n) => `row ${n + 1}\n`).join("");
  assert.ok(expanded.includes(rows), expanded);
});

// rule: pi.md, The extension: Rows: calls, output, status lines
test("the other tools, failures, truncation, wakes", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    args: ["--exec-tools", "unified,more"],
    script: [
      turn("Arm.", exec("exec sleep 7400", { yield_time_ms: 300, on_exit: "wake", tty: true })),
      turn("List.", call("list_sessions")),
      turn("Resize.", call("resize_session", { session_id: 1, cols: 91, rows: 33 })),
      turn("Disarm.", call("set_on_exit", { session_id: 1, on_exit: "none" })),
      turn("Kill.", call("kill_session", { session_id: 1, signal: "SIGKILL" })),
      turn("Fail.", exec("echo bad; exit 3", { workdir: "/tmp" })),
      turn("No shell.", exec("echo hi", { shell: "nosuchshell" })),
      turn("Much.", exec("seq 1 5000")),
      turn("Nobody.", call("write_stdin", { session_id: 99, chars: "x" })),
      turn("That was it."),
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/That was it\./);
  const all = await tui.scrollback();
  assert.match(all, /\$ exec sleep 7400 \(yield 0\.3s · .*tty\) \[wake\]/);
  assert.match(all, /#1 \d+s exec sleep 7400/);
  assert.match(all, /resize_session.*91\s*x\s*33/i);
  assert.match(all, /set_on_exit.*none/);
  assert.match(all, /✕ kill #1 SIGKILL/);
  assert.match(all, /Killed #1 \(pid \d+\) with SIGKILL · signal SIGKILL/);
  assert.match(rowOf(all, "$ echo bad"), /^\$ echo bad; exit 3 \(.*cwd: \/tmp\)\n+bad\n/);
  assert.match(rowOf(all, "$ echo bad"), /^took \d+\.\ds · exit 3 · log: /m);
  assert.match(all, /spawn nosuchshell: ENOENT: No such file or directory/);
  assert.match(rowOf(all, "$ seq"), /^… 1995 earlier lines/m);
  assert.match(rowOf(all, "$ seq"), /^\[Showing lines 3001-5000 of 5000\. Full output: /m);
  assert.match(rowOf(all, "» x"), /^» x → #99[^]*no session #99/);
  assert.doesNotMatch(all, /session running/, "the footer is empty again");
});

// rule: pi.md, The extension: Nothing a child prints reaches the terminal as a code
test("nothing that a child prints or a command holds reaches the terminal as a code", async (t) => {
  const place = scratch(t);
  const codes = "\u001b]2;pwned\u0007\u001b[2J\u001b[?1049h\u001b[31m\u0090pwned\u009c\r\b\u202e";
  const tui = await Tui.start(place, {
    script: [
      turn("Print.", exec("printf '\\033]2;pwned\\007\\033[2J\\033[?1049h\\033[Hone\\ntwo\\n'")),
      turn("Hold.", exec(`: '${codes}'; exec sleep 7401`, { yield_time_ms: 300, name: codes })),
      turn("List.", call("list_sessions")),
      turn("Nobody.", call("write_stdin", { session_id: 1, chars: `#${codes}\n` })),
      turn("That was it."),
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/That was it\./);
  const own = await tui.title();
  await tui.submit("/unified-exec-sessions");
  await tui.waitScreen(/execd: 1 session running\n *→ #2 /);
  const screen = await tui.screen();
  assert.match(screen, /^ *one\n *two\n/m, "what was there is still there");
  assert.match(screen, /\$ : /);
  assert.equal(await tui.title(), own);
  assert.doesNotMatch(own, /pwned/);
  assert.equal(await tui.isAlternate(), false);
  const drawn = await tui.screenAnsi();
  assert.doesNotMatch(drawn, /\u202e|\u0090|\u009c/);
});
