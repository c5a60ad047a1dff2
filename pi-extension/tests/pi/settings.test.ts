/** execd.jsonc in the real pi: a project's file, its mistakes, and a flag that beats it. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { turn } from "./lib/model.ts";
import { scratch, type Scratch } from "./lib/scratch.ts";

/** Writes a project's execd.jsonc and gives its path. */
function inProject(place: Scratch, text: string): string {
  const dir = join(place.cwd, ".pi");
  mkdirSync(dir);
  writeFileSync(join(dir, "execd.jsonc"), text);
  return join(dir, "execd.jsonc");
}

// rule: pi.md, The file execd.jsonc: An unknown key is named with the nearest one, a bad value with
//   what is right
test("a project's file chooses the tools; what is wrong in it stands on stderr", async (t) => {
  const place = scratch(t);
  const path = inProject(place, '{ "tools": ["stream"], "holdSecond": 1, // pi -p\n "secrets": 1, }');
  const run = await runJson(place, { script: [turn("Nothing.")] });
  assert.ok(run.requests[0]?.tools.includes("bash_stream"), String(run.requests[0]?.tools));
  assert.ok(!run.requests[0]?.tools.includes("exec_command"));
  assert.ok(run.stderr.includes(`unknown key holdSecond in ${path}; did you mean holdSeconds?`),
    run.stderr);
  assert.ok(run.stderr.includes(`secrets in ${path}: expected true or false, not 1; `), run.stderr);
});

// rule: pi.md, The file execd.jsonc: A flag beats a variable, a variable the project's file, and
//   that the one in pi's agent directory
test("a flag beats the files, and an untrusted project's does not hold", async (t) => {
  const place = scratch(t);
  const path = inProject(place, '{ "tools": "stream", "command": "false" }');
  writeFileSync(join(place.agentDir, "settings.json"), '{ "defaultProjectTrust": "never" }');
  writeFileSync(join(place.agentDir, "execd.jsonc"), '{ "tools": "bash", "keepBash": true }');
  const args = ["--exec-tools", "unified"];
  const run = await runJson(place, { args, script: [turn("Nothing.")] });
  const tools = run.requests[0]?.tools ?? [];
  assert.ok(tools.includes("exec_command") && tools.includes("bash"), run.stderr + String(tools));
  assert.ok(run.stderr.includes(`${path} does not hold: this project is not trusted (/trust)`), run.stderr);
});
