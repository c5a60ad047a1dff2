/**
 * A view of the end of a command's output, live: it follows until somebody scrolls up. Where the
 * output comes from is for follow.ts to say.
 */
import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, matchesKey } from "@earendil-works/pi-tui";
import { cutSequence, plainText } from "../text/plain.ts";
import { drawable, stripControls } from "../text/safe.ts";
import { cutToCells, oneLine, wrap } from "../text/width.ts";
import type { Row } from "./roster.ts";
import { ACTION_KEYS, type KeysHost, SessionKeys } from "./session-keys.ts";

/** The most lines, and characters of lines, that can be scrolled back to. */
const LINES_MAX = 2_000;
const CHARS_MAX = 256 * 1024;
/** A longer line is broken in pieces: word wrap takes long for long lines. */
const LINE_CHARS = 4_096;
/** Lines of pi itself that stay in sight. */
const ROWS_OF_PI = 8;
const ROWS_MIN = 5;
/** Lines of the view's own: two rules, the title, the keys. */
const ROWS_OF_FRAME = 4;
const TITLE_CELLS = 1_000;

/** A line, and the rows that it had at the width that it was last drawn in. */
interface Line {
  text: string;
  width?: number;
  rows?: string[];
}

/** What a person reads who has scrolled up. */
interface Stopped {
  /**
   * The lines that were there when the person scrolled up: a line that is dropped meanwhile stays.
   */
  lines: Line[];
  /** How many have come since. */
  newer: number;
}

/** What the view is drawn in. */
export interface Frame extends KeysHost {
  /** Rows of the terminal. */
  rows(): number;
  /** The person is done. */
  close(): void;
}

export class TailView implements Component {
  readonly #theme: Pick<Theme, "fg">;
  readonly #frame: Frame;
  #title = "";
  #over: string | undefined;
  #waits: string | undefined;
  #lines: Line[] = [];
  #chars = 0;
  /** What has come of the last line. */
  #begun = "";
  /** Undefined while the view follows. */
  #stopped: Stopped | undefined;
  /** How many rows above the end the view stands. */
  #up = 0;
  /** The session as it is now, where that is known. */
  #row: Row | undefined;
  readonly #keys: SessionKeys;

  constructor(theme: Pick<Theme, "fg">, frame: Frame) {
    this.#theme = theme;
    this.#frame = frame;
    this.#keys = new SessionKeys(frame);
  }

  /** Says in the first line whose output it is, and which session the keys are about. */
  title(text: string, row?: Row): void {
    this.#title = oneLine(text, TITLE_CELLS);
    this.#row = row;
  }

  /** Says that nothing more will come, and why. */
  over(why: string): void {
    this.#over = oneLine(why, TITLE_CELLS);
  }

  /** Says what the view waits for at this moment; undefined: it follows. */
  waits(what: string | undefined): void {
    this.#waits = what;
  }

