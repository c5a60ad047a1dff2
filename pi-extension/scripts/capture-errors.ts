/**
 * Keeps what the real pi says when it fails: the texts that error_kind is decided by.
 *
 *   node scripts/capture-errors.ts [--pi PATH/cli.js] [--only NAME]... FILE.json
 *
 * Runs each case of error-cases.ts, offline and isolated, against a server on loopback, and puts
 * what pi of this version wrote into FILE.json, in the place of what it has of this version. What
 * other versions wrote stays.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CASES } from "./error-cases.ts";
import type { Changes, ErrorCase, Place, Reply } from "./error-cases.ts";
import { MODEL_ID, PROVIDER, QUIET_SETTINGS } from "./model-server.ts";
import { DEFAULT_PI, NEUTRAL_HOME, packageOf, prepareHome, runPi, versionOf } from "./real-pi.ts";
import type { Run } from "./real-pi.ts";

/** So much of a stderr is kept, as execd does. */
const STDERR_CHARS = 4096;
/** What is kept of a run. What pi did not tell is absent. */
interface Entry {
  version: string;
  case: string;
  what: string;
  kind: string;
  exit_code?: number;
  signal?: string;
  stop_reason?: string;
  raw_stop_reason?: string;
  error_message?: string;
  final_error?: string;
  stderr: string;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      pi: { type: "string", default: DEFAULT_PI },
      only: { type: "string", multiple: true, default: Object.keys(CASES) },
    },
    allowPositionals: true,
  });
  const [file] = positionals;
  if (file === undefined) {
    throw new Error("usage: capture-errors.ts [--pi CLI.js] [--only NAME]... FILE.json");
  }
  const cli = realpathSync(values.pi);
  const version = versionOf(cli);
  const told: Entry[] = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  const ours = (entry: Entry) => entry.version === version && values.only.includes(entry.case);
  const entries = told.filter((entry) => !ours(entry));
  for (const name of values.only) {
    const one = CASES[name];
    if (one === undefined) throw new Error(`there is no case ${name}`);
    const entry = { version, case: name, ...(await capture(cli, one, version)) };
    entries.push(entry);
    const words = entry.final_error ?? entry.error_message ?? entry.stderr;
    console.error(`${version} ${name}: ${entry.exit_code ?? entry.signal}: ${words.slice(0, 200)}`);
  }
  const order = Object.keys(CASES);
  const place = (entry: Entry) => order.indexOf(entry.case);
  entries.sort((a, b) => place(a) - place(b) || (a.version < b.version ? -1 : 1));
  const lines = entries.map((entry) => JSON.stringify(entry));
  writeFileSync(file, `[\n${lines.join(",\n")}\n]\n`);
}

/** One run in a home of its own, with what it wrote made neutral. */
async function capture(cli: string, one: ErrorCase, version: string): Promise<Omit<Entry, "version" | "case">> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "pi-errors-")));
  const running: { pi?: ChildProcess } = {};
  const server = createServer((request, response) => {
    request.resume().once("end", () => answer(one.reply ?? {}, response, running.pi));
  });
  const port = await listen(server);
  try {
    const nobody = createServer();
    const closedPort = await listen(nobody);
    await close(nobody);
    const place = { home, agentDir: join(home, "agent"), cli, port, closedPort };
    prepare(place, one);
    const changes = one.change?.(place) ?? {};
    const started = (pi: ChildProcess) => (running.pi = pi);
    const run = await runPi(home, argsOf(place, one, changes), { ...changes, started });
    const neutral = (text: string) => neutralText(text, place);
    return { what: one.what, kind: kindOf(one, version), ...whatItSaid(run, neutral) };
  } finally {
    await close(server);
    chmodSync(join(home, "agent"), 0o700);
    rmSync(home, { recursive: true });
  }
}

