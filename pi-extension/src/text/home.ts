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
