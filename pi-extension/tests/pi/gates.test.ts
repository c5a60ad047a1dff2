/** Extensions that gate bash, beside the tools that stand in its place. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { turn } from "./lib/model.ts";
import { EXTENSION_DIR } from "./lib/paths.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";

const gate = (names: string, more = "") => `export default (pi) => {
  ${more}
  pi.on("tool_call", (event) => (${names} ? { block: true, reason: "no" } : undefined));
};
`;
const COMMAND = 'pi.registerCommand("gate", { description: "the gate", handler: async () => {} });';

// rule: pi.md, What happens when: A gate that sees bash alone is told of once, where pi lets it be seen
test("a gate that has no word of exec_command is told of, wherever pi has found it", async (t) => {
  const place = scratch(t);
  const extensions: string[] = [EXTENSION_DIR];
  const write = (name: string, text: string) => {
    writeFileSync(place.path(name), text);
    extensions.push(place.path(name));
  };
  write("blind.ts", gate('event.toolName === "bash"', COMMAND));
  write("seeing.ts", gate('["bash", "exec_command"].includes(event.toolName)', COMMAND));
  // Not found in any setting, and named only on the command line.
  write("bare.ts", gate('event.toolName === "bash"'));
  const inSettings = (name: string, text: string) => {
    mkdirSync(join(place.agentDir, "extensions"), { recursive: true });
    writeFileSync(join(place.agentDir, "extensions", name), text);
  };
  inSettings("found.ts", gate('event.toolName === "bash"'));
  inSettings("off.ts", gate('event.toolName === "bash"'));
  const settings = join(place.agentDir, "settings.json");
  const known = JSON.parse(readFileSync(settings, "utf8")) as object;
  writeFileSync(settings, JSON.stringify({ ...known, extensions: ["!extensions/off.ts"] }));
  const said = async (args: string[]) => {
    const rpc = new Rpc(place, { args, extensions, script: [turn("Done.")] });
    await rpc.prompt("go");
    await rpc.quit();
    return rpc.notices().map(({ text }) => text).filter((text) => /looks at calls/.test(text));
  };
  const blind = (name: string) =>
    `execd: ${name} looks at calls of bash and has no word of exec_command: it may not see what `
      + "exec_command runs; --exec-tools bash keeps the name bash";
  assert.deepEqual(await said([]), ["blind.ts", "bare.ts", "found.ts"].map(blind));
  assert.deepEqual(await said(["--no-extensions"]), ["blind.ts", "bare.ts"].map(blind));
  assert.deepEqual(await said(["--exec-tools", "bash"]), []);
});
