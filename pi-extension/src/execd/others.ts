/**
 * Where the execds of other pis of this user listen (docs: people.md). Only those are asked that
 * nobody else can have put there: a socket of our own in a directory of our own that is closed to
 * others.
 */
import { type Stats, lstatSync, readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const OTHERS_BITS = 0o077;
/** execd names its socket after its process, and its instance where two have the same number. */
const SOCKET_NAME = /^(\d+(?:-[0-9a-z]+)?)\.sock$/;

/** An execd of this user, which may have ended. */
export interface Other {
  /** `execd-4242`, as `execd attach` takes it. */
  name: string;
  path: string;
  /** A socket in another directory has this name too: only the instance tells the two apart. */
  isShared: boolean;
}

/** A directory whose sockets anybody may have put there. */
export interface OpenPlace {
  dir: string;
  /** The names of its sockets. */
  names: string[];
}

interface Socket {
  name: string;
  path: string;
  /** Which file the socket is, by whatever path it was found. */
  file: string;
}

/** The name of the execd that listens at this path; undefined where it is none of the usual. */
export function execdName(socket: unknown): string | undefined {
  const stem = typeof socket === "string" ? SOCKET_NAME.exec(basename(socket))?.[1] : undefined;
  return stem === undefined ? undefined : `execd-${stem}`;
}

/** The execds of this user, by name, but for the one that listens at `own`. */
export function otherExecds(
  own: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): { others: Other[]; open: OpenPlace[] } {
  const places = directories(env).flatMap((dir) => statOf(dir, (found) => found.isDirectory()));
  const isOpen = ({ found }: { found: Stats }) => (found.mode & OTHERS_BITS) !== 0;
  const sockets = new Map<string, Socket>();
  for (const { path } of places.filter((place) => !isOpen(place))) {
    for (const socket of socketsIn(path)) sockets.set(socket.file, socket);
  }
  const all = [...sockets.values()];
  const [ownFile] = own === undefined ? [] : socketAt(own).map(({ file }) => file);
  const isOther = ({ path, file }: Socket) => file !== ownFile && path !== own;
  const others = all.filter(isOther).map(({ name, path }) => {
    // The own socket may be in a place that is not looked at.
    const isShared = execdName(own) === name || all.filter((one) => one.name === name).length > 1;
    return { name, path, isShared };
  });
  const byNumber = (a: Other, b: Other) => a.name.localeCompare(b.name, "en", { numeric: true });
  const open = places.filter(isOpen)
    .map(({ path: dir }) => {
      return { dir, names: socketsIn(dir).filter(isOther).map(({ name }) => name) };
    })
    .filter(({ names }) => names.length > 0);
  return { others: others.sort(byNumber), open };
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

function socketsIn(dir: string): Socket[] {
  try {
    return readdirSync(dir).flatMap((name) => socketAt(join(dir, name)));
  } catch {
    return [];
  }
}

/** The socket of this user at this path, or none. */
function socketAt(at: string): Socket[] {
  const name = execdName(at);
  if (name === undefined) return [];
  return statOf(at, (found) => found.isSocket())
    .map(({ path, found: { dev, ino } }) => ({ name, path, file: `${dev}:${ino}` }));
}

/** What stands at this path, where it belongs to this user and fits. */
function statOf(path: string, fits: (found: Stats) => boolean): { path: string; found: Stats }[] {
  try {
    const found = lstatSync(path);
    return found.uid === process.getuid?.() && fits(found) ? [{ path, found }] : [];
  } catch {
    return [];
  }
}
