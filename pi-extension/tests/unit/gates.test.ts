/** What is looked at to tell of gates, and what is left alone. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { gateNotices } from "../../src/pi/gates.ts";
import type { Host } from "../../src/pi/host.ts";
import { Pi, until } from "./lib.ts";

// pi asked npm where it keeps packages of the whole machine, and the user interface stood still.
// rule: pi.md, What happens when: A gate that sees bash alone is told of once, where pi lets it be seen
it("a package that is not there starts no npm, and other gates are found all the same", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "execd-gates-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const npm = join(dir, "npm");
  const ran = join(dir, "npm-ran");
  writeFileSync(npm, `#!/bin/sh\necho "$@" >> ${ran}\n`, { mode: 0o755 });
  const agentDir = join(dir, "agent");
  mkdirSync(join(agentDir, "extensions"), { recursive: true });
  const gate = 'export default (pi) => pi.on("tool_call", (it) => ({ block: it.toolName === "bash" }));\n';
  writeFileSync(join(agentDir, "extensions/found.ts"), gate);
  const settings = { packages: ["npm:is-not-there"], npmCommand: [npm] };
  writeFileSync(join(agentDir, "settings.json"), JSON.stringify(settings));
  const before = process.env.PI_CODING_AGENT_DIR;
  process.env.PI_CODING_AGENT_DIR = agentDir;
  t.after(() => {
    if (before === undefined) delete process.env.PI_CODING_AGENT_DIR;
    else process.env.PI_CODING_AGENT_DIR = before;
  });
  const notices = await gateNotices({} as Host, { cwd: dir }, ["exec_command"]);
  assert.equal(notices.length, 1);
  assert.match(notices[0] ?? "", /^found\.ts looks at calls of bash /);
  assert.equal(existsSync(ran), false);
});

it("what cannot be looked at for gates is not told as if there were no execd", async () => {
  let asked = 0;
  const pi = new Pi({
    getCommands: () => {
      asked += 1;
      throw new Error("this context has gone stale");
    },
  });
  await pi.start();
  await until(() => asked > 0, "gates are looked for");
  await pi.call("exec_command", { cmd: "true" });
  assert.ok(!pi.active.includes("bash"));
  await pi.shutdown();
  assert.deepEqual(pi.notices, []);
});
