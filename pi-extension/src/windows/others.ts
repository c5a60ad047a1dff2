/**
 * The execds of other pis of this user, asked over their control sockets (docs: attach.md). Only
 * those are asked that nobody else can have put there: a socket of our own in a directory of our
 * own that is closed to others.
 */
import { type Stats, lstatSync, readFileSync, readdirSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { basename, dirname, join } from "node:path";
import { isObject } from "../daemon.ts";
import { LineSplitter } from "../lines.ts";

/** How long the others have to say which windows they have: what is late is not waited for. */
export const LIST_WAIT_MS = 200;
/** How long one of them has for a look at a window. */
export const PEEK_WAIT_MS = 2_000;
/** … and for ending one: SIGTERM, 2 s, SIGKILL, 3 s. */
export const KILL_WAIT_MS = 10_000;
/** Of more execds these are asked. */
const OTHERS_MAX = 64;
const OTHERS_BITS = 0o077;
/** As execd names its socket: its process, and its instance where two have the same number. */
const SOCKET_NAME = /^(\d+(?:-[0-9a-z]+)?)\.sock$/;

/** An execd of this user. */
export interface Other {
  /** `execd-4242`, as `execd attach` takes it. */
  name: string;
  path: string;
}

/** The name of the execd that listens at this path; undefined where it is none of the usual. */
export function execdName(socket: unknown): string | undefined {
  const stem = typeof socket === "string" ? SOCKET_NAME.exec(basename(socket))?.[1] : undefined;
  return stem === undefined ? undefined : `execd-${stem}`;
}

/** The execds of this user, by name, but for the one of this name. */
export function otherExecds(
  own: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Other[] {
  const sockets = directories(env).filter(isPrivate).flatMap((dir) =>
    namesIn(dir).map((name) => join(dir, name)));
  const found = new Map<string, Other>();
  for (const path of sockets.filter(isOwnSocket)) {
    const name = execdName(path);
    if (name !== undefined && name !== own) found.set(name, { name, path });
  }
  const byNumber = (a: Other, b: Other) => a.name.localeCompare(b.name, "en", { numeric: true });
  return [...found.values()].sort(byNumber).slice(0, OTHERS_MAX);
}

/** Where execds of this user put their sockets, as `execd ls` looks for them. */
function directories(env: NodeJS.ProcessEnv): string[] {
  const uid = process.getuid?.() ?? 0;
  const runtime = env.XDG_RUNTIME_DIR;
  const given = runtime ? [join(runtime, "execd")] : listenedIn();
  return [...new Set([...given, `/run/user/${uid}/execd`, `/tmp/execd-${uid}`])];
}

/** Without XDG_RUNTIME_DIR (cron, su): where the kernel says that an execd listens. */
function listenedIn(): string[] {
  try {
    const paths = readFileSync("/proc/net/unix", "utf8").split("\n")
      .flatMap((line) => / 00010000 [^/]*(\/.*)$/.exec(line)?.[1] ?? [])
      .filter((path) => execdName(path) !== undefined)
      .filter((path) => /^execd(-|$)/.test(basename(dirname(path))));
    return paths.map((path) => dirname(path));
  } catch {
    return [];
  }
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function isPrivate(dir: string): boolean {
  return isOurs(dir, (found) => found.isDirectory() && (found.mode & OTHERS_BITS) === 0);
}

function isOwnSocket(path: string): boolean {
  return isOurs(path, (found) => found.isSocket());
}

function isOurs(path: string, fits: (found: Stats) => boolean): boolean {
  try {
    const found = lstatSync(path);
    return found.uid === process.getuid?.() && fits(found);
  } catch {
    return false;
  }
}

/** One execd has not answered in time. */
export class Silent extends Error {}
/** Nobody listens there any more: its pi has ended. */
export class Gone extends Error {}

/**
 * Sends one request to another execd. Rejects with Silent when `waitMs` are over, with Gone when
 * nobody is there, with what an error reply says, and when `signal` aborts.
 */
export function ask(
  { name, path }: Other,
  method: string,
  params: object,
  waitMs: number,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let socket: Socket | undefined;
    const abort = () => end(() => reject(new Error("Command aborted")));
    const late = setTimeout(() => {
      end(() => reject(new Silent(`${name} did not answer within ${waitMs} ms`)));
    }, waitMs);
    const end = (settle: () => void) => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
      socket?.destroy();
      settle();
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
    const lines = new LineSplitter((line) => {
      const reply = replyIn(line);
      if (!reply) return;
      const { result, error } = reply;
      if (isObject(error)) end(() => reject(new Error(String(error.message))));
      else end(() => resolve(isObject(result) ? result : {}));
    });
    const gone = () => end(() => reject(new Gone(`${name} is not there any more`)));
    socket = connect(path);
    socket.on("data", (bytes) => {
      if (!lines.push(bytes)) gone();
    });
    socket.once("error", gone);
    socket.once("close", gone);
    socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
  });
}

/** The one answer; between come notifications, which everybody is told. */
function replyIn(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) && value.id === 1 ? value : undefined;
  } catch {
    return undefined;
  }
}
