/** Where execd writes its logs, and how they go away again. */
import { mkdirSync, readdirSync, readFileSync, statSync, unlinkSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { execdsLogDir } from "./keys.ts";

/** The permissions of others: they may not read what commands print. */
const OTHERS_BITS = 0o077;

/** The flags for logs in `outputDir`, on this machine or on another one; none for execd's own. */
export function logDirFlags(outputDir: string, remote: boolean): string[] {
  if (outputDir === execdsLogDir()) return [];
  return ["--log-dir", remote ? outputDir : logDir(outputDir)];
}

/**
 * The flags for logs that stay: execd then deletes none by age, and other execds leave these alone.
 */
export function preserveFlags(preserve: boolean): string[] {
  return preserve ? ["--log-keep-days", "0"] : [];
}

/**
 * execd takes no directory that others can look into, as /tmp/pi-tmux-bash of tmux-bash is one:
 * then a directory of its own lies inside.
 */
function logDir(outputDir: string): string {
  const dir = isAbsolute(outputDir) ? outputDir : resolve(outputDir);
  try {
    const { mode, uid } = statSync(dir);
    const isPrivate = (mode & OTHERS_BITS) === 0 && uid === process.getuid?.();
    return isPrivate ? dir : join(dir, `pi-execd-${process.getuid?.() ?? 0}`);
  } catch {
    makeParent(dir);
    return dir;
  }
}

/** execd makes the directory itself, but not those above it. */
function makeParent(dir: string): void {
  try {
    mkdirSync(dirname(dir), { recursive: true });
  } catch {
    // execd says why it cannot write there.
  }
}

/** The end of the name of the file beside a log that tells the log's streams apart. */
const INDEX_SUFFIX = ".index";
/** The end of the name of the file that holds the facts of a log's session, and of the log's own. */
const FACTS_SUFFIX = ".meta", LOG_SUFFIX = /\.log$/;

/** What stands in the facts of a log that is a row of files: LOG, LOG.2, LOG.3 and so on. */
const OF_SEGMENTS = '"segment_bytes":';

/** The files in which a log goes on. */
function segments(path: string, facts: string): string[] {
  try {
    if (!readFileSync(facts, "utf8").includes(OF_SEGMENTS)) return [];
    const head = `${basename(path)}.`;
    const isOne = (name: string) => name.startsWith(head) && /^\d+$/.test(name.slice(head.length));
    return readdirSync(dirname(path)).filter(isOne).map((name) => join(dirname(path), name));
  } catch {
    return [];
  }
}

/** Deletes log files with what lies beside them; a file that is gone or elsewhere is no trouble. */
export function deleteLogs(paths: Iterable<string>): void {
  for (const path of paths) {
    const facts = path.replace(LOG_SUFFIX, FACTS_SUFFIX);
    for (const file of [...segments(path, facts), path, path + INDEX_SUFFIX, facts]) {
      try {
        unlinkSync(file);
      } catch {
        // Nobody waits for the file any more; most logs have no index.
      }
    }
  }
}
