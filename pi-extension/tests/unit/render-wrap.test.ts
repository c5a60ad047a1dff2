import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { fitted, previewText, wrapRanges, wrapText } from "../../src/render/wrap.ts";
import { millis, randomText, seeded } from "./render-random.ts";

const SIMPLE = ["a", "word", "x".repeat(30), " ", "  ", "          ", "é", "й", "─", "⣿"];
const HARD = ["漢", "字", "ー", "。", "·", "😀", "👩‍👩‍👧", "🇩🇪", "e\u0301", "\u0301", "कि", "का", "ｶﾞ"];
HARD.push("\u00a0", "\u3000", "\u200b", "\u00ad", "ำ");

describe("wrapText", () => {
  test("wraps as pi does", () => {
    const below = seeded(42);
    for (let round = 0; round < 4_000; round++) {
      const text = randomText(below, round % 2 === 0 ? SIMPLE : [...SIMPLE, ...HARD, "\n"], 40);
      const width = 2 + below(30);
      const lines = wrapText(text, width);
      const said = JSON.stringify([text, width]);
      for (const line of lines) assert.ok(visibleWidth(line) <= width, said);
      const pis = wrapTextWithAnsi(text, width);
      // pi itself draws some clusters wider than the width; there is nothing to compare then.
      if (pis.every((line) => visibleWidth(line) <= width)) assert.deepEqual(lines, pis, said);
    }
  });

  test("counts every character right that it takes for one cell", () => {
    for (let code = 0x20; code <= 0xffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const four = String.fromCharCode(code).repeat(4);
      // A character that is taken for one cell is broken by index, into two and two.
      const byIndex = wrapRanges(four, 2).join() === "0,2,2,4";
      if (byIndex && four.trim() !== "") {
        assert.equal(visibleWidth(four), 4, code.toString(16));
      }
    }
  });

  test("leaves out what is wider than the width", () => {
    assert.deepEqual(wrapText("a漢b", 1), ["a", "b"]);
    assert.deepEqual(wrapText("漢", 1), [""]);
    const cluster = `क${"ा".repeat(100)}`;
    for (const line of wrapText(`x ${cluster} y`, 10)) assert.ok(visibleWidth(line) <= 10);
    assert.equal(visibleWidth(fitted(cluster, 10)), 1);
  });

  test("keeps empty lines", () => assert.deepEqual(wrapText("a\n\nb\n", 9), ["a", "", "b", ""]));
});

describe("previewText", () => {
  test("is one end of all visual lines", () => {
    const below = seeded(4);
    for (let round = 0; round < 2_000; round++) {
      const text = randomText(below, [...SIMPLE, ...HARD, "\n", "\n"], 40);
      const width = 2 + below(20);
      const limit = 1 + below(7);
      const all = wrapText(text, width);
      const hidden = Math.max(0, all.length - limit);
      const last = { lines: all.slice(-limit), hidden };
      assert.deepEqual(previewText(text, width, limit), last);
      const first = { lines: all.slice(0, limit), hidden };
      assert.deepEqual(previewText(text, width, limit, "start"), first);
    }
  });

  test("is fast enough to be made four times a second of 50 KiB", () => {
    const bytes = 50 * 1024;
    const floods = {
      "one line": "x".repeat(bytes),
      "one line of words": "ab ".repeat(bytes / 3),
      "short lines": "a\n".repeat(bytes / 2),
      "wide characters": "漢".repeat(bytes / 3),
      "emoji": "😀".repeat(bytes / 4),
      "combining marks": `a${"\u0301".repeat(bytes / 2)}`,
      "blanks": `${" ".repeat(bytes)}x`,
    };
    for (const [name, flood] of Object.entries(floods)) {
      previewText(flood, 80, 5);
      const took = Math.min(...[1, 2, 3].map(() => millis(() => previewText(flood, 80, 5))));
      assert.ok(took < 150, `${name}: ${took} ms`);
    }
  });

  test("takes linear time", () => {
    for (const piece of ["x", "ab ", "é ", "漢", "a\u0301", "\n"]) {
      const text = piece.repeat(400_000 / piece.length);
      assert.ok(millis(() => previewText(text, 80, 5)) < 4000, JSON.stringify(piece));
    }
  });
});
