/** Raw output as text that one can read, for people and models. */
import { stripControls } from "./safe.ts";

/** The longest sequence that a page may cut, and that is left to the next one. */
const SEQUENCE_CHARS = 4_096;

// Whole text that may be the beginning of a sequence: CSI up to its final byte, a string up to ST.
// U+FFFD stands for bytes whose number is not known, and the next page's offset would be wrong.
const CSI_BEGUN = /^\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*|[\x20-\x2f]*)$/;
const STRING_BEGUN = /^\x1b[\]PX^_][^\x07\x18\x1a\x1b\n\ufffd]*\x1b?$/;

/** Takes raw output and gives how many characters at its end are a sequence that goes on. */
export function cutSequence(raw: string): number {
  const last = raw.lastIndexOf("\x1b");
  if (last < 0 || raw.length - last > SEQUENCE_CHARS) return 0;
  // The ESC may be the first half of what ends a string.
  const before = last === raw.length - 1 && last > 0 ? raw.lastIndexOf("\x1b", last - 1) : -1;
  const isWithin = before >= 0 && raw.length - before <= SEQUENCE_CHARS;
  if (isWithin && STRING_BEGUN.test(raw.slice(before))) return raw.length - before;
  const tail = raw.slice(last);
  return CSI_BEGUN.test(tail) || STRING_BEGUN.test(tail) ? tail.length : 0;
}

/**
 * Takes raw output and gives it without escape sequences and controls. A line that was written over
 * (a progress bar) is what a terminal would show of it: what stands behind its last return; so is a
 * letter that was struck over (a manual page).
 */
export function plainText(raw: string): string {
  const lines = raw.split("\n").map((line) => {
    const shown = line.replace(/\r+$/, "");
    return shown.slice(shown.lastIndexOf("\r") + 1).replace(/[^\x08]\x08/gu, "");
  });
  return stripControls(lines.join("\n"));
}
