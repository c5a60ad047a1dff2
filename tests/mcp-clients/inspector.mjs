/** `@modelcontextprotocol/inspector --cli`: a list, and a call. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROGRAM = join(HERE, "node_modules/.bin/mcp-inspector");

function inspect(...words) {
  const { status, stdout, stderr } = spawnSync(
    PROGRAM, ["--cli", process.env.EXECD, "mcp", ...words],
    { cwd: process.env.WORK, encoding: "utf8" },
  );
  assert.equal(status, 0, `${words}: ${stdout}${stderr}`);
  return JSON.parse(stdout);
}

const { tools } = inspect("--method", "tools/list");
assert.equal(tools[0].name, "exec_command");
const result = inspect("--method", "tools/call", "--tool-name", "exec_command",
  "--tool-arg", "cmd=echo hi");
assert.match(result.content[0].text,
  /^\[exited\]\nexit_code: 0\n--- output (\w+)\nhi\n--- end \1$/);
