/**
 * Word wrap as pi's own rows have it, but in time linear in the text and without a string per
 * line: a row is drawn several times a second, and pi's wrap takes 0.1 s for 50 KiB in one line.
 */
import { visibleWidth } from "@earendil-works/pi-tui";
import { cutToCells } from "./safe.ts";

/** The last visual lines of a text, and how many are above them. */
export interface Preview {
  lines: string[];
  hidden: number;
}

/** What is being filled while a line is wrapped: `ranges` holds start and end of each piece. */
interface Wrapping {
  ranges: number[];
  start: number;
  end: number;
  cells: number;
}

const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: "grapheme" });

// Characters that are a grapheme of one cell each, whatever stands beside them of their kind:
// for these an index is a column. Accents, Cyrillic, box drawing and braille bars are included.
const ONE_CELL_EACH = new RegExp(
  String.raw`^[\x20-\x7e\u00a1-\u00ac\u00ae-\u00b6\u00b8-\u02c6\u02c8\u02ce-\u02d8\u02da-\u02e9` +
    String.raw`\u02ec-\u02ff\u0400-\u0482\u048a-\u052f\u2500-\u259f\u2801-\u28ff]*$`,
);

// Between these a line may break anywhere.
const BREAKS_ANYWHERE =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}]/u;

/**
 * Takes a line without control characters and a width and gives its visual lines as pairs of
 * start and end into it. Blanks where a line breaks belong to neither side. A character wider
 * than the width is left out.
 */
export function wrapRanges(line: string, width: number): number[] {
  if (line.length * 2 <= width) return [0, line.length];
  if (ONE_CELL_EACH.test(line)) return wrapByIndex(line, width);
  if (visibleWidth(line) <= width) return [0, line.length];
  return wrapByGrapheme(line, width);
}

/** Takes clean text of any number of lines and gives all its visual lines. */
export function wrapText(text: string, width: number): string[] {
  const wrapped: string[] = [];
  for (const line of text.split("\n")) pushPieces(wrapped, line, wrapRanges(line, width), width);
  return wrapped;
}

/** Takes clean text and gives its last (or first) `limit` visual lines and how many are hidden. */
export function previewText(
  text: string,
  width: number,
  limit: number,
  keep: "end" | "start" = "end",
): Preview {
  const lines = text.split("\n");
  if (keep === "end") lines.reverse();
  const kept: string[][] = [];
  let free = limit;
  let hidden = 0;
  for (const line of lines) {
    const ranges = wrapRanges(line, width);
    const count = ranges.length / 2;
    const shown = Math.min(free, count);
    hidden += count - shown;
    if (shown === 0) continue;
    free -= shown;
    const from = keep === "end" ? ranges.length - shown * 2 : 0;
    const pieces: string[] = [];
    pushPieces(pieces, line, ranges.slice(from, from + shown * 2), width);
    kept.push(pieces);
  }
  if (keep === "end") kept.reverse();
  return { lines: kept.flat(), hidden };
}

/** Takes one piece of a wrapped line and gives it, cut where its width was misjudged. */
export function fitted(piece: string, width: number): string {
  // A line that is too wide ends pi, so that the last word is the function pi measures with.
  if (piece.length * 2 <= width || visibleWidth(piece) <= width) return piece;
  return cutToCells(piece, width);
}

function pushPieces(into: string[], line: string, ranges: number[], width: number): void {
  for (let i = 0; i < ranges.length; i += 2) {
    into.push(fitted(line.slice(ranges[i], ranges[i + 1]), width));
  }
}

function wrapByIndex(line: string, width: number): number[] {
  if (line.length <= width) return [0, line.length];
  const wrapping = begin();
  for (let at = 0; at < line.length; ) {
    const blank = line[at] === " ";
    const end = blank ? endOfBlanks(line, at) : endOfWord(line, at);
    if (!blank && end - at > width) breakByIndex(line, wrapping, at, end, width);
    else addToken(line, wrapping, at, end, end - at, blank, width);
    at = end;
  }
  return finish(line, wrapping);
}

