/** How the tools of the bash surface and the messages about windows are drawn. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createBashToolDefinition } from "@earendil-works/pi-coding-agent";
import { bashRenderers, tmuxRenderers } from "../../src/render/bash.ts";
import type { ToolRenderers } from "../../src/render/row.ts";
import { windowMessageRenderer } from "../../src/render/messages.ts";
import { type TmuxBashConfig, readConfig } from "../../src/bash/config.ts";
import type { TestResult, TestRow } from "./render-harness.ts";
import {
  assertHarmless, CWD, draw, drawnBy, give, screen, start, theme, withoutColours,
} from "./render-harness.ts";
import { HOSTILE } from "./hostile-texts.ts";

const defaults = readConfig("/no/such/file").config;
const settings = (given: Partial<TmuxBashConfig>) => ({ config: { ...defaults, ...given } });

const pis = createBashToolDefinition(CWD) as unknown as ToolRenderers;
const bashRow = (args: object, given: Partial<TmuxBashConfig> = {}) =>
  drawnBy(bashRenderers(settings(given)), "bash", args, CWD);
const tmuxRow = (args: object, given: Partial<TmuxBashConfig> = {}) =>
  drawnBy(tmuxRenderers(settings(given)), "tmux", args, CWD);

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`).join("\n");
const LOG = "/tmp/x/execd-1-0.log";
const CUT = {
  truncated: true, truncatedBy: "lines", totalLines: 3_000, outputLines: 2_000, maxBytes: 51_200,
};
const FOOTER = `\n\n[Showing lines 1001-3000 of 3000. Full output: ${LOG}]`;

/** What a person sees of a row, its time left out. */
function seen(row: TestRow): string {
  return screen(row).join("\n").replace(/(Took|Elapsed) \d+\.\ds/, "$1 TIME");
}

// rule: bash.md, In pi: bash is drawn as pi draws its own, but for the lines of what was cut
it("a row is drawn as pi draws its own, in each of its states", () => {
  const cases: [object, TestResult | undefined, boolean][] = [
    [{}, undefined, false],
    [{ command: "ls" }, undefined, false],
    [{ command: "npm test", timeout: 30 }, { text: lines(1, 12) }, true],
    [{ command: "ls" }, { text: "(no output)" }, false],
    [{ command: "ls" }, { text: lines(1, 12) }, false],
    [{ command: "ls" }, { text: `${lines(1, 12)}\n\nCommand exited with code 3`, isError: true }, false],
  ];
  for (const [args, result, partial] of cases) {
    const rows = [drawnBy(pis, "bash", args, CWD), bashRow(args)];
    for (const row of rows) {
      if (result) start(row);
      if (result) give(row, result, partial);
    }
    const [theirs, ours] = rows.map(seen);
    assert.equal(ours, theirs);
    for (const row of rows) row.component.setExpanded(true);
    const [more, all] = rows.map(seen);
    assert.equal(all, more);
    if (partial && result) for (const row of rows) give(row, result);
  }
});

// rule: bash.md, In pi: Nothing that a window holds reaches the terminal as a code
// rule: bash.md, tmux-bash.jsonc, key by key: `displayCommandStartMarker`
it("what a wrapper put before the command is not shown, nor its control codes", () => {
  const command = "export A=1\n# SHIM_END\nnpm test \x1b[2J";
  assert.match(seen(bashRow({ command })), /^\$ npm test/);
  assert.match(seen(bashRow({ command }, { displayCommandStartMarker: "" })), /^\$ export A=1/);
  for (const hostile of Object.values(HOSTILE)) {
    const row = bashRow({ command: hostile });
    give(row, { text: hostile });
    draw(row);
  }
});

// rule: bash.md, tmux-bash.jsonc, key by key: `bashCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashTruncatedCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `bashExpandedDisplayLines`
it("bashCompactDisplayLines, bashTruncatedCompactDisplayLines, bashExpandedDisplayLines", () => {
  const given = {
    bashCompactDisplayLines: 3, bashTruncatedCompactDisplayLines: 1, bashExpandedDisplayLines: 6,
  };
  const row = bashRow({ command: "ls" }, given);
  start(row);
  give(row, { text: lines(1, 9) });
  assert.match(seen(row), /^\$ ls\n\n… 6 earlier lines \(.*to expand\)\nline 7\nline 8\nline 9\n\nTook/);
  row.component.setExpanded(true);
  assert.match(seen(row), /3 earlier lines[^]*line 4\n[^]*line 9\n/);
  const cut = bashRow({ command: "ls" }, given);
  start(cut);
  give(cut, { text: lines(1, 9) + FOOTER, details: { truncation: CUT, fullOutputPath: LOG } });
  assert.match(seen(cut), new RegExp("8 earlier lines.*\\nline 9\\n\\n\\[Full output: "
    + `${LOG}\\. Truncated: showing 2000 of 3000 lines\\]\\n\\nTook`));
  const none = bashRow({ command: "ls" }, { bashCompactDisplayLines: 0 });
  give(none, { text: lines(1, 9) });
  assert.match(seen(none), /^\$ ls\n\n… 9 earlier lines/);
  const expanded = bashRow({ command: "ls" }, { bashCompactDisplayLines: 2 });
  expanded.component.setExpanded(true);
  give(expanded, { text: lines(1, 50) });
  assert.match(seen(expanded), /line 1\n[^]*line 50/);
});

