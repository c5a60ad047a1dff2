/** The home directory, in and out of paths. */
import { homedir } from "node:os";

/** The user's home directory; empty where there is none. */
export function home(): string {
  try {
    return homedir();
  } catch {
    // A user id without an entry, and no HOME: common in containers, no reason to fail.
    return "";
  }
}

/** Takes a path as people write it and gives it with the home directory for a leading `~`. */
export function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? home() + path.slice(1) : path;
}

/** Takes a path and gives it with `~` for the home directory, also where the path is below it. */
export function tildify(path: string, from = home()): string {
  const root = from.replace(/\/+$/, "");
  if (root === "") return path;
  if (path === root) return "~";
  return path.startsWith(`${root}/`) ? `~${path.slice(root.length)}` : path;
}
