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
