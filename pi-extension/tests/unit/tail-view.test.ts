/** The live tail of /jobs: what it draws, whatever is printed. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { TailView } from "../../src/pi/tail-view.ts";
import type { Row } from "../../src/pi/roster.ts";
import { HOSTILE } from "./hostile-texts.ts";
import { assertHarmless } from "./render-harness.ts";

function viewOf(rows: number, done: string[] = []): TailView {
  const theme = { fg: (_tone: string, text: string) => text };
  return new TailView(theme, {
    rows: () => rows,
    draw: () => {},
    close: () => done.push("close"),
    act: async (key, { id }) => {
      done.push(`${key} ${id}`);
      return `did ${key}`;
    },
    whyNoLine: ({ id }) => (id === 4 ? "#4 has ended" : undefined),
    send: async ({ id }, line) => {
      done.push(`${id} ${line}`);
      return `sent ${line}`;
    },
  });
}

/** The keys of the list did nothing in the view of one's output. */
// rule: pi.md, Sessions in a terminal: each key, at every width
it("k, c, a and s are about the session that is shown, once that is known", async () => {
  const done: string[] = [];
  const view = viewOf(24, done);
  view.append("up\n");
  view.handleInput("k");
  assert.deepEqual(done, [], "nobody knows yet which session it is");
  const row = (id: number) => ({ id }) as Row;
  view.title("#3 cat", row(3));
  for (const key of ["k", "c", "a"]) {
    view.handleInput(key);
    await Promise.resolve();
  }
  assert.deepEqual(done, ["k 3", "c 3", "a 3"]);
  for (const width of [60, 80, 120]) {
    const lines = view.render(width);
    assert.deepEqual(lines.slice(1, 4), ["#3 cat", "up", "did a"]);
    assert.match(lines.slice(4).join(" "), /^following · .* q closes k ends · s sends a line · /);
    for (const line of lines) assert.ok(line.length <= width, line);
  }
  view.handleInput("s");
  for (const key of ["q", "k", "\r"]) view.handleInput(key);
  await Promise.resolve();
  assert.deepEqual(done.slice(3), ["3 qk"], "what is typed is no key");
  view.title("#4 true", row(4));
  view.handleInput("s");
  assert.equal(view.render(80)[3], "#4 has ended");
  view.handleInput("q");
  assert.deepEqual(done.slice(4), ["close"]);
});

// rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
it("no line is too wide or steers the terminal, whatever is printed, at any size", () => {
  for (const text of Object.values(HOSTILE)) {
    for (const [width, rows] of [[1, 1], [20, 13], [80, 24]] as const) {
      const view = viewOf(rows);
      view.title(text);
      view.append(text);
      view.append(`\n${text}\nbegun ${text}`);
      const lines = view.render(width);
      assert.ok(lines.length <= 4 + Math.max(5, rows - 12), `${lines.length} lines`);
      // A cell has no room for a wide character.
      if (width > 1) for (const line of lines) assertHarmless(line, width);
    }
  }
});

// rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
it("a bounded part is kept, lines come whole from pieces, and what is begun is shown", () => {
  const view = viewOf(17);
  for (let i = 1; i <= 5_000; i++) view.append(`line ${i}\n`);
  view.append("10%\r2");
  view.append("0%\r30%");
  const drawn = ["line 4997", "line 4998", "line 4999", "line 5000", "30%"];
  assert.deepEqual(view.render(40).slice(2, -2), drawn);
  view.handleInput("\x1b[H");
  assert.equal(view.render(40)[2], "line 3001");
  view.handleInput("\x1b[F");
  assert.deepEqual(view.render(40).slice(2, -2), drawn);
  for (let i = 0; i < 9; i++) view.append("x y".repeat(50_000));
  view.handleInput("\x1b[H");
  assert.equal(view.render(40).length, 9);
  view.handleInput("\x1b[F");
  view.note("[7 bytes are gone]");
  assert.equal(view.render(40).at(-3), "[7 bytes are gone]");
});

/**
 * Under more than 2,000 new lines what somebody read went away: the view was blank and stayed so.
 * The first step up went by two rows where the last line was not finished.
 */
// rule: pi.md, The extension: /jobs, scrolled up: what is read stays; unfinished lines are drawn as
//   a terminal would
it("scrolled up, what is read stays whatever comes, and it goes on from the end", () => {
  const view = viewOf(17);
  const rows = () => view.render(40).slice(2, -2);
  for (let i = 1; i <= 20; i++) view.append(`line ${i}\n`);
  view.append("prompt> ");
  assert.equal(rows().at(-1), "prompt> ");
  view.handleInput("\x1b[A");
  const read = ["line 16", "line 17", "line 18", "line 19", "line 20"];
  assert.deepEqual(rows(), read, "one row up");
  view.append("yes\n");
  for (let i = 1; i <= 9_000; i++) view.append(`new ${i}\n`);
  assert.deepEqual(rows(), read);
  assert.match(view.render(80).at(-2) ?? "", /^stopped, 9001 newer lines · end goes on/);
  view.handleInput("\x1b[H");
  assert.equal(rows()[0], "line 1");
  view.handleInput("\x1b[F");
  assert.equal(rows().at(-1), "new 9000");
  assert.match(view.render(80).at(-2) ?? "", /^following · /);
  view.handleInput("\x1b[H");
  assert.equal(rows()[0], "new 7001");
});

/** Each 4 KiB of a progress bar left a row, and the rest of a title stood in the output. */
// rule: pi.md, The extension: /jobs, scrolled up: what is read stays; unfinished lines are drawn as
//   a terminal would
it("a line that is not finished: what it wrote over is gone, a sequence is not split", () => {
  const bar = viewOf(17);
  bar.append("first\n");
  for (let i = 0; i <= 2_000; i++) bar.append(`\rprogress ${i}%`);
  assert.deepEqual(bar.render(40).slice(2, -2), ["first", "progress 2000%"]);
  bar.append("\r\r");
  bar.append("\nlast\r");
  bar.append("\n");
  assert.deepEqual(bar.render(40).slice(2, -2), ["first", "progress 2000%", "last"]);

  for (const [begun, rest] of [["\x1b]0;tit", "le\x07after\n"], ["\x1b[3", "1mafter\n"]]) {
    const view = viewOf(17);
    view.append("x".repeat(4_095) + begun);
    view.append(rest ?? "");
    assert.equal(view.render(40).at(-3), "after");
  }
});
