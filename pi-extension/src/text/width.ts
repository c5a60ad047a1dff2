/** Text cut and wrapped to the cells of a terminal, as pi measures them. */
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { stripControls } from "./safe.ts";

/** `oneLine` reads so many characters for each cell and some more: it may drop most of them. */
const SCAN_PER_CELL = 4;
const SCAN_ALWAYS = 4096;

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

/** pi's word wrap. */
export function wrap(text: string, width: number): string[] {
  return fitting(wrapTextWithAnsi(text, width), width);
}

/** Cuts lines that are too wide, whatever was measured: one such line ends pi. */
export function fitting(lines: string[], width: number): string[] {
  return lines.map((line) =>
    visibleWidth(line) > width ? truncateToWidth(line, width, "") : line);
}
