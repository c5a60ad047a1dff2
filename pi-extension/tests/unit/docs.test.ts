/** docs/pi.md says what is so. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { it } from "node:test";
import type { ToolSchema } from "../../src/coerce.ts";
import { Pi } from "./lib.ts";

const root = resolve(import.meta.dirname, "..", "..");
const doc = readFileSync(resolve(root, "..", "docs", "pi.md"), "utf8");

/** The rows of all tables, as cells without blanks around them. */
const rows = doc.split("\n").filter((line) => line.startsWith("| ")).map((line) =>
  line.slice(1, -1).split("|").map((cell) => cell.trim()));

const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]);

it("every tool is there with just its parameters", () => {
  const { tools } = new Pi();
  assert.equal(tools.size, 6);
  for (const [name, tool] of tools) {
    const row = rows.find(([first]) => first === `\`${name}\``);
    assert.ok(row, `docs/pi.md has no row for ${name}`);
    const parameters = Object.keys((tool.parameters as unknown as ToolSchema).properties);
    assert.deepEqual(quoted(row[1] ?? "").sort(), parameters.sort(), name);
  }
});

it("every flag, variable and command is there", () => {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, "src", name), "utf8"))
    .join("\n");
  const flags = [...sources.matchAll(/_FLAG = "([^"]+)"/g)].map((match) => `--${match[1]}`);
  const variables = [
    ...[...sources.matchAll(/_ENV_VAR = "([^"]+)"/g)].map((match) => match[1]),
    ...[...sources.matchAll(/env\.(EXECD_\w+)/g)].map((match) => match[1]),
  ];
  const commands = [...sources.matchAll(/_COMMAND = "([^"]+)"/g)].map((match) => `/${match[1]}`);
  assert.ok(flags.length >= 3 && variables.length >= 4 && commands.length >= 1);
  const first = new Set(rows.map(([cell]) => cell));
  for (const name of [...flags, ...variables, ...commands]) {
    assert.ok(first.has(`\`${name}\``), `docs/pi.md has no row for ${name}`);
  }
});
