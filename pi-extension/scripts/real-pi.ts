/**
 * The real pi in json mode, offline and isolated in a home of its own: what the scripts share that
 * capture what it writes.
 */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { STUBBED_PROGRAMS } from "./model-server.ts";

/** The pi that is installed beside this. */
export const DEFAULT_PI = resolve(
  import.meta.dirname,
  "../node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
);
/** A run takes a few seconds; the slowest machine is not this slow. */
const RUN_LIMIT_MS = 120_000;
/** Where the runs seem to have taken place. */
export const NEUTRAL_HOME = "/home/user";

/** What a run left. */
export interface Run {
  stdout: string;
  stderr: string;
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** What is different in a run. */
export interface RunOptions {
  /** Variables besides those of `environment`. */
  env?: Record<string, string>;
  /** The user that pi runs as. */
  uid?: number;
  /** Is handed the process once it is there. */
  started?: (pi: ChildProcess) => void;
}

/** What `pi --version` says. */
export function versionOf(cli: string): string {
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

/** Makes a home's directories and pi's settings there; gives pi's agent directory. */
export function prepareHome(home: string, settings: object): string {
  const agentDir = join(home, "agent");
  for (const dir of ["project", "tmp", "agent/bin"]) {
    mkdirSync(join(home, dir), { recursive: true });
  }
  writeFileSync(join(agentDir, "settings.json"), JSON.stringify(settings));
  for (const name of STUBBED_PROGRAMS) {
    writeFileSync(join(agentDir, "bin", name), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  }
  return agentDir;
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

/** Runs node with these arguments, the first of them pi's program, to its end. */
export async function runPi(home: string, args: string[], options: RunOptions = {}): Promise<Run> {
  const { env = {}, uid, started } = options;
  const child = spawn(process.execPath, args, {
    cwd: join(home, "project"),
    env: { ...environment(home), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: RUN_LIMIT_MS,
    killSignal: "SIGKILL",
    ...(uid === undefined ? {} : { uid }),
  });
  started?.(child);
  const run: Run = { stdout: "", stderr: "", code: null, signal: null };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (run.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (run.stderr += text));
  const [code, signal] = await once(child, "close");
  return { ...run, code, signal };
}

/** The directory of the package that a file is in. */
export function packageOf(file: string): string {
  const dir = dirname(file);
  return dir === "/" || existsSync(join(dir, "package.json")) ? dir : packageOf(dir);
}
