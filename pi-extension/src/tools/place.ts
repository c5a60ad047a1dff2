/**
 * Where a command runs, with which environment, and where its log is: the same for every tool that
 * starts one.
 */
import { resolve } from "node:path";
import { commandEnv } from "../pi/environment.ts";
import type { Call } from "../pi/host.ts";
import { resolveNoLog } from "../pi/settings.ts";
import { expandHome } from "../text/home.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";
import { type ParameterSchema, text, variables } from "./schema.ts";

/** Where logs are: on this machine, on the one where commands run, or not on any. */
export type LogPlace = "here" | "far" | "nowhere";

/** Where logs are at the moment. */
export function logPlace({ execd }: ToolContext): LogPlace {
  if (resolveNoLog()) return "nowhere";
  return execd.isRemote ? "far" : "here";
}

/** Says that commands run elsewhere, where what is said of logs does not say so. */
export function farNote(remote: boolean, logs: LogPlace): string {
  return remote && logs !== "far" ? " Commands run on another machine." : "";
}

/** The parameter that says where a command runs. */
export function workdir(remote: boolean): ParameterSchema {
  return text(remote
    ? "Directory to run in, on the machine where commands run. Default: where execd runs."
    : "Directory to run in. Default: the current directory. A relative one counts from it.");
}

/** The parameter that says with which variables. */
export const ENV = variables("Variables to set for this command; null unsets one.");

/** The directory and the environment of a command. */
export interface Place {
  /** To be sent to execd. */
  params: { workdir?: string; env: Record<string, string | null> };
  /** What the progress may show of it. */
  known: { cwd?: string };
}

/**
 * Takes what the model gave for `workdir` and `env` and gives what execd is sent: the directory
 * resolved against pi's own, and the variables that differ from execd's.
 */
export async function commandPlace(
  { execd }: ToolContext,
  call: Call,
  workdir: unknown,
  env: unknown,
): Promise<Place> {
  const remote = execd.isRemote;
  // The daemon's environment is known once it runs.
  await execd.start(call.signal);
  const asked = typeof workdir === "string" ? workdir : undefined;
  const cwd = remote ? asked : localPath(call.ctx.cwd, asked ?? "");
  const started = execd.startedWith;
  return {
    params: {
      ...given({ workdir: cwd }),
      env: commandEnv(process.env, started, remote, call.ctx, env),
    },
    // On another machine execd tells where it runs; a path as typed would be taken for one here.
    known: remote ? {} : given({ cwd }),
  };
}

/** `path` as the model means it: `~` is the home, a relative one counts from pi's directory. */
function localPath(cwd: string | undefined, path: string): string {
  return resolve(cwd ?? process.cwd(), expandHome(path));
}
