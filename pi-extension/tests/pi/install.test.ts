/**
 * Ways to get the extension into pi, beside `-e` with the package directory.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runJson } from "./lib/json.ts";
import { exec, turn } from "./lib/model.ts";
import { execdBinary, EXTENSION_DIR, piCommand, plainPath } from "./lib/paths.ts";
import { processesOf } from "./lib/processes.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";

const script = [turn("Run.", exec("echo hi")), turn("Done.")];

function pi(place: Scratch, ...args: string[]): string {
  const [program, ...first] = piCommand();
  const options = { cwd: place.cwd, env: place.plainEnvironment(), encoding: "utf8" } as const;
  return execFileSync(program, [...first, ...args], options);
}

test("pi install -l DIR: in this project, and only there", async (t) => {
  const place = scratch(t);
  pi(place, "install", "-l", EXTENSION_DIR);
  const settings = readFileSync(join(place.cwd, ".pi/settings.json"), "utf8");
  assert.match(settings, /pi-extension/);
  assert.match(pi(place, "list"), /pi-extension/);
  const env = { EXECD_BIN: execdBinary() };
  const run = await runJson(place, { extensions: [], script, env });
  assert.match(run.toolEnd("exec_command").text, /^\[exited\]\nexit_code: 0\n---\nhi\n$/);
  pi(place, "remove", "-l", EXTENSION_DIR);
  const without = await runJson(place, { extensions: [], script: [turn("Nothing.")], env });
  assert.deepEqual(without.requests.at(-1)?.tools, ["bash", "edit", "read", "write"]);
});

// rule: pi.md, The extension: Order: EXECD_COMMAND, EXECD_BIN, package, PATH, checkout
test("execd on PATH is found", async (t) => {
  const place = scratch(t);
  execFileSync("mkdir", ["bin"], { cwd: place.dir });
  execFileSync("ln", ["-s", execdBinary(), "bin/execd"], { cwd: place.dir });
  const run = await runJson(place, {
    script: [turn("Run.", exec("cat /proc/$PPID/cmdline | tr '\\0' ' '; echo")), turn("Done.")],
    env: { EXECD_BIN: undefined, PATH: `${place.path("bin")}:${plainPath()}` },
  });
  assert.ok(run.toolEnd("exec_command").text.includes(place.path("bin/execd")));
});

// rule: pi.md, The extension: EXECD_COMMAND is a command line; an absent workdir stays absent,
//   nothing of this environment is sent
test("EXECD_COMMAND: a command line, whose place decides where commands run", async (t) => {
  const place = scratch(t);
  execFileSync("mkdir", ["elsewhere"], { cwd: place.dir });
  const line = `cd '${place.path("elsewhere")}' && exec '${execdBinary()}'`;
  const run = await runJson(place, {
    script: [turn("Where?", exec("pwd; echo \"$PI_PROVIDER\"")), turn("Done.")],
    env: { EXECD_BIN: "/nonexistent", EXECD_COMMAND: line },
  });
  assert.match(
    run.toolEnd("exec_command").text,
    new RegExp(`\\n---\\n${place.path("elsewhere")}\\nfaux\\n$`),
  );
  assert.deepEqual(processesOf(place.tag), []);
});

test("pi --help and --version start no execd and print nothing of ours but the flags", (t) => {
  const place = scratch(t);
  const help = pi(place, "-e", EXTENSION_DIR, "--help");
  for (const flag of ["--exec-tools", "--keep-builtin-bash", "--exec-hold-seconds"]) {
    assert.ok(help.includes(flag), `${flag} in the help`);
  }
  assert.equal(existsSync(join(place.tmp, `pi-execd-${process.getuid?.()}`)), false);
});
