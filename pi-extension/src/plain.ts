/** Raw output as text that one can read, for people and models. */
import { stripControls } from "./render/safe.ts";

/**
 * Takes raw output and gives it without escape sequences and controls. A line that was written over
 * (a progress bar) is what a terminal would show of it: what stands behind its last return.
 */
export function plainText(raw: string): string {
  const lines = raw.split("\n").map((line) => {
    const shown = line.replace(/\r+$/, "");
    return shown.slice(shown.lastIndexOf("\r") + 1);
  });
  return stripControls(lines.join("\n"));
}
