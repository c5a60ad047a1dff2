/**
 * Where a command runs, with which environment, and where its log is: the same for every tool that
 * starts one.
 */
import { resolve } from "node:path";
import { commandEnv } from "../pi/environment.ts";
import type { Call } from "../pi/host.ts";
import { type CommandShell, commandShell } from "../pi/shell.ts";
import { resolveNoLog } from "../pi/settings.ts";
import { expandHome } from "../text/home.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";

/** Where logs are: on this machine, on the one where commands run, or not on any. */
export type LogPlace = "here" | "far" | "nowhere";

/** Where logs are at the moment. */
export function logPlace({ execd }: ToolContext): LogPlace {
  if (resolveNoLog()) return "nowhere";
  return execd.isRemote ? "far" : "here";
}

/** Where commands run, and where their logs are. */
export interface Where {
  /** On another machine. */
  remote: boolean;
  logs: LogPlace;
}

/** Where commands run at the moment. */
export function whereIs(context: ToolContext): Where {
  return { remote: context.execd.isRemote, logs: logPlace(context) };
}

/** What is said of logs: `here` where they are files that the model can read. */
export function logsText(
  { remote, logs }: Where,
  here: string,
  { far, nowhere }: { far: string; nowhere: string },
): string {
  if (logs === "here") return here;
  if (logs === "far") return far;
  return remote ? `Commands run on another machine. ${nowhere}` : nowhere;
}

/** What the texts of tools say of where commands run, by variable. */
export function placeValues({ remote }: Where): { workdir: string } {
  return { workdir: remote ? "On the machine where commands run. Default: where execd runs." : "" };
}

/** The directory and the environment of a command. */
export interface Place {
  /** To be sent to execd. */
  params: CommandShell & { workdir?: string; env: Record<string, string | null> };
  /** What the progress may show of it. */
  known: { cwd?: string };
}

/**
 * Takes what the model gave for `workdir`, `env` and `shell` and gives what execd is sent: the
 * directory resolved against pi's own, the variables that differ from execd's, and the shell of
 * pi's settings where the call names none.
 */
export async function commandPlace(
  { execd, host }: ToolContext,
  call: Call,
  { workdir, env, shell }: Record<string, unknown>,
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
      ...(shell === undefined && commandShell(host, call.ctx, remote)),
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
