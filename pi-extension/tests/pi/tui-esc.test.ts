/** Esc ends a wait and nothing else; a second Esc soon after it is Ctrl-C to the command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, exec, newest, turn } from "./lib/model.ts";
import { scratch } from "./lib/scratch.ts";
import { Tui } from "./lib/tui.ts";

const DEPLOY = "trap 'exit 9' INT; echo 'is'' up'; while :; do sleep 0.1; done";

for (const tty of [true, false]) {
  // rule: pi.md, What happens when: Esc once more within 2 s: Ctrl-C to the command
  test(`Esc twice stops a deploy ${tty ? "on a terminal" : "on pipes"}`, async (t) => {
    const place = scratch(t);
    const tui = await Tui.start(place, {
      script: [
        turn("Deploy.", exec(DEPLOY, { tty, yield_time_ms: 60_000 })),
        turn("And now?", exec("true")),
        turn("I see."),
      ],
    });
    await tui.submit("go");
    await tui.waitScreen(/is up/);
    await tui.key("Escape");
    await tui.waitScreen(/still running · Esc again within 2 s sends Ctrl-C · \/kill 1 ends it/);
    await tui.key("Escape");
    await tui.goneScreen(/1 session running/);
    await tui.submit("on");
    await tui.waitScreen(/I see\./);
    const told = place.requests().map((request) => newest(request).text);
    assert.match(told.join("\n"), tty
      ? /^event: session 1 \(trap [^\n]*\) exited 9, \d+ s ago$/m
      : /^event: session 1 \(trap [^\n]*\) was killed \(the user\), exited 9, \d+ s ago$/m);
  });
}

// rule: pi.md, What happens when: With several waits side by side to each of their commands
test("Esc twice on wait_for is Ctrl-C to each command that it waited for", async (t) => {
  const place = scratch(t);
  const command = (code: number) => `trap 'exit ${code}' INT; while :; do sleep 0.1; done`;
  const tui = await Tui.start(place, {
    script: [
      turn("", exec(command(8), { tty: true, yield_time_ms: 250 })),
      turn("", exec(command(9), { yield_time_ms: 250 })),
      turn("Both.", call("wait_for", { session_ids: [1, 2], mode: "all", timeout_ms: 600_000 })),
      turn("And now?", exec("true")),
      turn("I see."),
    ],
  });
  await tui.submit("go");
  await tui.waitScreen(/Both\./);
  await tui.waitScreen(/↻ wait → #1, #2[^]*2 sessions running/);
  await tui.key("Escape");
  await tui.waitScreen(/#1, #2 still running · Esc again within 2 s sends Ctrl-C · \/kill 1 ends that one/);
  await tui.key("Escape");
  await tui.goneScreen(/sessions? running/);
  await tui.submit("on");
  await tui.waitScreen(/I see\./);
  const told = place.requests().map((request) => newest(request).text).join("\n");
  assert.match(told, /^event: session 1 \(trap [^\n]*\) exited 8, \d+ s ago$/m);
  assert.match(told, /^event: session 2 \(trap [^\n]*\) was killed \(the user\), exited 9, \d+ s ago$/m);
});

// The row offered an Esc that did nothing any more, and said that a command ran which had ended.
test("what the row says after Esc goes when it is no longer true", async (t) => {
  const place = scratch(t);
  const tui = await Tui.start(place, {
    script: [turn("Deploy.", exec(DEPLOY, { yield_time_ms: 60_000 }))],
  });
  await tui.submit("go");
  await tui.waitScreen(/is up/);
  await tui.key("Escape");
  await tui.waitScreen(/still running · Esc again within 2 s sends Ctrl-C · \/kill 1 ends it/);
  await tui.waitScreen(/still running · \/kill 1 ends it/);
  await tui.submit("/kill 1");
  await tui.goneScreen(/still running/);
});
