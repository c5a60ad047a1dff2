/**
 * What pi's event stream has of a poll of 45 s whose command prints ten lines a second: how many
 * updates, and how many bytes of JSON. Prints a table.
 *
 *   npm install --prefix DIR --legacy-peer-deps pi-unified-exec@0.11.0    # the peer, once
 *   node scripts/chatty-poll.ts --peer DIR/node_modules/pi-unified-exec
 *
 * EXECD_TEST_BIN is the execd to measure, by default ../target/release/execd.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { EXTENSION_DIR } from "../tests/pi/lib/paths.ts";
import { runJson } from "../tests/pi/lib/json.ts";
import { exec, poll, turn } from "../tests/pi/lib/model.ts";
import { Scratch } from "../tests/pi/lib/scratch.ts";

const POLL_MS = 45_000;
const RUN_LIMIT_MS = 180_000;
/** It outlives the poll. */
const CHATTY = "for i in $(seq 900); do echo line $i of a chatty command; sleep 0.1; done";

/** Runs the poll in pi, and gives its updates: how many, and their bytes. */
async function measured(extension: string, settings: object): Promise<string> {
  const place = new Scratch();
  try {
    writeFileSync(join(place.agentDir, "execd.jsonc"), JSON.stringify(settings));
    const { events, toolEnd } = await runJson(place, {
      extensions: [extension],
      patienceMs: RUN_LIMIT_MS,
      script: [turn("Start.", exec(CHATTY, { yield_time_ms: 250 })), turn("Wait.", poll(POLL_MS)), turn("Done.")],
    });
    toolEnd("write_stdin");
    const updates = events.filter(({ type, toolName }) =>
      type === "tool_execution_update" && toolName === "write_stdin");
    // `at` is not pi's.
    const bytes = updates.reduce((sum, { at: _, ...one }) => sum + JSON.stringify(one).length + 1, 0);
    return `${updates.length} | ${(bytes / 1_000).toFixed(0)} kB`;
  } finally {
    await place.close();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { peer: { type: "string" } },
  });
  const rows: [title: string, extension: string, settings: object][] = [
    ["execd", EXTENSION_DIR, {}],
    ['execd, `"pollUpdates": 0`', EXTENSION_DIR, { pollUpdates: 0 }],
  ];
  if (values.peer !== undefined) {
    const peer = resolve(values.peer);
    const { version } = JSON.parse(readFileSync(join(peer, "package.json"), "utf8")) as
      { version: string };
    rows.push([`pi-unified-exec ${version}`, peer, {}]);
  }
  const lines = ["| a poll of 45 s, ten lines a second | updates | their JSON |", "| --- | ---: | ---: |"];
  for (const [title, extension, settings] of rows) {
    lines.push(`| ${title} | ${await measured(extension, settings)} |`);
    console.error(lines.at(-1));
  }
  console.log(lines.join("\n"));
}

await main();
