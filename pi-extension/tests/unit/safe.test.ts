import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import { formatAge, formatSeconds, formatSize } from "../../src/text/figures.ts";
import { tildify } from "../../src/text/home.ts";
import { drawable, stripControls } from "../../src/text/safe.ts";
import { cutToCells, oneLine } from "../../src/text/width.ts";
import { millis, randomText, seeded } from "./render-random.ts";

const between = (code: number, low: number, high: number): boolean => code >= low && code <= high;

/** What stripControls should do, one code unit after the other. */
function model(text: string): string {
  let kept = "";
  let at = 0;
  const code = (index: number): number => (index < text.length ? text.charCodeAt(index) : -1);
  const skip = (low: number, high: number): void => {
    while (between(code(at), low, high)) at++;
  };
  const skipString = (): void => {
    while (at < text.length && ![0x07, 0x18, 0x1a, 0x1b, 0x9c, 0x0a].includes(code(at))) at++;
    if (code(at) === 0x1b && code(at + 1) === 0x5c) at += 2;
    else if ([0x07, 0x18, 0x1a, 0x9c].includes(code(at))) at++;
  };
  const skipCsi = (): void => {
    skip(0x30, 0x3f);
    skip(0x20, 0x2f);
    if (between(code(at), 0x40, 0x7e)) at++;
  };
  while (at < text.length) {
    const here = code(at);
    const next = code(at + 1);
    if (here === 0x1b && [0x5d, 0x50, 0x58, 0x5e, 0x5f].includes(next)) {
      at += 2;
      skipString();
    } else if (here === 0x1b && next === 0x5b) {
      at += 2;
      skipCsi();
    } else if (here === 0x1b) {
      at += 1;
      skip(0x20, 0x2f);
      if (between(code(at), 0x30, 0x7e)) at++;
    } else if ([0x90, 0x98, 0x9d, 0x9e, 0x9f].includes(here)) {
      at += 1;
      skipString();
    } else if (here === 0x9b) {
      at += 1;
      skipCsi();
    } else if (isDropped(here)) {
      at += 1;
    } else if (between(here, 0xd800, 0xdbff) && between(next, 0xdc00, 0xdfff)) {
      kept += text.slice(at, at + 2);
      at += 2;
    } else {
      if (!between(here, 0xd800, 0xdfff)) kept += text.charAt(at);
      at += 1;
    }
  }
  return kept;
}

function isDropped(code: number): boolean {
  if (code === 0x0a || code === 0x09) return false;
  if (code < 0x20 || between(code, 0x7f, 0x9f)) return true;
  if (code === 0x061c || code === 0x200e || code === 0x200f) return true;
  return between(code, 0x2028, 0x202e) || between(code, 0x2066, 0x2069);
}