// rule: bash.md, In pi: All of the seed's keys, same defaults but for `outputDir` and the words of
//   the default texts
it("without settings 5 lines, of what was cut 2, expanded as many as the model reads", () => {
  const row = bashRow({ command: "ls" });
  give(row, { text: lines(1, 9) });
  assert.match(seen(row), /4 earlier lines.*\nline 5\n[^]*line 9/);
  const details = { truncation: CUT, fullOutputPath: LOG };
  // While it runs pi draws it, until more was printed than is kept: then ours do, and nothing ticks
  // for ever.
  const cut = bashRow({ command: "seq 1 3000" });
  start(cut);
  give(cut, { text: lines(1, 9) }, true);
  give(cut, { text: lines(1_001, 3_000), details }, true);
  give(cut, { text: lines(1_001, 3_000) + FOOTER, details });
  assert.match(seen(cut), /1998 earlier lines.*\nline 2999\nline 3000\n\n\[Full output/);
  cut.component.setExpanded(true);
  assert.match(seen(cut), /\$ seq 1 3000\n\nline 1001\n[^]*line 3000\n/);
  const facts = { ...ENDED, tail: lines(1, 9) };
  assert.match(message([facts]), /4 earlier lines.*\nline 5\n/);
  assert.match(message([{ ...facts, truncated: true }]), /7 earlier lines.*\nline 8\nline 9$/);
  assert.match(message([{ ...facts, tail: lines(1, 25) }], {}, true), /5 earlier lines.*\nline 6\n/);
  const poll = { ...facts, kind: "poll", tail: lines(1, 35) };
  assert.match(message([poll], {}, true), /5 earlier lines.*\nline 6\n/);
});

// rule: bash.md, tmux-bash.jsonc, key by key: `peekCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `peekTruncatedCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `peekExpandedDisplayLines`
it("tmux: its action, its window, its answer; the peek…DisplayLines", () => {
  const row = tmuxRow({ action: "peek", window: "@3" });
  give(row, { text: `window: a @3\n$ a\n${lines(1, 9)}` });
  assert.match(seen(row), /^tmux peek @3\n\n… 6 earlier lines.*\nline 5\n[^]*line 9$/);
  const poll = tmuxRow({ action: "poll", window: "@3", pollInterval: 10, pollLines: 5 },
    { tmuxToolName: "windows" });
  give(poll, { text: "Polling a every 10s." });
  assert.equal(seen(poll), "windows poll @3 (every 10s · 5 lines)\n\nPolling a every 10s.");
  const given = {
    peekCompactDisplayLines: 2, peekTruncatedCompactDisplayLines: 3, peekExpandedDisplayLines: 4,
  };
  const short = tmuxRow({ action: "peek", window: "@3" }, given);
  give(short, { text: lines(1, 9) });
  assert.match(seen(short), /7 earlier lines.*\nline 8\nline 9$/);
  short.component.setExpanded(true);
  assert.match(seen(short), /5 earlier lines.*\nline 6\n[^]*line 9$/);
  const cut = tmuxRow({ action: "peek", window: "@3" }, given);
  give(cut, { text: lines(1, 9) + FOOTER });
  assert.match(seen(cut), /9\n\n\[Showing lines 1001-3000 of 3000\. Full output: [^\]]+\]$/);
  const failed = tmuxRow({ action: "kill", window: "@9" });
  give(failed, { text: "No background window @9.", isError: true });
  assert.equal(seen(failed), "tmux kill @9\n\nNo background window @9.");
});

/** A message as pi would draw it. */
function message(windows: object[], given: Partial<TmuxBashConfig> = {}, expanded = false): string {
  const renderer = windowMessageRenderer(settings(given));
  const drawn = renderer({ content: "as the model reads it", details: { windows } }, { expanded }, theme);
  const rows = drawn.render(80);
  for (const line of rows) assertHarmless(line, 80);
  return rows.map((line) => withoutColours(line).trim()).join("\n").trim();
}

