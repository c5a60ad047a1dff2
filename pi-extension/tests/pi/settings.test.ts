/** execd.jsonc in the real pi: a project's file, its mistakes, and a flag that beats it. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { exec, newest, turn } from "./lib/model.ts";
import { EXTENSION_DIR } from "./lib/paths.ts";
import { type PiOptions, scratch, type Scratch } from "./lib/scratch.ts";

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

// It was said in notices alone, which nobody sees there: a gate was passed over, and pi's own bash
// used, without a word.
// rule: pi.md, When something is wrong: Without a user interface warnings stand on stderr
test("in print and json mode every warning stands on stderr", async (t) => {
  const said = async (options: Omit<PiOptions, "script">) => {
    const run = await runJson(scratch(t), { ...options, script: [turn("Nothing.")] });
    return run.stderr;
  };
  assert.match(await said({ args: ["--exec-tools", "unifyed"] }),
    /^execd: unknown tools unifyed in --exec-tools; there are: unified, more, stream, bash$/m);
  assert.match(await said({ env: { EXECD_BIN: "/nonexistent/execd" } }),
    /^execd: pi keeps its own bash: no execd to run commands with\. Tried: .*\/nonexistent\/execd/m);
  const place = scratch(t);
  writeFileSync(place.path("gate.ts"), `export default (pi) => {
    pi.registerCommand("gate", { description: "the gate", handler: async () => {} });
    pi.on("tool_call", (event) => (event.toolName === "bash" ? { block: true } : undefined));
  };`);
  const extensions = [EXTENSION_DIR, place.path("gate.ts")];
  const run = await runJson(place, { extensions, script: [turn("Nothing.")] });
  assert.match(run.stderr, /^execd: gate\.ts looks at calls of bash and has no word of exec_command/m);
});

// pi kept its bash while the other machine was slow, or down: what was meant for that one ran here.
// rule: pi.md, When something is wrong: Where commands belong on another machine pi's bash goes at once
test("where commands run on another machine, pi's bash is not there in its place", async (t) => {
  const place = scratch(t);
  writeFileSync(join(place.agentDir, "execd.jsonc"), '{ "command": "false" }');
  const script = [turn("Try.", exec("hostname")), turn("Down.")];
  const run = await runJson(place, { script, env: { EXECD_BIN: undefined } });
  const tools = run.requests[0]?.tools ?? [];
  assert.ok(tools.includes("exec_command") && !tools.includes("bash"), String(tools));
  assert.match(run.stderr, /^execd: no execd to run commands with\. Tried: command in /m);
  assert.match(newest(run.requests.at(-1)).text, /^no execd to run commands with\. Tried: command in /);
  const kept = await runJson(scratch(t), {
    args: ["--keep-builtin-bash"], env: { EXECD_COMMAND: "false" }, script: [turn("Nothing.")],
  });
  assert.ok(kept.requests[0]?.tools.includes("bash"), String(kept.requests[0]?.tools));
});
