/** Extensions that gate bash, beside the tools that stand in its place. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
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
test("a gate that has no word of exec_command is told of, where pi says which file it is", async (t) => {
  const place = scratch(t);
  const extensions: string[] = [EXTENSION_DIR];
  const write = (name: string, text: string) => {
    writeFileSync(place.path(name), text);
    extensions.push(place.path(name));
  };
  write("blind.ts", gate('event.toolName === "bash"', COMMAND));
  write("seeing.ts", gate('["bash", "exec_command"].includes(event.toolName)', COMMAND));
  write("hidden.ts", gate('event.toolName === "bash"'));
  const said = async (args: string[]) => {
    const rpc = new Rpc(place, { args, extensions, script: [turn("Done.")] });
    await rpc.prompt("go");
    await rpc.quit();
    return rpc.notices().map(({ text }) => text).filter((text) => /looks at calls/.test(text));
  };
  assert.deepEqual(await said([]), [
    "execd: blind.ts looks at calls of bash and has no word of exec_command: it may not see what "
      + "exec_command runs; --exec-tools bash keeps the name bash",
  ]);
  assert.deepEqual(await said(["--exec-tools", "bash"]), []);
});
