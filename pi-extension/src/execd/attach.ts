/** The command by which a person attaches to a session. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** The execd whose windows are attached to. */
export interface Attachable {
  /** Its process; undefined while none runs, and where it runs on another machine. */
  pid?: number | undefined;
  /** The program, where it is known. */
  program?: string | undefined;
}

/** The window that stands for any window in a text. */
const ANY_WINDOW = "@123";

/**
 * `execd attach @123`: with the program's path where `execd` on PATH is another one or none, and
 * with `--pid` where several execds of this user run, so that the command works as it stands.
 */
export function attachCommand(
  { pid, program }: Attachable,
  env: NodeJS.ProcessEnv = process.env,
  tmp = "/tmp",
): string {
  const execd = program === undefined || isOnPath(program, env) ? "execd" : quoted(program);
  const several = pid !== undefined && otherExecds(pid, env, tmp);
  return `${execd} attach ${ANY_WINDOW}${several ? ` --pid ${pid}` : ""}`;
}

/** The same for one session, by its id. */
export function attachCommandTo(running: Attachable, id: string): string {
  return attachCommand(running).replace(ANY_WINDOW, id);
}

/** Whether `execd` in a shell is this program. */
function isOnPath(program: string, env: NodeJS.ProcessEnv): boolean {
  const dirs = (env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const first = dirs.map((dir) => join(dir, "execd")).find((path) => existsSync(path));
  return first !== undefined && realPath(first) === realPath(program);
}

/** Whether another execd of this user listens: each has a socket named after its process. */
function otherExecds(pid: number, env: NodeJS.ProcessEnv, tmp: string): boolean {
  return socketPids(env, tmp).some((other) => other !== pid && existsSync(`/proc/${other}`));
}

/**
 * The pids of the sockets of this user's execds. One that was started without XDG_RUNTIME_DIR
 * listens in /tmp.
 */
function socketPids(env: NodeJS.ProcessEnv, tmp: string): number[] {
  const runtime = env.XDG_RUNTIME_DIR ? [join(env.XDG_RUNTIME_DIR, "execd")] : [];
  const dirs = [...runtime, join(tmp, `execd-${process.getuid?.() ?? 0}`)];
  const names = dirs.flatMap(namesIn);
  return names.flatMap((name) => /^(\d+)\.sock$/.exec(name)?.[1] ?? []).map(Number);
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // Without the directory nobody listens there.
    return [];
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** A path as a word for the shell. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
