/**
 * Text of strangers made fit for a terminal: commands, output, names and paths are whatever a
 * child or a model wrote, and nothing of it may steer the terminal it is drawn on.
 */

/** How many blanks a tab is drawn as; pi draws its own rows the same way. */
const TAB_CELLS = 3;

const CONTROLS = String.raw`\x00-\x08\x0b-\x1f\x7f-\x9f`;
const DIRECTIONS = String.raw`\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069`;

// Anything that must not reach a terminal. Most text has none of it, and one test is cheap.
const UNSAFE = new RegExp(String.raw`[${CONTROLS}${DIRECTIONS}\ud800-\udfff]`);

// All sequences, each with its end optional: a broken one goes as far as it can be recognised and
// the text after it stays. Neighbouring classes are disjoint, so that matching never backtracks.
const SEQUENCES = new RegExp(
  [
    // OSC, DCS, SOS, PM and APC strings end at BEL, ST, CAN or SUB. A line's end gives them up,
    // else one broken sequence would swallow the rest of the output.
    String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n]*` +
      String.raw`(?:\x07|\x18|\x1a|\x1b\\|\x9c)?`,
    // CSI with parameters, intermediates and the final byte.
    String.raw`(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]?`,
    // Every other escape: charsets, keypad modes, RIS, and an ESC on its own.
    String.raw`\x1b[\x20-\x2f]*[\x30-\x7e]?`,
    // What is left of C0 and C1, direction marks and overrides, line separators.
    `[${CONTROLS}${DIRECTIONS}]`,
    // Halves of a surrogate pair.
    String.raw`[\ud800-\udbff](?![\udc00-\udfff])`,
    String.raw`(?<![\ud800-\udbff])[\udc00-\udfff]`,
  ].join("|"),
  "g",
);

/**
 * Takes any text and gives it without escape sequences, control characters (but \n and \t),
 * direction overrides and lone surrogates, in time linear in its length.
 */
export function stripControls(text: string): string {
  return UNSAFE.test(text) ? text.replace(SEQUENCES, "") : text;
}

/** Takes any text and gives what a row draws of it: stripped, and its tabs as blanks. */
export function drawable(text: string): string {
  const clean = stripControls(text);
  return clean.includes("\t") ? clean.replaceAll("\t", " ".repeat(TAB_CELLS)) : clean;
}
