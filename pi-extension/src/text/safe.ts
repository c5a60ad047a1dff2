/**
 * Text of strangers made fit for a terminal: commands, output, names and paths are whatever a
 * child or a model wrote, and nothing of it may steer the terminal it is drawn on.
 */
import { visibleWidth } from "@earendil-works/pi-tui";

/** How many blanks a tab is drawn as; pi draws its own rows the same way. */
export const TAB_CELLS = 3;

/** `oneLine` reads so many characters for each cell and some more: it may drop most of them. */
const SCAN_PER_CELL = 4;
const SCAN_ALWAYS = 4096;

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

const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const PLAIN_ASCII = /^[\x20-\x7e]*$/;

/**
 * Takes text of one line without control characters and gives its beginning that fits into
 * `maxCells`, with `…` as the last cell where something was cut.
 */
export function cutToCells(text: string, maxCells: number): string {
  if (maxCells <= 0) return "";
  if (PLAIN_ASCII.test(text)) {
    return text.length <= maxCells ? text : `${text.slice(0, maxCells - 1)}…`;
  }
  let cells = 0;
  let roomy = 0;
  for (const { segment, index } of GRAPHEMES.segment(text)) {
    cells += visibleWidth(segment);
    if (cells > maxCells) return `${text.slice(0, roomy)}…`;
    if (cells < maxCells) roomy = index + segment.length;
  }
  return text;
}

/**
 * Takes any text and gives it as one line of at most `maxCells` cells: stripped, blanks and line
 * ends collapsed, cut with `…`. It reads no more of a long text than it can show.
 */
export function oneLine(text: string, maxCells: number): string {
  const start = text.search(/\S/);
  if (start < 0 || maxCells <= 0) return "";
  const end = start + SCAN_ALWAYS + SCAN_PER_CELL * maxCells;
  const line = stripControls(text.slice(start, end)).replace(/\s+/g, " ").trim();
  return cutToCells(end < text.length ? `${line}…` : line, maxCells);
}

/** Takes a path and a home directory and gives the path with `~` for home and what is below it. */
export function tildify(path: string, home: string): string {
  const root = home.replace(/\/+$/, "");
  if (root === "") return path;
  if (path === root) return "~";
  return path.startsWith(`${root}/`) ? `~${path.slice(root.length)}` : path;
}

/** Takes milliseconds and gives `1.3s`, from a minute on `1m 30s` and `2h 3m 4s`. */
export function formatSeconds(ms: number): string {
  const tenths = Math.round(atLeastZero(ms) / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`;
  const seconds = Math.floor(tenths / 10);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${seconds % 60}s`;
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m ${seconds % 60}s`;
}

/** Takes milliseconds and gives a short age: `41s`, `2m`, `1h 5m`, `3d 4h`. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(atLeastZero(ms) / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return twoUnits(hours, "h", minutes % 60, "m");
  return twoUnits(Math.floor(hours / 24), "d", hours % 24, "h");
}

/**
 * Takes what list_processes says of those that it lists no more (how many, and the bounds) and gives
 * it in words; undefined where it lists all.
 */
export function forgottenText(
  { forgotten = 0, keptMax, keptMs }: Partial<Record<string, number | undefined>>,
): string | undefined {
  if (forgotten <= 0) return undefined;
  const bounds = keptMax === undefined || keptMs === undefined ? ""
    : ` (what has ended is listed for ${formatAge(keptMs)}, the last ${keptMax})`;
  return `forgotten: ${forgotten} that ended earlier${bounds}`;
}

/** Takes a number of bytes and gives `512B`, `50.0KB` or `1.2MB`, as pi writes sizes. */
export function formatSize(bytes: number): string {
  const size = atLeastZero(bytes);
  if (size < 1024) return `${Math.floor(size)}B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)}KB`;
  return `${(size / (1024 * 1024)).toFixed(1)}MB`;
}

function twoUnits(high: number, highUnit: string, low: number, lowUnit: string): string {
  return low === 0 ? `${high}${highUnit}` : `${high}${highUnit} ${low}${lowUnit}`;
}

function atLeastZero(value: number): number {
  return Number.isFinite(value) && value > 0 ? value : 0;
}
