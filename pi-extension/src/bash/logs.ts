/** Where execd writes its logs, and how they go away again. */
import { mkdirSync, statSync, unlinkSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
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

/** Deletes log files with what lies beside them; a file that is gone or elsewhere is no trouble. */
export function deleteLogs(paths: Iterable<string>): void {
  for (const path of paths) {
    const facts = path.replace(LOG_SUFFIX, FACTS_SUFFIX);
    for (const file of [path, path + INDEX_SUFFIX, facts]) {
      try {
        unlinkSync(file);
      } catch {
        // Nobody waits for the file any more; most logs have no index.
      }
    }
  }
}
