/**
 * Surroundings that are not as one would wish: another extension with the same tools, no execd.
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { call, exec, turn } from "./lib/model.ts";
import { EXTENSION_DIR, FIXTURES_DIR } from "./lib/paths.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import type { PiOptions, Scratch } from "./lib/scratch.ts";

const OTHER = join(FIXTURES_DIR, "other-exec.ts");

// rule: pi.md, The extension: Another extension owns a name: ours step aside, one notice
test("an extension loaded before ours has exec_command: it keeps it", (t) =>
  besideOther(t, [OTHER, EXTENSION_DIR]));

// rule: pi.md, The extension: Another extension owns a name: ours step aside, one notice
test("an extension loaded after ours has exec_command: it keeps it", (t) =>
  besideOther(t, [EXTENSION_DIR, OTHER]));

async function besideOther(t: TestContext, extensions: string[]): Promise<void> {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    extensions,
    script: [turn("Run.", exec("echo hi")), turn("Done.")],
  });
  await rpc.prompt("start");
  assert.deepEqual(rpc.toolEnds("exec_command").map((end) => end.text), ["theirs: echo hi"]);
  const notices = rpc.notices().filter((one) => /exec_command/.test(one.text));
  assert.equal(notices.length, 1, JSON.stringify(rpc.notices()));
  assert.equal(rpc.notices().length, 1, JSON.stringify(rpc.notices()));
  assert.equal((await rpc.quit()).code, 0, rpc.stderr);
}

/** The extension copied to where no checkout is around it. */
function copyExtension(place: Scratch): string {
  const copy = place.path("copied/pi-execd");
  for (const name of ["package.json", "src"]) {
    cpSync(join(EXTENSION_DIR, name), join(copy, name), { recursive: true });
  }
  return copy;
}

async function withoutExecd(t: TestContext, env: PiOptions["env"], tried: RegExp): Promise<void> {
  const place = scratch(t);
  const rpc = new Rpc(place, {
    extensions: [copyExtension(place)],
    env: { EXECD_BIN: undefined, ...env },
    script: [
      turn("pi's own.", call("bash", { command: "echo bash is there" })),
      turn("Ours.", exec("echo hi"), call("list_sessions")),
      turn("Done."),
    ],
  });
  await rpc.prompt("start");
  assert.ok(place.requests()[0]?.tools.includes("bash"), "pi keeps its bash");
  assert.equal(rpc.toolEnds("bash")[0]?.text, "bash is there\n");
  const notices = rpc.notices();
  assert.equal(notices.length, 1, JSON.stringify(notices));
  assert.match(notices[0]?.text ?? "", /execd/);
  const [end] = rpc.toolEnds("exec_command");
  assert.equal(end?.isError, true);
  assert.match(end?.text ?? "", tried);
  assert.match(end?.text ?? "", /EXECD_BIN|EXECD_COMMAND/, "it says how to fix it");
  assert.doesNotMatch(end?.text ?? "", /\n\s+at /, "no stack");
  assert.equal((await rpc.quit()).code, 0, rpc.stderr);
}

// rule: pi.md, The extension: Without an execd pi starts, keeps its bash, one notice, one clear
//   error
test("no execd anywhere: pi starts with its bash, one notice, one clear error", (t) =>
  withoutExecd(t, {}, /PATH/));

// rule: pi.md, The extension: Without an execd pi starts, keeps its bash, one notice, one clear
//   error
test("EXECD_BIN names nothing: the same", (t) =>
  withoutExecd(t, { EXECD_BIN: "/nonexistent/execd" }, /\/nonexistent\/execd/));

// rule: pi.md, The extension: What is found but cannot start is told with its last lines
test("EXECD_BIN names a program that is no execd: the same", (t) =>
  withoutExecd(t, { EXECD_BIN: "/bin/false" }, /\/bin\/false/));
