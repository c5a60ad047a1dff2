/**
 * execd's unified tools beside those of pi-unified-exec, called alike through one stub of pi.
 * Prints a table: what each does, and which of the two does what is right.
 *
 *   npm install --prefix DIR --legacy-peer-deps pi-unified-exec@0.11.0    # the peer, once
 *   node scripts/beside-peer.ts --peer DIR/node_modules/pi-unified-exec [--only WORDS]
 *
 * --only takes the cases that have these words.
 * EXECD_TEST_BIN is the execd to run, by default ../target/release/execd.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { execdBinary, EXTENSION_DIR } from "../tests/pi/lib/paths.ts";
import { Scratch } from "../tests/pi/lib/scratch.ts";
import { CASES } from "./beside-cases.ts";
import type { Case } from "./beside-cases.ts";
import { lendPackages, Stub } from "./pi-stub.ts";

/** What the two facts come to. */
function verdict({ right }: Case, ours: string, theirs: string): string {
  if (ours === theirs) return "same";
  if (right === undefined) return "different";
  const [here, there] = [right.test(ours), right.test(theirs)];
  if (here === there) return here ? "same" : "different";
  return here ? "better" : "worse";
}

/** A cell: no bar may stand in it, and no path of this run. */
function cell(fact: string, place: Scratch): string {
  return fact.replaceAll(place.dir, "").replaceAll("|", "\\|");
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      peer: { type: "string" }, only: { type: "string", default: "" },
    },
  });
  if (values.peer === undefined) throw new Error("--peer DIR: where pi-unified-exec lies");
  const peer = resolve(values.peer);
  const { version } = JSON.parse(readFileSync(join(peer, "package.json"), "utf8")) as
    { version: string };
  lendPackages();
  const place = new Scratch();
  const env = { ...place.plainEnvironment(), EXECD_BIN: execdBinary() };
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  const lines = [
    `| what | execd | pi-unified-exec ${version} | |`, "| --- | --- | --- | --- |",
  ];
  try {
    const ours = await Stub.load(join(EXTENSION_DIR, "src/index.ts"), place.cwd);
    const theirs = await Stub.load(join(peer, "src/index.ts"), place.cwd);
    for (const one of CASES.filter(({ what }) => what.includes(values.only))) {
      const [here, there] = [await one.run(ours), await one.run(theirs)];
      const cells = [one.what, here, there, verdict(one, here, there)];
      lines.push(`| ${cells.map((fact) => cell(fact, place)).join(" | ")} |`);
      console.error(lines.at(-1));
    }
    for (const stub of [ours, theirs]) await stub.emit("session_shutdown", { reason: "quit" });
  } finally {
    // What is left is found by its environment; /proc shows that with which this process began.
    await place.close();
  }
  console.log(lines.join("\n"));
}

await main();
process.exit();
