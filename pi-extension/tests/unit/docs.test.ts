/** docs/pi.md says what is so, and the package's README leaves no tool, flag or command out. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { it } from "node:test";
import type { ToolSchema } from "../../src/tools/schema.ts";
import { KEYS, TMUX_ACTIONS } from "../../src/bash/keys.ts";
import { SETTINGS_KEYS } from "../../src/pi/settings-file.ts";
import { Pi } from "./lib.ts";

const root = resolve(import.meta.dirname, "..", "..");
const doc = readFileSync(resolve(root, "..", "docs", "pi.md"), "utf8");
const readme = readFileSync(join(root, "README.md"), "utf8");

/** The rows of all tables of a text, as cells without blanks around them. */
function rowsOf(text: string): string[][] {
  return text.split("\n").filter((line) => line.startsWith("| ")).map((line) =>
    line.slice(1, -1).split("|").map((cell) => cell.trim()));
}

/** The part of docs/pi.md below this heading. */
function section(heading: string): string {
  const from = doc.indexOf(`\n## ${heading}\n`);
  assert.ok(from >= 0, `docs/pi.md has a part "${heading}"`);
  const end = doc.indexOf("\n## ", from + 1);
  return doc.slice(from, end < 0 ? undefined : end);
}

const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]);

/** Compares the tools of a surface with the table under its heading. */
function checkTools(surface: string, heading: string, tools: number): void {
  process.env.PI_EXECD_TOOLS = surface;
  process.env.PI_EXTENSION_CONFIG_DIR = "/no/such/directory";
  const registered = new Pi().tools;
  delete process.env.PI_EXECD_TOOLS;
  delete process.env.PI_EXTENSION_CONFIG_DIR;
  assert.equal(registered.size, tools);
  for (const [name, tool] of registered) {
    const row = rowsOf(section(heading)).find(([first]) => first === `\`${name}\``);
    assert.ok(row, `docs/pi.md has no row for ${name}`);
    const parameters = Object.keys((tool.parameters as unknown as ToolSchema).properties);
    assert.deepEqual(quoted(row[1] ?? "").sort(), parameters.sort(), name);
    assert.ok(readme.includes(`| \`${name}\` |`), `README.md has no row for ${name}`);
  }
}

// rule: pi.md, The extension: docs/pi.md names every tool, flag, variable and command
it("every unified tool is there with just its parameters", () => {
  checkTools("unified,more", "The tools", 7);
});

// rule: pi.md, The extension: docs/pi.md names every tool, flag, variable and command
it("every stream tool is there with just its parameters", () => {
  checkTools("stream", "The stream tools", 6);
});

// rule: bash.md, In pi: docs/pi.md and docs/bash.md name every tool, parameter and key
it("both bash tools are there with just their parameters", () => {
  checkTools("bash", "The bash tools", 2);
});

// rule: bash.md, In pi: All of the seed's keys, same defaults but for `outputDir` and the words of
//   the default texts
// rule: bash.md, In pi: docs/pi.md and docs/bash.md name every tool, parameter and key
it("docs/bash.md has every key of tmux-bash.jsonc with its default, and no other", () => {
  const bash = readFileSync(resolve(root, "..", "docs", "bash.md"), "utf8");
  const from = bash.indexOf("### Settings");
  const end = bash.indexOf("\n### ", from + 1);
  assert.ok(from >= 0 && end > from);
  const rows = rowsOf(bash.slice(from, end)).filter(([key]) => key?.startsWith("`"));
  assert.deepEqual(rows.map(([key]) => quoted(key ?? "")[0]).sort(), Object.keys(KEYS).sort());
  for (const [cell = "", fallback = ""] of rows) {
    const name = quoted(cell)[0] as keyof typeof KEYS;
    const value: unknown = KEYS[name].fallback;
    // Texts and what depends on the machine are told in words.
    if (!fallback.startsWith("`")) continue;
    assert.deepEqual(JSON.parse(quoted(fallback)[0] ?? ""), value, name);
  }
  for (const action of TMUX_ACTIONS) assert.ok(bash.includes(`\`${action}\``), action);
});

// rule: pi.md, The file execd.jsonc: docs/pi.md and the package's README name every key
it("docs/pi.md and README.md have every key of execd.jsonc", () => {
  const from = doc.indexOf("### The file execd.jsonc");
  const rows = rowsOf(doc.slice(from, doc.indexOf("\n### ", from + 1)));
  const named = rows.map(([cell]) => quoted(cell ?? "")[0]).filter(Boolean);
  assert.deepEqual(named, Object.keys(SETTINGS_KEYS));
  for (const key of Object.keys(SETTINGS_KEYS)) assert.ok(readme.includes(`\`${key}\``), key);
});

// rule: pi.md, The extension: docs/pi.md names every tool, flag, variable and command
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
  assert.ok(flags.length >= 4 && variables.length >= 6 && commands.length >= 4);
  const first = new Set(rowsOf(doc).map(([cell]) => cell));
  const brief = rowsOf(readme).flatMap(([cell]) => quoted(cell ?? ""))
    .map((name) => name?.split(" ")[0]);
  for (const name of [...flags, ...variables, ...commands]) {
    assert.ok(first.has(`\`${name}\``), `docs/pi.md has no row for ${name}`);
    assert.ok(brief.includes(name), `README.md has no row for ${name}`);
  }
});
