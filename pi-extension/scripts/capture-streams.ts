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
import { spawn, spawnSync } from "node:child_process";
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
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  MODEL_ID,
  ModelServer,
  modelsJson,
  PROVIDER,
  QUIET_SETTINGS,
  STUBBED_PROGRAMS,
} from "./model-server.ts";
import { COMPACTING, SCENARIOS } from "./stream-scenarios.ts";
import type { Scenario } from "./stream-scenarios.ts";

const DEFAULT_PI = resolve(
  import.meta.dirname,
  "../node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
);
/** A run takes about two seconds; the slowest machine is not this slow. */
const RUN_LIMIT_MS = 120_000;
/** Where the runs seem to have taken place. */
const NEUTRAL_HOME = "/home/user";
/** The first of the times that stand in for real ones, which count up by a millisecond each. */
const NEUTRAL_START_MS = Date.UTC(2026, 0, 1);

/** What a run left. */
interface Run {
  stdout: string;
  stderr: string;
  code: number | null;
}

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

function versionOf(cli: string): string {
  const home = mkdtempSync(join(tmpdir(), "pi-version-"));
  try {
    const env = environment(home);
    // pi 0.73 tells its version on stderr.
    const told = spawnSync(process.execPath, [cli, "--version"], { env, encoding: "utf8" });
    const version = (told.stdout || told.stderr).trim();
    if (!/^\d+\.\d+\.\d+\S*$/.test(version)) throw new Error(`${cli} is no pi: ${version}`);
    return version;
  } finally {
    rmSync(home, { recursive: true });
  }
}

/** One run in a home of its own, its output made neutral. */
async function capture(cli: string, scenario: Scenario): Promise<Run> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "pi-capture-")));
  const model = await ModelServer.start(scenario.answers);
  try {
    prepare(home, model, scenario);
    const run = await runPi(cli, home, scenario);
    const port = new URL(model.url).port;
    const neutral = (text: string) => neutralText(text, home, port, packageOf(cli));
    return { ...run, stdout: neutral(run.stdout), stderr: neutral(run.stderr) };
  } finally {
    await model.close();
    rmSync(home, { recursive: true });
  }
}

function prepare(home: string, model: ModelServer, scenario: Scenario): void {
  const agent = join(home, "agent");
  for (const dir of ["project", "tmp", "agent/bin"]) {
    mkdirSync(join(home, dir), { recursive: true });
  }
  const { api, compacts = false } = scenario;
  const url = api === "anthropic-messages" ? model.origin : model.url;
  const models = modelsJson(url, undefined, undefined, { ...scenario.model, ...(api && { api }) });
  writeFileSync(join(agent, "models.json"), models);
  const settings = { ...QUIET_SETTINGS, ...(compacts ? COMPACTING : {}) };
  writeFileSync(join(agent, "settings.json"), JSON.stringify(settings));
  for (const name of STUBBED_PROGRAMS) {
    writeFileSync(join(agent, "bin", name), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  }
}

function environment(home: string): Record<string, string> {
  return {
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: home,
    TMPDIR: join(home, "tmp"),
    LANG: "C.UTF-8",
    PI_CODING_AGENT_DIR: join(home, "agent"),
    PI_OFFLINE: "1",
    PI_TELEMETRY: "0",
    PI_SKIP_VERSION_CHECK: "1",
  };
}

function runPi(cli: string, home: string, scenario: Scenario): Promise<Run> {
  const { asked = `${PROVIDER}/${MODEL_ID}`, extension, first, prompt } = scenario;
  const args = [cli, "--mode", "json", "--model", asked, "--no-session", "-p"];
  if (extension !== undefined) args.push("-e", extension);
  args.push(...(first === undefined ? [] : [first]), prompt);
  const child = spawn(process.execPath, args, {
    cwd: join(home, "project"),
    env: environment(home),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: RUN_LIMIT_MS,
    killSignal: "SIGKILL",
  });
  const run: Run = { stdout: "", stderr: "", code: null };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (run.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (run.stderr += text));
  return new Promise((done, failed) => {
    child.once("error", failed);
    child.once("close", (code) => done({ ...run, code }));
  });
}

/** The directory of the package that a file is in. */
function packageOf(file: string): string {
  const dir = dirname(file);
  return dir === "/" || existsSync(join(dir, "package.json")) ? dir : packageOf(dir);
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
