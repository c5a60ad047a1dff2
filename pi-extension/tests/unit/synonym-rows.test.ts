/** Rows of calls whose arguments have the names of other agents' tools. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { ToolRenderers } from "../../src/render/row.ts";
import { Pi } from "./lib.ts";
import { CWD, drawnBy, give, screen, start } from "./render-harness.ts";

/** The lines of a row as pi draws it, before and after its result. */
function drawn(pi: Pi, name: string, args: object, details?: object): string {
  const tool = pi.tools.get(name) as unknown as ToolRenderers;
  const row = drawnBy(tool, name, args, CWD);
  start(row);
  if (details) give(row, { details });
  return screen(row).join("\n");
}

/** `$ …` stood there, and `→ #…`. */
// rule: pi.md, The tools: A row shows a call by the names of this tool, whatever names it was given
it("a call by another agent's names shows its command, its session and its time", async () => {
  const pi = new Pi();
  await pi.start();
  assert.equal(drawn(pi, "exec_command", { command: "npm test", cwd: "/tmp" }),
    "$ npm test (cwd: /tmp)");
  assert.equal(drawn(pi, "write_stdin", { session_id: 3, input: "y" }), "» y → #3");
  assert.equal(drawn(pi, "write_stdin", { session_id: 3, timeout: 60_000 }),
    "↻ poll → #3 (yield 1m 0s)");
  const until = { port: 5173 };
  const wait = { outcome: "exited" };
  assert.match(drawn(pi, "exec_command", { command: "x", until }, { exit_code: 1, wait }),
    /^\$ x \(until port 5173\)\n\nended without port 5173\n/);
  await pi.shutdown();
});
