/**
 * The TUI: footer, widget, wakes, and what ends sessions there.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { TestContext } from "node:test";
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
  await tui.waitScreen(/Use list_sessions for a fresh inventory/);
  await tui.waitScreen(/Warning: execd: 2 sessions still running after \/tree\./, 10_000);
  await tui.keepScreen("3-tree");
});

// rule: pi.md, The extension: The widget after /tree
test("/tree: a widget; the selector ends a session; all of it goes", async (t) => {
  const { place, tui } = await afterTree(t);
  const shown = await tui.waitScreen(/⚠ execd: 2 sessions still running\n/);
  assert.match(shown, /^ *#1 \d+s exec sleep 741\d \(~\/project\)\n *#2 \d+s exec sleep 741\d \(/m);
  assert.match(
    shown,
    /^ +Use list_sessions for a fresh inventory, write_stdin to poll\/drive, or kill_session to /m,
  );
  await tui.key("C-u");
  await tui.submit("/unified-exec-sessions");
  await tui.waitScreen(/→ #1 \d+s exec sleep 741\d[^]*Kill all 2 sessions/);
  await tui.keepScreen("4-sessions");
  await tui.key("Enter");
  await tui.waitScreen(/execd: killed 1 session\n/);
  await tui.waitScreen(
    /⚠ execd: 1 session still running\n[^]*execd: 1 session running/,
  );
  const [left] = processesLike(place.tag, /^sleep 741\d$/);
  assert.ok(left);
  process.kill(left.pid);
  await tui.goneScreen(/execd: 1 session|Use list_sessions/);
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
  await tui.waitScreen(/Reloaded/);
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