const ENDED = {
  kind: "exited", window: "@3", name: "tests", command: "npm test", exit_code: 0, tail: lines(1, 9),
};

// rule: bash.md, In pi: Completion and poll messages have renderers
it("a completion: how it ended, its command, the end of its output", () => {
  assert.match(message([ENDED]), new RegExp("^✓ #3 tests ended · exit 0\\n\\$ npm test\\n\\n"
    + "… 4 earlier lines \\(.*to expand\\)\\nline 5\\n[^]*line 9$"));
  assert.match(message([{ ...ENDED, exit_code: 3, tail: "" }]), /^✕ #3 tests ended · exit 3\n/);
  const killed = { ...ENDED, exit_code: undefined, signal: "SIGTERM" };
  assert.match(message([killed]), /^✕ #3 tests ended · signal SIGTERM\n/);
  assert.match(message([ENDED, { ...ENDED, window: "@4" }]), /#3 tests[^]*line 9\n\n✓ #4 tests/);
  const lost = { ...ENDED, kind: "lost", tail: "", log_path: LOG };
  assert.match(message([lost]), /^✕ #3 tests is lost\n[^]*\[Full output: /);
  assert.equal(message([]), "as the model reads it");
});

// rule: bash.md, tmux-bash.jsonc, key by key: `completedCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `completedTruncatedCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `completedExpandedDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `pollCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `pollTruncatedCompactDisplayLines`
// rule: bash.md, tmux-bash.jsonc, key by key: `pollExpandedDisplayLines`
it("the completed…DisplayLines and poll…DisplayLines", () => {
  for (const [kind, prefix] of [["exited", "completed"], ["poll", "poll"]] as const) {
    const given = {
      [`${prefix}CompactDisplayLines`]: 2, [`${prefix}TruncatedCompactDisplayLines`]: 1,
      [`${prefix}ExpandedDisplayLines`]: 4,
    };
    const facts = { ...ENDED, kind };
    assert.match(message([facts], given), /7 earlier lines.*\nline 8\nline 9$/, kind);
    assert.match(message([facts], given, true), /5 earlier lines.*\nline 6\n/, kind);
    const cut = { ...facts, truncated: true, log_path: LOG };
    assert.match(message([cut], given), /8 earlier lines.*\nline 9\n\n\[Full output: /, kind);
    assert.match(message([facts], {}, true), /npm test\n\nline 1\n[^]*line 9$/, kind);
  }
  assert.match(message([{ ...ENDED, kind: "poll" }]), /^↻ #3 tests is running\n/);
});

// rule: bash.md, In pi: Completion and poll messages have renderers
it("nothing of a message steers the terminal, whatever it holds", () => {
  const drawMessage = windowMessageRenderer(settings({}));
  for (const hostile of Object.values(HOSTILE)) {
    message([{ ...ENDED, name: hostile, command: hostile, tail: hostile, signal: hostile }]);
    const details = { windows: [hostile, null, 7, { tail: 7 }] };
    const card = drawMessage({ content: hostile, details }, { expanded: true }, theme);
    for (const line of card.render(60)) assertHarmless(line, 60);
  }
});

// It was named as the full output, on a full disk as well.
it("a log that lacks something is not named without saying so, in a row and in a message", () => {
  const footer = FOOTER.replace(LOG, `${LOG} (40 bytes are missing from it)`);
  for (const given of [{}, { bashCompactDisplayLines: 3 }]) {
    for (const [trouble, word] of [
      [{ log_complete: false }, "incomplete"],
      [{ log_truncated: true }, "truncated"],
    ] as const) {
      const row = bashRow({ command: "seq 1 3000" }, given);
      const details = { truncation: CUT, fullOutputPath: LOG, ...trouble };
      give(row, { text: lines(1, 9) + footer, details });
      assert.match(seen(row), new RegExp(`line 9\\n+\\[Full output: ${LOG} \\(${word}\\)\\. Trunc`));
      assert.doesNotMatch(seen(row), /Showing lines/);
    }
  }
  const window = { kind: "exited", window: "@1", name: "n", command: "c", tail: "x\n", exit_code: 0 };
  const facts = { ...window, truncated: true, log_path: LOG, log_complete: false };
  const message = { content: "", details: { windows: [facts] } };
  const card = windowMessageRenderer(settings({}))(message, { expanded: false }, theme);
  const shown = card.render(200).map(withoutColours).join("\n");
  assert.match(shown, new RegExp(`\\[Full output: ${LOG} \\(incomplete\\)\\]`));
});