  /** Takes more raw output. */
  append(raw: string): void {
    const all = withoutOverwritten(this.#begun + raw);
    // A sequence that goes on is left to what comes.
    const most = all.length > LINE_CHARS ? all.length - cutSequence(all) : 0;
    const end = Math.max(all.lastIndexOf("\n") + 1, most);
    this.#begun = all.slice(end);
    if (end > 0) this.#push(linesOf(all.slice(0, end).replace(/\n$/, "")));
  }

  /** Adds a line of the view's own, on what is not shown. */
  note(text: string): void {
    if (this.#begun !== "") this.append("\n");
    this.#push([{ text }]);
  }

  handleInput(key: string): void {
    if (this.#keys.isTyping) this.#keys.type(key);
    else this.#onKey(key);
    this.#frame.draw();
  }

  #onKey(key: string): void {
    const page = this.#room();
    if (matchesKey(key, "q") || matchesKey(key, "escape") || matchesKey(key, "ctrl+c")) {
      this.#frame.close();
      return;
    }
    if (matchesKey(key, "up")) this.#scroll(1);
    else if (matchesKey(key, "down")) this.#scroll(-1);
    else if (matchesKey(key, "pageUp")) this.#scroll(page);
    else if (matchesKey(key, "pageDown")) this.#scroll(-page);
    else if (matchesKey(key, "home")) this.#scroll(Number.MAX_SAFE_INTEGER);
    else if (matchesKey(key, "end")) this.#scroll(-Number.MAX_SAFE_INTEGER);
    else if (this.#row !== undefined) this.#keys.press(key, this.#row);
  }

  /** Takes the width in cells and gives the lines, none of them wider. */
  render(width: number): string[] {
    const cells = Math.max(1, Math.floor(width));
    const said = this.#keys.render(cells, this.#theme);
    const keys = this.#keyLines(cells);
    // Of small screens the output has a line at least.
    const room = Math.max(1, this.#room() - said.length - (keys.length - 1));
    const lines = this.#stopped?.lines ?? this.#allLines();
    const rows = lastRows(lines, cells, room + this.#up);
    // Above the first row there is nothing.
    this.#up = Math.max(0, Math.min(this.#up, rows.length - room));
    const shown = rows.slice(0, rows.length - this.#up).slice(-room);
    const rule = this.#theme.fg("accent", "─".repeat(cells));
    return [
      rule,
      this.#theme.fg("accent", cut(this.#title, cells)),
      ...shown.map((row) => this.#theme.fg("toolOutput", row)),
      ...said,
      ...keys.map((line) => this.#theme.fg("dim", line)),
      rule,
    ];
  }

  /** The view keeps nothing of what it has drawn. */
  invalidate(): void {}

  /** What the view does, and its keys. */
  #keyLines(cells: number): string[] {
    const { newer } = this.#stopped ?? { newer: 0 };
    const state = this.#stopped !== undefined
      ? `stopped, ${newer} newer line${newer === 1 ? "" : "s"} · end goes on`
      : this.#over ?? this.#waits ?? "following";
    const own = cut(`${state} · ↑ ↓ pgup pgdn scroll · q closes`, cells);
    if (this.#row === undefined) return [own];
    const keys = wrap(this.#keys.keys(ACTION_KEYS), cells);
    return this.#keys.isTyping ? keys : [own, ...keys];
  }

  #room(): number {
    return Math.max(ROWS_MIN, this.#frame.rows() - ROWS_OF_PI - ROWS_OF_FRAME);
  }

  /** All lines, with what has come of the last one. */
  #allLines(): Line[] {
    return this.#begun === "" ? [...this.#lines] : [...this.#lines, ...linesOf(this.#begun)];
  }

  #push(lines: Line[]): void {
    if (this.#stopped !== undefined) this.#stopped.newer += lines.length;
    for (const line of lines) {
      this.#lines.push(line);
      this.#chars += line.text.length;
    }
    let dropped = 0;
    for (const { text } of this.#lines) {
      if (this.#lines.length - dropped <= LINES_MAX && this.#chars <= CHARS_MAX) break;
      this.#chars -= text.length;
      dropped++;
    }
    this.#lines.splice(0, dropped);
  }

  #scroll(up: number): void {
    this.#stopped ??= { lines: this.#allLines(), newer: 0 };
    this.#up = Math.max(0, this.#up + up);
    if (up < 0 && this.#up === 0) this.#stopped = undefined;
  }
}

/** Raw output without what a progress bar has written over in its last line. */
function withoutOverwritten(raw: string): string {
  const line = raw.lastIndexOf("\n") + 1;
  // Behind a return that ends it a newline may come.
  let end = raw.length;
  while (end > line && raw[end - 1] === "\r") end--;
  const shown = end > line ? raw.lastIndexOf("\r", end - 1) : -1;
  return shown < line ? raw : raw.slice(0, line) + raw.slice(shown + 1);
}

/** Raw output as lines that can be drawn. */
function linesOf(raw: string): Line[] {
  const all = drawable(plainText(raw)).split("\n");
  return all.flatMap((text) => pieces(text)).map((text) => ({ text }));
}

function pieces(text: string): string[] {
  if (text.length <= LINE_CHARS) return [text];
  const count = Math.ceil(text.length / LINE_CHARS);
  return Array.from({ length: count }, (_, at) =>
    stripControls(text.slice(at * LINE_CHARS, (at + 1) * LINE_CHARS)));
}

/** The last `most` rows of lines that are wrapped at so many cells. */
function lastRows(lines: Line[], cells: number, most: number): string[] {
  const rows: string[][] = [];
  let count = 0;
  for (let at = lines.length - 1; at >= 0 && count < most; at--) {
    const of = rowsOf(lines[at] as Line, cells);
    rows.push(of);
    count += of.length;
  }
  return rows.reverse().flat().slice(-most);
}

function rowsOf(line: Line, cells: number): string[] {
  if (line.width !== cells || line.rows === undefined) {
    const rows = wrap(line.text, cells);
    line.rows = rows.length > 0 ? rows : [""];
    line.width = cells;
  }
  return line.rows;
}

function cut(text: string, cells: number): string {
  return wrap(cutToCells(text, cells), cells)[0] ?? "";
}