describe("stripControls", () => {
  const cases: [string, string, string][] = [
    ["plain text", "hello, wörld 漢字 😀\n\tx", "hello, wörld 漢字 😀\n\tx"],
    ["colours", "\x1b[1;31mred\x1b[0m", "red"],
    ["colon parameters", "\x1b[38:2::1:2:3mx", "x"],
    ["private modes", "a\x1b[?1049h\x1b[?25lb", "ab"],
    ["intermediates", "a\x1b[1 qb\x1b[!pc", "abc"],
    ["title with BEL", "a\x1b]0;title\x07b", "ab"],
    ["hyperlink with ST", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["clipboard", "a\x1b]52;c;aGk=\x07b", "ab"],
    ["clipboard, C1", "a\x9d52;c;aGk=\x9cb", "ab"],
    ["device control string", "a\x1bP1$r0m\x1b\\b", "ab"],
    ["application command", "a\x1b_Gf=100;AAAA\x1b\\b", "ab"],
    ["string given up at the line's end", "a\x1b]0;oops\nnext", "a\nnext"],
    ["string cut off", "a\x1b]0;oops", "a"],
    ["sequence inside a string", "a\x1b]0;t\x1b[31mb", "ab"],
    ["C1 CSI", "a\x9b31mb", "ab"],
    ["cut CSI", "a\x1b[12", "a"],
    ["CSI before a line's end", "a\x1b[12\nb", "a\nb"],
    ["charset", "\x1b(0lqk\x1b(B", "lqk"],
    ["reset", "a\x1bcb", "ab"],
    ["lone ESC", "a\x1b", "a"],
    ["ESC ESC CSI", "a\x1b\x1b[31mb", "ab"],
    ["removal makes no new sequence", "\x1b\x07[31mx", "[31mx"],
    ["C0", "a\x00\x07\b\r\v\f\x0eb", "ab"],
    ["CR LF", "a\r\nb", "a\nb"],
    ["DEL and C1", "a\x7f\x85\x80b", "ab"],
    ["overrides", "a\u202eb\u2066c\u2069\u200fd", "abcd"],
    ["line separators", "a\u2028b\u2029c", "abc"],
    ["half pairs", "\ud83dx\ude00", "x"],
    ["high before a pair", "\ud83d\ud83d\ude00", "😀"],
    ["halves do not meet", "\ud83d\x1b[m\ude00", ""],
  ];
  for (const [name, given, expected] of cases) {
    test(name, () => {
      assert.equal(stripControls(given), expected);
      assert.equal(model(given), expected, "the model of the random test");
    });
  }

  test("does as a naive model on random text", () => {
    const below = seeded(20_260_721);
    const pieces = ["\x1b", "[", "]", "P", "_", "\\", "\x07", "\x9b", "\x9d", "\x9c", "\x90"];
    pieces.push("3", ";", "?", " ", "!", "m", "K", "c", "(", "\n", "\t", "\r", "\x00", "\x7f");
    pieces.push("\x85", "\x18");
    pieces.push("\ud83d", "\ude00", "é", "漢", "\u202e", "\u2069", "\u2028", "a", "text", "\x1a");
    for (let round = 0; round < 20_000; round++) {
      const text = randomText(below, pieces, 24);
      const stripped = stripControls(text);
      assert.equal(stripped, model(text), JSON.stringify(text));
      assert.equal(stripControls(stripped), stripped, `not settled: ${JSON.stringify(text)}`);
    }
  });

  test("takes every code unit as the model does", () => {
    for (let code = 0; code <= 0xffff; code++) {
      const text = `a${String.fromCharCode(code)}b`;
      assert.equal(stripControls(text), model(text), code.toString(16));
    }
  });

  test("takes linear time on broken sequences", () => {
    const broken = ["\x1b", "\x1b[", "\x1b]", "\x1b[1;", "\x1b]0;x", "\x9b ", "\ud83d", "\x1bP\n"];
    for (const piece of broken) {
      const text = piece.repeat(1_000_000 / piece.length);
      assert.ok(millis(() => stripControls(text)) < 2000, JSON.stringify(piece));
    }
    const unfinished = `\x1b]0;${"x".repeat(4_000_000)}`;
    assert.ok(millis(() => stripControls(unfinished)) < 2000);
  });
});

describe("drawable", () => {
  test("draws a tab as three blanks, as pi does", () => {
    assert.equal(drawable("a\tb\x1b[31m\tc\n\t"), "a   b   c\n   ");
  });
});

describe("cutToCells", () => {
  const cases: [string, number, string][] = [
    ["hello", 5, "hello"],
    ["hello", 4, "hel…"],
    ["hello", 1, "…"],
    ["hello", 0, ""],
    ["hello", -3, ""],
    ["漢字漢字", 8, "漢字漢字"],
    ["漢字漢字", 7, "漢字漢…"],
    ["漢字漢字", 6, "漢字…"],
    ["漢", 1, "…"],
    ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
    ["👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"],
  ];
  for (const [text, cells, expected] of cases) {
    test(`${JSON.stringify(text)} to ${cells}`, () => {
      assert.equal(cutToCells(text, cells), expected);
    });
  }

  test("fits, and is whole where it can be, for random text", () => {
    const below = seeded(7);
    const pieces = ["a", " ", "漢", "😀", "e\u0301", "\u0301", "🇩🇪", "कि", "\u200b", "word"];
    for (let round = 0; round < 5_000; round++) {
      const text = randomText(below, pieces, 12);
      const cells = 1 + below(12);
      const cut = cutToCells(text, cells);
      assert.ok(visibleWidth(cut) <= cells, JSON.stringify([text, cells, cut]));
      assert.equal(cut === text, visibleWidth(text) <= cells, JSON.stringify([text, cells, cut]));
      if (cut !== text) assert.ok(text.startsWith(cut.slice(0, -1)) && cut.endsWith("…"));
    }
  });
});

describe("oneLine", () => {
  test("collapses blanks and line ends and strips", () => {
    assert.equal(oneLine("  a \n\n\tb\x1b[31m  c\r\n ", 40), "a b c");
  });
  test("cuts with an ellipsis", () => assert.equal(oneLine("npm run dev", 7), "npm ru…"));
  test("is empty for nothing", () => {
    assert.equal(oneLine(" \n ", 10), "");
    assert.equal(oneLine("abc", 0), "");
  });
  test("reads no more of a megabyte than it shows", () => {
    const megabytes = "x".repeat(64_000_000);
    assert.equal(oneLine(megabytes, 10), `${"x".repeat(9)}…`);
    assert.ok(millis(() => oneLine(megabytes, 10)) < 100);
  });
  test("says that something is missing where most of it was invisible", () => {
    assert.equal(oneLine(`a${"\x00".repeat(100_000)}b`, 20), "a…");
  });
  test("breaks no pair where it stops reading", () => {
    for (let shift = 0; shift < 4; shift++) {
      const line = oneLine("a".repeat(shift) + "😀".repeat(50_000), 30);
      assert.ok(!/\p{Surrogate}/u.test(line));
      assert.ok(visibleWidth(line) <= 30);
    }
  });
});

describe("tildify", () => {
  const cases: [string, string, string][] = [
    ["/home/ada", "/home/ada", "~"],
    ["/home/ada/x", "/home/ada", "~/x"],
    ["/home/ada/x", "/home/ada/", "~/x"],
    ["/home/adam/x", "/home/ada", "/home/adam/x"],
    ["/srv/home/ada/x", "/home/ada", "/srv/home/ada/x"],
    ["/x", "/", "/x"],
    ["/x", "", "/x"],
    ["", "/home/ada", ""],
  ];
  for (const [path, home, expected] of cases) {
    test(`${path} in ${home}`, () => assert.equal(tildify(path, home), expected));
  }
});

describe("times and sizes", () => {
  const seconds: [number, string][] = [
    [0, "0.0s"],
    [1_300, "1.3s"],
    [2_449, "2.4s"],
    [59_949, "59.9s"],
    [59_950, "1m 0s"],
    [90_000, "1m 30s"],
    [3_599_900, "59m 59s"],
    [7_384_000, "2h 3m 4s"],
    [-5, "0.0s"],
    [Number.NaN, "0.0s"],
    [Number.POSITIVE_INFINITY, "0.0s"],
  ];
  for (const [ms, expected] of seconds) {
    test(`${ms} ms is ${expected}`, () => assert.equal(formatSeconds(ms), expected));
  }
  const ages: [number, string][] = [
    [0, "0s"],
    [41_999, "41s"],
    [60_000, "1m"],
    [179_000, "2m"],
    [3_600_000, "1h"],
    [3_900_000, "1h 5m"],
    [86_400_000, "1d"],
    [273_600_000, "3d 4h"],
    [Number.NaN, "0s"],
  ];
  for (const [ms, expected] of ages) {
    test(`an age of ${ms} ms is ${expected}`, () => assert.equal(formatAge(ms), expected));
  }
  const sizes: [number, string][] = [
    [512, "512B"],
    [51_200, "50.0KB"],
    [1_258_291, "1.2MB"],
    [-1, "0B"],
  ];
  for (const [bytes, expected] of sizes) {
    test(`${bytes} bytes are ${expected}`, () => assert.equal(formatSize(bytes), expected));
  }
});