function endOfWord(line: string, from: number): number {
  const end = line.indexOf(" ", from);
  return end < 0 ? line.length : end;
}

function endOfBlanks(line: string, from: number): number {
  let end = from;
  while (end < line.length && line[end] === " ") end++;
  return end;
}

/** A word longer than a line starts on a line of its own and is cut at its ends. */
function breakByIndex(
  line: string,
  wrapping: Wrapping,
  start: number,
  end: number,
  width: number,
): void {
  if (wrapping.end > wrapping.start) push(line, wrapping);
  let at = start;
  for (; end - at > width; at += width) wrapping.ranges.push(at, at + width);
  restart(wrapping, at, end, end - at);
}

function wrapByGrapheme(line: string, width: number): number[] {
  const wrapping = begin();
  let start = 0;
  let cells = 0;
  let kind: "none" | "blank" | "word" = "none";
  // The graphemes of the current token, for the case that it has to be broken.
  let marks: number[] = [];
  let widths: number[] = [];
  const flush = (end: number): void => {
    if (kind === "none") return;
    const blank = kind === "blank" || line.slice(start, end).trim() === "";
    if (cells > width && !blank) breakByGrapheme(line, wrapping, marks, widths, end, width);
    else addToken(line, wrapping, start, end, cells, blank, width);
    kind = "none";
  };
  for (const { segment, index } of GRAPHEMES.segment(line)) {
    const anywhere = segment !== " " && BREAKS_ANYWHERE.test(segment);
    const next = segment === " " ? "blank" : "word";
    if (anywhere || next !== kind) {
      flush(index);
      [start, cells, marks, widths] = [index, 0, [], []];
    }
    const wide = visibleWidth(segment);
    kind = next;
    cells += wide;
    marks.push(index);
    widths.push(wide);
    if (anywhere) flush(index + segment.length);
  }
  flush(line.length);
  return finish(line, wrapping);
}

function breakByGrapheme(
  line: string,
  wrapping: Wrapping,
  marks: number[],
  widths: number[],
  end: number,
  width: number,
): void {
  if (wrapping.end > wrapping.start) push(line, wrapping);
  restart(wrapping, marks[0] ?? end, marks[0] ?? end, 0);
  for (let i = 0; i < marks.length; i++) {
    const wide = widths[i] ?? 0;
    const at = marks[i] ?? end;
    const after = marks[i + 1] ?? end;
    if (wide > width) {
      if (wrapping.end > wrapping.start) push(line, wrapping);
      restart(wrapping, after, after, 0);
      continue;
    }
    if (wrapping.cells + wide > width) {
      push(line, wrapping);
      restart(wrapping, at, at, 0);
    }
    wrapping.end = after;
    wrapping.cells += wide;
  }
}

function begin(): Wrapping {
  return { ranges: [], start: 0, end: 0, cells: 0 };
}

function restart(wrapping: Wrapping, start: number, end: number, cells: number): void {
  wrapping.start = start;
  wrapping.end = end;
  wrapping.cells = cells;
}

function addToken(
  line: string,
  wrapping: Wrapping,
  start: number,
  end: number,
  cells: number,
  blank: boolean,
  width: number,
): void {
  if (wrapping.cells > 0 && wrapping.cells + cells > width) {
    push(line, wrapping);
    // Blanks at a break are dropped: they would only indent the next line.
    if (blank) restart(wrapping, end, end, 0);
    else restart(wrapping, start, end, cells);
    return;
  }
  if (wrapping.end === wrapping.start) wrapping.start = start;
  wrapping.end = end;
  wrapping.cells += cells;
}

/** Ends the visual line without the blanks at its end: they would make it wider than it looks. */
function push(line: string, wrapping: Wrapping): void {
  const { start } = wrapping;
  let end = wrapping.end;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--;
  wrapping.ranges.push(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || (code > 0x7f && /\s/.test(String.fromCharCode(code)));
}

function finish(line: string, wrapping: Wrapping): number[] {
  if (wrapping.end > wrapping.start) push(line, wrapping);
  return wrapping.ranges.length > 0 ? wrapping.ranges : [0, 0];
}
