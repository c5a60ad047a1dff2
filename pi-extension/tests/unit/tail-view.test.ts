/** The live tail of /jobs: what it draws, whatever is printed. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { TailView } from "../../src/render/tail-view.ts";
import { HOSTILE } from "./hostile-texts.ts";
import { assertHarmless } from "./render-harness.ts";

function viewOf(rows: number): TailView {
  const theme = { fg: (_tone: string, text: string) => text };
  return new TailView(theme, { rows: () => rows, draw: () => {}, close: () => {} });
}

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

it("a bounded part is kept, lines come whole from pieces, and what is begun is shown", () => {
  const view = viewOf(17);
  for (let i = 1; i <= 5_000; i++) view.append(`line ${i}\n`);
  view.append("10%\r2");
  view.append("0%\r30%");
  const drawn = ["line 4997", "line 4998", "line 4999", "line 5000", "30%"];
  assert.deepEqual(view.render(40).slice(2, -2), drawn);
  view.handleInput("\x1b[H");
  assert.equal(view.render(40)[2], "line 3001");
  // Whoever reads what is dropped meanwhile goes on with what is left.
  for (let i = 1; i <= 1_998; i++) view.append(`new ${i}\n`);
  assert.deepEqual(view.render(40).slice(2, -2), ["line 4999", "line 5000"]);
  assert.match(view.render(80).at(-2) ?? "", /^stopped, 1998 newer lines · end goes on/);
  view.handleInput("\x1b[F");
  assert.equal(view.render(40).at(-3), "new 1998");
  for (let i = 0; i < 9; i++) view.append("x y".repeat(50_000));
  view.handleInput("\x1b[H");
  assert.equal(view.render(40).length, 9);
  view.handleInput("\x1b[F");
  view.note("[7 bytes are gone]");
  assert.equal(view.render(40).at(-3), "[7 bytes are gone]");
});
