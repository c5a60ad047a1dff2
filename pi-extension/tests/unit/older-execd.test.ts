/** An execd of an earlier version, which refuses calls that ask for events. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { EXECD, Pi, outputOf } from "./lib.ts";

/** Answers what asks for events as an older execd does, and hands on everything else. */
const OLDER = `
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
const execd = spawn(${JSON.stringify(EXECD)}, process.argv.slice(2), {
  stdio: ["pipe", "inherit", "inherit"],
});
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (params?.events === undefined) return execd.stdin.write(line + "\\n");
  const message = 'unknown param "events" (this method takes: cmd)';
  const error = { code: -32602, message, data: { param: "events" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error }) + "\\n");
}).on("close", () => execd.stdin.end());
execd.on("close", (code) => process.exit(code ?? 1));
`;

// rule: pi.md, What the model learns of ends: An execd of an earlier version
it("commands run there as ever, and no call is refused", async () => {
  const dir = mkdtempSync(join(tmpdir(), "execd-ext-"));
  const program = join(dir, "execd");
  writeFileSync(join(dir, "older.mjs"), OLDER);
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${dir}/older.mjs" "$@"\n`);
  chmodSync(program, 0o755);
  process.env.EXECD_BIN = program;
  const pi = new Pi();
  try {
    await pi.start();
    const run = () => pi.call("exec_command", { cmd: "echo one; echo ran >> ran", workdir: dir });
    for (const result of [await run(), await run()]) assert.equal(outputOf(result), "one\n");
    const all = await pi.call("exec_command", { cmd: "cat ran", workdir: dir });
    assert.equal(outputOf(all), "ran\nran\n", "a refused call has done nothing");
    await pi.call("list_sessions");
  } finally {
    await pi.shutdown();
    process.env.EXECD_BIN = EXECD;
    rmSync(dir, { recursive: true, force: true });
  }
});