function kindOf({ kind }: ErrorCase, version: string): string {
  if (typeof kind === "string") return kind;
  const known = Object.entries(kind).find(([begin]) => version.startsWith(begin));
  if (known === undefined) throw new Error(`no kind for ${version}`);
  return known[1];
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}

function answer(reply: Reply, response: ServerResponse, pi: ChildProcess | undefined): void {
  if (reply.signal !== undefined) {
    pi?.kill(reply.signal);
  } else if (reply.cut === "first") {
    response.socket?.destroy();
  } else {
    const type = { "content-type": "application/json" };
    const { body = "" } = reply;
    response.writeHead(reply.status ?? 200, { ...type, ...reply.headers });
    response.write(typeof body === "string" ? body : JSON.stringify(body), () => {
      if (reply.cut === "last") response.socket?.end();
      else response.end();
    });
  }
}

function prepare({ home, agentDir, port, closedPort }: Place, one: ErrorCase): void {
  prepareHome(home, QUIET_SETTINGS);
  if (one.noModels === true) return;
  const api = one.api ?? "openai-completions";
  const base = `http://127.0.0.1:${port}${api === "openai-completions" ? "/v1" : ""}`;
  const model = {
    id: MODEL_ID,
    input: ["text"],
    contextWindow: 1_000_000,
    maxTokens: 4096,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  const url = one.url?.replace("PORT", String(port)).replace("CLOSED", String(closedPort));
  const baseUrl = url ?? base;
  const provider = { baseUrl, api, apiKey: "not-a-secret", models: [model] };
  const models = { providers: { [PROVIDER]: provider } };
  writeFileSync(join(agentDir, "models.json"), JSON.stringify(models));
}

function argsOf({ cli }: Place, one: ErrorCase, changes: Changes): string[] {
  const { args = [], nodeArgs = [] } = changes;
  const session = args.includes("--session") ? [] : ["--no-session"];
  const words = ["--mode", "json", "--model", one.model ?? `${PROVIDER}/${MODEL_ID}`, ...session];
  return [...nodeArgs, changes.cli ?? cli, ...words, "-p", ...args, "Say hello"];
}

/** What pi told of its failure. */
function whatItSaid(run: Run, neutral: (text: string) => string): Omit<Entry, "version" | "case" | "what" | "kind"> {
  const events = run.stdout.split("\n").filter((line) => line.startsWith("{"));
  let message: Record<string, unknown> = {};
  let finalError: unknown;
  for (const line of events) {
    const event = JSON.parse(line);
    if (event.type === "message_end" && event.message?.role === "assistant") message = event.message;
    if (event.type === "auto_retry_end") finalError = event.finalError;
  }
  const told = {
    exit_code: run.code,
    signal: run.signal,
    stop_reason: message["stopReason"],
    raw_stop_reason: message["rawStopReason"],
    error_message: message["errorMessage"],
    final_error: finalError,
    stderr: neutral(run.stderr).slice(-STDERR_CHARS),
  };
  const neutralValue = (value: unknown) => (typeof value === "string" ? neutral(value) : value);
  const known = Object.entries(told).filter(([, value]) => value !== undefined && value !== null);
  const entries = known.map(([name, value]) => [name, neutralValue(value)]);
  return Object.fromEntries(entries);
}

/** The text without what differs from run to run. */
function neutralText(text: string, { home, cli, port, closedPort }: Place): string {
  return text
    .replaceAll(home, NEUTRAL_HOME)
    .replaceAll(packageOf(cli), `${NEUTRAL_HOME}/pi`)
    .replaceAll(process.execPath, "/usr/bin/node")
    .replaceAll(`127.0.0.1:${port}`, "127.0.0.1:8080")
    .replaceAll(`127.0.0.1:${closedPort}`, "127.0.0.1:8079")
    .replace(/\[\d+:0x[0-9a-f]+\]/g, "[4242:0x2f0e2000]")
    .replace(/\(node:\d+\)/g, "(node:4242)");
}

await main();
