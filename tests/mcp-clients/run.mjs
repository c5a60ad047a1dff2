/**
 * Drives `execd mcp` with real clients, a whole scenario each: `node run.mjs PATH_OF_EXECD`, with
 * `agents` behind it the agents of agents/package.json. A client that is not installed is skipped
 * by its name.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HOSTS } from "./hosts.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const EXECD = resolve(process.argv[2] ?? "../../target/release/execd");
/** The most that one client may take. */
const PATIENCE_MS = 240_000;

/** Each client: its name, what must be there, and the words that run it. */
const CLIENTS = [
  ["@modelcontextprotocol/sdk 1.x", "node_modules/@modelcontextprotocol/sdk", ["node", "sdk.mjs"]],
  ["@modelcontextprotocol/sdk 1.x, structured content", "node_modules/@modelcontextprotocol/sdk",
    ["node", "sdk.mjs", "structured"]],
  ["@modelcontextprotocol/client 2.x, with a handshake",
    "node_modules/@modelcontextprotocol/client", ["node", "client.mjs", "legacy"]],
  ["@modelcontextprotocol/client 2.x, 2026-07-28",
    "node_modules/@modelcontextprotocol/client", ["node", "client.mjs", "2026-07-28"]],
  ["@modelcontextprotocol/client 2.x, which finds out",
    "node_modules/@modelcontextprotocol/client", ["node", "client.mjs", "auto"]],
  ["@modelcontextprotocol/inspector --cli",
    "node_modules/@modelcontextprotocol/inspector", ["node", "inspector.mjs"]],
  ["@openai/codex, its model a script", "node_modules/@openai/codex",
    ["node", "agent.mjs", "codex"]],
  ["PyPI mcp 1.x", "venv-1/bin/python", ["venv-1/bin/python", "mcp1.py"]],
  ["PyPI mcp 2.x, with a handshake", "venv-2/bin/python",
    ["venv-2/bin/python", "mcp2.py", "legacy"]],
  ["PyPI mcp 2.x, 2026-07-28", "venv-2/bin/python",
    ["venv-2/bin/python", "mcp2.py", "2026-07-28"]],
];

/** The same of the agents that are installed by themselves. */
const AGENTS = [
  ["Claude Code, its model a script", "claude"],
  ["Claude Code, which describes tools once they are asked for", "claude-late"],
  ["Gemini CLI, its model a script", "gemini"],
  ["OpenCode, its model a script", "opencode"],
].map(([name, host]) => [name, HOSTS[host].program, ["node", "agent.mjs", host]]);

/** Those that still run when a client has been gone for so long. */
const TIDY_MS = 20_000;

/** The processes with this mark in their environment that stay when the client has ended. */
async function leftOver(mark) {
  const deadline = Date.now() + TIDY_MS;
  while (marked(mark).length > 0 && Date.now() < deadline) await delay(50);
  return marked(mark);
}

function marked(mark) {
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark);
    } catch {
      return false;
    }
  });
}

let failures = 0;
const [clients, installs] =
  process.argv[3] === "agents" ? [AGENTS, "make mcp-agents"] : [CLIENTS, ".ci/run"];
for (const [name, needs, [program, ...words]] of clients) {
  if (!existsSync(join(HERE, needs))) {
    console.log(`skipped: ${name} (no tests/mcp-clients/${needs}; ${installs} installs it)`);
    continue;
  }
  const dir = mkdtempSync(join(tmpdir(), "execd-mcp-"));
  for (const one of ["tmp", "run", "work"]) mkdirSync(join(dir, one));
  const env = {
    ...process.env, EXECD, TMPDIR: join(dir, "tmp"), XDG_RUNTIME_DIR: join(dir, "run"),
    WORK: join(dir, "work"), MARK: dir,
  };
  const path = program.includes("/") ? join(HERE, program) : process.execPath;
  const { status, stdout, stderr, error } = spawnSync(path, words, {
    cwd: HERE, env, encoding: "utf8", timeout: PATIENCE_MS, killSignal: "SIGKILL",
  });
  const left = await leftOver(`MARK=${dir}`);
  const ok = status === 0 && left.length === 0;
  console.log(`${ok ? "ok" : "FAILED"}: ${name}${left.length > 0 ? `; left running: ${left}` : ""}`);
  if (!ok) {
    failures += 1;
    console.log(`${error ?? ""}${stdout}${stderr}`);
  }
  rmSync(dir, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);
