/** The types of the wire are what execd says of itself. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { MODELS_FILE, describeModels, modelsSource } from "../../scripts/models.ts";
import { type Schema, WIRE_FILE, describe, wireSource } from "../../scripts/wire.ts";
import { EXECD } from "./lib.ts";

/** The source of one method whose params are these. */
function made(properties: Record<string, Schema>, required: string[] = []): string {
  const params = { type: "object", properties, required };
  return wireSource({ methods: [{ name: "m", summary: "Does it.", params, otherParams: null }] });
}

it("src/execd/wire.ts is made of the table that this execd prints", () => {
  const source = wireSource(describe(EXECD));
  assert.equal(readFileSync(WIRE_FILE, "utf8"), source, "src/execd/wire.ts is old: npm run wire");
  for (const line of source.split("\n")) assert.ok(line.length <= 100, line);
});

// rule: pi.md, One source: A test holds the extension's copy against what execd prints
it("src/execd/models.ts is made of what this execd prints for models", () => {
  const source = modelsSource(describeModels(EXECD));
  assert.equal(readFileSync(MODELS_FILE, "utf8"), source, "src/execd/models.ts is old: npm run wire");
  for (const line of source.split("\n")) assert.ok(line.length <= 100, line);
});

it("every kind of param has its type", () => {
  const long = "word ".repeat(40).trim();
  const source = made({
    one: { type: "integer" },
    two: { type: ["string", "null"] },
    three: { enum: ["a", "b"], type: "string" },
    four: { type: "array", items: { type: "string" } },
    five: { type: "object", additionalProperties: { type: ["string", "null"] } },
    six: { oneOf: [{ type: "boolean" }, { type: "number" }], description: long },
    seven: { type: "object", properties: { a: { type: "string" } }, description: "a part" },
  }, ["one"]);
  for (const line of [
    "one: number;", "two?: string | null;", 'three?: "a" | "b";', "four?: readonly string[];",
    "five?: Record<string, string | null>;", "six?: boolean | number;", "seven?: Seven;",
  ]) {
    assert.ok(source.includes(`\n    ${line}\n`), `${line} in ${source}`);
  }
  assert.match(source, /\/\*\* a part \*\/\nexport type Seven = \{\n  a\?: string;\n\};\n/);
  assert.match(source, /\n    \/\*\*\n(     \* (word ?){1,19}\n){3}     \*\/\n    six\?/);
});

it("what has no type is an error; objects of one name are two at most: a plain and a camel one", () => {
  assert.throws(() => made({ odd: { type: "date" } }), /no type for odd/);
  const inner: Schema = { type: "object", properties: {} };
  const outer: Schema = { type: "object", properties: { twin: inner } };
  assert.match(made({ twin: outer }), /type Twin = [^]*type TwinCamel = \{\n  twin\?: Twin;\n/);
  const outermost: Schema = { type: "object", properties: { twin: outer } };
  assert.throws(() => made({ twin: outermost }), /too many kinds of Twin/);
});
