/**
 * Captures the fixture streams of `agent_execute`: the real pi in json mode, offline and isolated,
 * against a scripted model on loopback.
 *
 *   node scripts/capture-streams.ts [--pi PATH/cli.js] [--only NAME]... OUTDIR
 *
 * Writes OUTDIR/pi-VERSION.SCENARIO.ndjson and, with exit codes and what each stream is,
 * OUTDIR/pi-VERSION.runs.json; with --only, those scenarios alone, and what is told of the others
 * stays. Then run scripts/pi_totals.py of the repository on OUTDIR.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MODEL_ID, ModelServer, modelsJson, PROVIDER, QUIET_SETTINGS } from "./model-server.ts";
import { DEFAULT_PI, NEUTRAL_HOME, packageOf, prepareHome, runPi, versionOf } from "./real-pi.ts";
import type { Run } from "./real-pi.ts";
import { COMPACTING, SCENARIOS } from "./stream-scenarios.ts";
import type { Scenario } from "./stream-scenarios.ts";

/** The first of the times that stand in for real ones, which count up by a millisecond each. */
const NEUTRAL_START_MS = Date.UTC(2026, 0, 1);

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      pi: { type: "string", default: DEFAULT_PI },
      only: { type: "string", multiple: true, default: Object.keys(SCENARIOS) },
    },
    allowPositionals: true,
  });
  const [outDir] = positionals;
  if (outDir === undefined) {
    throw new Error("usage: capture-streams.ts [--pi CLI.js] [--only NAME]... OUTDIR");
  }
  mkdirSync(outDir, { recursive: true });
  const cli = realpathSync(values.pi);
  const version = versionOf(cli);
  const listing = join(outDir, `pi-${version}.runs.json`);
  const runs = existsSync(listing) ? JSON.parse(readFileSync(listing, "utf8")) : {};
  for (const name of values.only) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
    const { stdout, stderr, code } = await capture(cli, scenario);
    writeFileSync(join(outDir, `pi-${version}.${name}.ndjson`), stdout);
    const asked = scenario.asked === undefined ? {} : { asked: scenario.asked };
    runs[name] = { what: scenario.what, ...asked, exit_code: code, stderr };
    console.error(`pi ${version} ${name}: exit code ${code}, ${stdout.length} characters`);
  }
  const names = Object.keys(SCENARIOS).filter((name) => name in runs);
  const inOrder = Object.fromEntries(names.map((name) => [name, runs[name]]));
  writeFileSync(listing, `${JSON.stringify(inOrder, null, 1)}\n`);
}

/** One run in a home of its own, its output made neutral. */
async function capture(cli: string, scenario: Scenario): Promise<Run> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "pi-capture-")));
  const model = await ModelServer.start(scenario.answers);
  try {
    prepare(home, model, scenario);
    const run = await runPi(home, argsOf(cli, scenario));
    const port = new URL(model.url).port;
    const neutral = (text: string) => neutralText(text, home, port, packageOf(cli));
    return { ...run, stdout: neutral(run.stdout), stderr: neutral(run.stderr) };
  } finally {
    await model.close();
    rmSync(home, { recursive: true });
  }
}

function prepare(home: string, model: ModelServer, scenario: Scenario): void {
  const { api, compacts = false } = scenario;
  const agent = prepareHome(home, { ...QUIET_SETTINGS, ...(compacts ? COMPACTING : {}) });
  const url = api === "anthropic-messages" ? model.origin : model.url;
  const models = modelsJson(url, undefined, undefined, { ...scenario.model, ...(api && { api }) });
  writeFileSync(join(agent, "models.json"), models);
}

function argsOf(cli: string, scenario: Scenario): string[] {
  const { asked = `${PROVIDER}/${MODEL_ID}`, extension, first, prompt } = scenario;
  const args = [cli, "--mode", "json", "--model", asked, "--no-session", "-p"];
  if (extension !== undefined) args.push("-e", extension);
  args.push(...(first === undefined ? [] : [first]), prompt);
  return args;
}

/** The text without what differs from run to run. Not parsed: pi's own spelling is the point. */
function neutralText(text: string, home: string, port: string, packageDir: string): string {
  const times = new Map<string, number>();
  const ids = new Map<string, number>();
  const time = (real: string) => NEUTRAL_START_MS + numberOf(real, times);
  const id = (real: string) => numberOf(real, ids).toString(16).padStart(8, "0");
  return text
    .replaceAll(home, NEUTRAL_HOME)
    .replaceAll(packageDir, `${NEUTRAL_HOME}/pi`)
    .replaceAll(`127.0.0.1:${port}`, "127.0.0.1:8080")
    .replace(/("type":"session"[^\n]*?"id":")[^"]*/, "$101a1fd1b-aa7f-7593-9746-70e3fc570efb")
    .replace(/("timestamp":)(\d{13})/g, (_, key, real: string) => `${key}${time(real)}`)
    .replace(/("(?:id|parentId|targetId|firstKeptEntryId)":")([0-9a-f]{8})(?=")/g, (_, key, real: string) =>
      `${key}${id(real)}`)
    .replace(/("timestamp":")[^"]*/g, `$1${new Date(NEUTRAL_START_MS).toISOString()}`)
    .replace(/("durationMs":)\d+/g, "$110")
    .replace(/\b20\d\d-\d\d-\d\d\b(?!T)/g, "2026-01-01");
}

/** The number of a text among those seen so far. */
function numberOf(text: string, seen: Map<string, number>): number {
  const known = seen.get(text) ?? seen.size;
  seen.set(text, known);
  return known;
}

await main();
