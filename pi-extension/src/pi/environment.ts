/** The environment of a command: what pi's own bash would give it at that moment. */
import { delimiter, join } from "node:path";
import { getAgentDir } from "@earendil-works/pi-coding-agent";
import type { HostContext } from "./host.ts";

/** Set per command by pi's bash; what pi itself inherited of them is not passed on. */
const PER_COMMAND = [
  "PI_SESSION_ID",
  "PI_SESSION_FILE",
  "PI_PROVIDER",
  "PI_MODEL",
  "PI_REASONING_LEVEL",
];

/** Whether execd sets a variable itself, and refuses it from a client. */
export function isExecdsOwn(name: string): boolean {
  return ["EXECD_INSTANCE", "EXECD_SESSION_ID"].includes(name);
}

/**
 * The `env` of exec_command: what differs from the daemon's own environment (a string sets a
 * variable, null unsets it), pi's variables, and last what the model gave.
 *
 * For a `remote` daemon only pi's variables and the model's are sent: this machine's PATH or HOME
 * mean nothing there.
 */
export function commandEnv(
  now: NodeJS.ProcessEnv,
  daemons: NodeJS.ProcessEnv,
  remote: boolean,
  ctx: HostContext,
  fromModel: unknown,
): Record<string, string | null> {
  const base = remote ? piVariables(ctx) : difference(wanted(now, ctx), daemons);
  const env = { ...base, ...(fromModel as Record<string, string | null> | undefined) };
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isExecdsOwn(name)));
}

function wanted(now: NodeJS.ProcessEnv, ctx: HostContext): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(now)) {
    if (value !== undefined && !PER_COMMAND.includes(name)) env[name] = value;
  }
  return { ...env, ...piVariables(ctx), PATH: withBinDir(env.PATH ?? "") };
}

/** What tells a command that it runs under pi, and in which session. */
function piVariables(ctx: HostContext): Record<string, string> {
  const session = ctx.sessionManager;
  const known: Record<string, string | undefined> = {
    AI_AGENT: "pi",
    PI_CODING_AGENT: "true",
    PI_SESSION_ID: session?.getSessionId?.(),
    PI_SESSION_FILE: session?.getSessionFile?.(),
    PI_PROVIDER: ctx.model?.provider,
    PI_MODEL: ctx.model?.id,
    PI_REASONING_LEVEL: ctx.thinkingLevel,
  };
  const told = Object.entries(known).filter((entry): entry is [string, string] => !!entry[1]);
  return Object.fromEntries(told);
}

/** pi keeps programs such as fd and rg in its own bin directory, first on PATH. */
function withBinDir(path: string): string {
  const bin = join(getAgentDir(), "bin");
  const entries = path.split(delimiter).filter(Boolean);
  return entries.includes(bin) ? path : [bin, path].filter(Boolean).join(delimiter);
}

function difference(
  env: Record<string, string>,
  from: NodeJS.ProcessEnv,
): Record<string, string | null> {
  const changed: Record<string, string | null> = {};
  for (const [name, value] of Object.entries(env)) {
    if (from[name] !== value) changed[name] = value;
  }
  for (const name of Object.keys(from)) {
    if (from[name] !== undefined && !(name in env)) changed[name] = null;
  }
  return changed;
}
