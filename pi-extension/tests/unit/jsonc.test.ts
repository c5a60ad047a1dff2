/** JSON with comments and trailing commas. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { parseJsonc } from "../../src/text/jsonc.ts";

// rule: bash.md, In pi: tmux-bash.jsonc may hold comments and trailing commas
it("comments and trailing commas are read over, in strings they are text", () => {
  const cases: [string, unknown][] = [
    ["{}", {}],
    ["// a file\n{ /* one */ \"a\": 1, // two\n \"b\": [1, 2,], }\n// end", { a: 1, b: [1, 2] }],
    ['{"a": "// no comment", "b": "/* none */", "c": ",}"}', {
      a: "// no comment", b: "/* none */", c: ",}",
    }],
    ['{"a": "quote \\" // still", /* x */}', { a: 'quote " // still' }],
    ['{"a": "back\\\\", // c\n "b": 2}', { a: "back\\", b: 2 }],
    ['\uFEFF{"a": 1}', { a: 1 }],
    ['{"a": 1 /* , */ , /* last */ }', { a: 1 }],
    ['{"url": "https://x/y", // https://x\n}', { url: "https://x/y" }],
    ["[1, /*\n many\n lines */ 2]", [1, 2]],
    ['{"a": 1,\r\n}\r\n', { a: 1 }],
  ];
  for (const [text, value] of cases) assert.deepEqual(parseJsonc(text), value, text);
});

// rule: bash.md, In pi: tmux-bash.jsonc may hold comments and trailing commas
it("what is no JSON is refused, with its place in the file", () => {
  for (const text of ["{,}", "{\"a\" 1}", "{\"a\": 1", "[,]", "{\"a\": 'x'}", "/* open", "{'a': 1}"]) {
    assert.throws(() => parseJsonc(text), SyntaxError, text);
  }
  const broken = "// first\n/* second */\n{\n  \"a\": nope\n}";
  assert.throws(() => parseJsonc(broken), /nope|line 4/);
});

it("a long line of commas or quotes takes no long time", () => {
  const started = Date.now();
  assert.throws(() => parseJsonc(`[${",".repeat(200_000)}`), SyntaxError);
  assert.throws(() => parseJsonc('"'.repeat(200_001)), SyntaxError);
  assert.throws(() => parseJsonc("/*".repeat(100_000)), SyntaxError);
  assert.ok(Date.now() - started < 5_000);
});
