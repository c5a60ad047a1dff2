/** The shell of pi's settings. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { it } from "node:test";
import { shellSettings } from "../../src/pi/shell.ts";
import { withBash } from "./bash-lib.ts";
import { Pi, type Result, textOf } from "./lib.ts";

/** pi 1.5 tells its settings as they were written: each call failed with "shell path not found". */
// rule: bash.md, In pi: shellPath, shellCommandPrefix, the bin folder on PATH, the environment hold
//   as for pi's own bash
it("a shell that is written with ~ is run, where pi tells its settings raw", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "execd-home-"));
  const before = process.env.HOME;
  t.after(() => {
    process.env.HOME = before;
    rmSync(home, { recursive: true });
  });
  mkdirSync(join(home, "bin"));
  const script = "#!/bin/bash\nexport BY_SHELL=yes\nexec /bin/bash \"$@\"\n";
  writeFileSync(join(home, "bin", "my shell"), script, { mode: 0o755 });
  process.env.HOME = home;
  const getSettings = () => ({ shellPath: "~/bin/my shell", shellCommandPrefix: "x=1" });
  await withBash({}, async (pi) => {
    const result: Result = await pi.call("bash", { command: "echo $BY_SHELL $x" });
    assert.equal(textOf(result), "yes 1\n");
  }, { getSettings });
});

it("a path is what pi makes of it", () => {
  const pathOf = (shellPath: string | undefined) =>
    shellSettings({ getSettings: () => ({ shellPath }) } as never, {}).shellPath;
  assert.equal(pathOf("~"), homedir());
  assert.equal(pathOf("/a/~/b"), "/a/~/b");
  assert.equal(pathOf("~user/zsh"), "~user/zsh");
  assert.equal(pathOf(pathToFileURL("/opt/my shell").href), "/opt/my shell");
  assert.equal(pathOf(undefined), undefined);
});

it("pi's shell and prefix hold for exec_command and bash_stream, unless the call names a shell", async () => {
  const getSettings = () => ({ shellPath: "/bin/sh", shellCommandPrefix: "SET_BEFORE=yes" });
  for (const [set, tool, name] of [
    ["unified", "exec_command", "cmd"], ["stream", "bash_stream", "command"],
  ] as const) {
    const pi = new Pi({ getSettings });
    pi.flags["exec-tools"] = set;
    await pi.start();
    const run = async (more = {}) => textOf(await pi.call(tool, {
      [name]: 'echo "$0 $SET_BEFORE."', ...more,
    }));
    assert.match(await run(), /\n\/bin\/sh yes\.\n/);
    if (set === "unified") assert.match(await run({ shell: "bash" }), /\nbash \.\n/);
    await pi.shutdown();
  }
});
