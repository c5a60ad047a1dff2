/**
 * rpc mode: footer status, widget and the sessions command, as a client sees them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { exec, turn } from "./lib/model.ts";
import { execdBinary } from "./lib/paths.ts";
import { processesLike, waitNoneLike } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import { until } from "./lib/waiting.ts";

const KEY = "unified-exec.sessions";
const start = (cmd: string) => exec(cmd, { yield_time_ms: 250 });
const waitFor = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;

// rule: pi.md, The extension: Footer: shown and gone by the daemon's notifications
test("the footer counts sessions, and goes down by itself when they end", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("One.", start(waitFor("one"))),
      turn("Two.", start(waitFor("two"))),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  const [up, upper] = [
    await rpc.status(KEY, /^execd: 1 session running\b/),
    await rpc.status(KEY, /^execd: 2 sessions running\b/),
  ];
  assert.ok(rpc.records.indexOf(up) < rpc.records.indexOf(upper));
  const from = rpc.mark();
  writeFileSync(`${place.cwd}/one`, "");
  await rpc.status(KEY, /^execd: 1 session running\b/, from);
  writeFileSync(`${place.cwd}/two`, "");
  await rpc.status(KEY, undefined, from);
  const since = rpc.records.slice(from).map((one) => one.type);
  assert.deepEqual([...new Set(since)], ["extension_ui_request"], "nobody called a tool for it");
});

// rule: pi.md, The extension: /unified-exec-sessions
test("/unified-exec-sessions: one is chosen, none is, all are; then there is none", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn(
        "Three.",
        start("exec sleep 7210"),
        start("exec sleep 7211"),
        start("exec sleep 7212"),
      ),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  const command = "/unified-exec-sessions";
  let from = rpc.mark();
  const options = await rpc.choose(command, () => undefined);
  assert.equal(options.length, 4, options.join("\n"));
  assert.match(options[3] ?? "", /^End all 3 sessions$/);
  const shown = options.slice(0, 3).map((one) => one.replace(/ \d+s /, " Ns "));
  assert.deepEqual(shown.map((one) => one.slice(0, 5)), ["#3 Ns", "#2 Ns", "#1 Ns"]);
  assert.deepEqual(
    shown.map((one) => one.slice(6)).sort(),
    ["exec sleep 7210", "exec sleep 7211", "exec sleep 7212"],
  );
  assert.equal(processesLike(place.tag, /^sleep 721\d$/).length, 3, "Esc kills nothing");
  assert.deepEqual(rpc.notices(from), []);

  from = rpc.mark();
  await rpc.choose(command, (all) => all.find((one) => one.includes("sleep 7211")), "End it");
  await rpc.notice(/^execd: ended #\d exec sleep 7211$/, from);
  assert.equal(processesLike(place.tag, /^sleep 7211$/).length, 0);
  assert.equal(processesLike(place.tag, /^sleep 721\d$/).length, 2);

  from = rpc.mark();
  const rest = await rpc.choose(command, (all) => all.find((one) => one.startsWith("End all")));
  assert.equal(rest.at(-1), "End all 2 sessions");
  await rpc.notice(/^execd: ended 2 sessions$/, from);
  assert.equal(processesLike(place.tag, /^sleep 721\d$/).length, 0);

  from = rpc.mark();
  const none = await rpc.choose(command, () => undefined);
  assert.equal(none.length, 3, "nothing is left to end");
  for (const one of none) assert.match(one, /^#\d \d+s exec sleep 721\d · ended by you · signal SIGTERM$/);
  assert.deepEqual(rpc.notices(from), []);
});

// rule: pi.md, The extension: The widget after /tree
test("after /tree: a warning and a widget, which goes away with the sessions", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    script: [
      turn("Seven.", ...[1, 2, 3, 4, 5, 6, 7].map((n) => start(`${waitFor("go")}; : ${n}`))),
      turn("Done."),
      turn("One.", start("exec sleep 7220")),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  const entries = (await rpc.command("get_entries")).data?.["entries"] as { id: string }[];
  let from = rpc.mark();
  await rpc.say(`/test-tree ${entries[0]?.id}`);
  const warning = await rpc.notice(/still running after \/tree/, from);
  assert.deepEqual(warning, {
    text: "execd: 7 sessions still running after /tree.",
    kind: "warning",
  });
  const lines = (await rpc.widget(KEY, true, from)).widgetLines ?? [];
  assert.equal(lines[0], "⚠ execd: 7 sessions still running");
  const shown = lines.slice(1, 6).map((line) => line.replace(/ \d+s /, " Ns "));
  assert.deepEqual(
    shown.map((line) => line.replace(/: \d/, ": N")),
    [1, 2, 3, 4, 5].map((n) => `  #${n} Ns ${waitFor("go")}; : N (~/project)`),
  );
  assert.deepEqual(lines.slice(6), [
    "  … 2 more",
    "  /sessions shows them all: follow one, end it, send it a line",
  ]);

  from = rpc.mark();
  writeFileSync(`${place.cwd}/go`, "");
  await rpc.widget(KEY, false, from);
  await rpc.status(KEY, undefined, from);

  await rpc.prompt("one more");
  from = rpc.mark();
  await rpc.say(`/test-tree ${entries[0]?.id}`);
  const single = (await rpc.widget(KEY, true, from)).widgetLines ?? [];
  assert.equal(single[0], "⚠ execd: 1 session still running");
  assert.match(single[1] ?? "", /^ {2}#8 \d+s exec sleep 7220 \(~\/project\)$/);
  assert.equal(single.length, 3);
  await rpc.choose("/unified-exec-sessions", (all) => all[0], "End it");
  await rpc.widget(KEY, false, from);
  await waitNoneLike(place.tag, /^sleep 7220$/, 10_000);
});

// rule: pi.md, The extension: Evictions and 60/64 are notices
test("many sessions: the warning and the eviction are notices", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    env: { EXECD_COMMAND: `exec '${execdBinary()}' --max-sessions 6` },
    script: [
      ...[1, 2, 3, 4, 5, 6, 7].map((n) => turn(`${n}.`, start("exec sleep 7230"))),
      turn("Up."),
    ],
  });
  await rpc.prompt("start");
  const texts = rpc.notices().map((one) => one.text);
  assert.ok(texts.includes("execd: 2/6 sessions open"), texts.join("\n"));
  assert.match(texts.at(-1) ?? "", /^execd: evicted #1 \(LRU, over cap 6\)/);
  assert.match(rpc.toolEnds("exec_command").at(-1)?.text ?? "", /^warning: evicted session 1 /m);
  await until("the eviction", () => processesLike(place.tag, /^sleep 7230$/).length === 6);
});

test("nothing is shown where nothing runs", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, { script: [turn("Short.", exec("echo hi")), turn("Done.")] });
  await rpc.prompt("start");
  const entries = (await rpc.command("get_entries")).data?.["entries"] as { id: string }[];
  await rpc.say(`/test-tree ${entries[0]?.id}`);
  await rpc.quit();
  const shown = rpc.records.filter(
    (one) => (one.statusKey === KEY && one.statusText !== undefined)
      || (one.widgetKey === KEY && one.widgetLines !== undefined)
      || one.method === "notify",
  );
  assert.deepEqual(shown, []);
  assert.equal(rpc.toolEnds("exec_command").length, 1);
});
