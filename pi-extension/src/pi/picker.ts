/**
 * The list of sessions in the place of pi's editor: one of them is followed, ended, written to. What
 * these keys do is for session-actions.ts to say.
 */
import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, Input, matchesKey } from "@earendil-works/pi-tui";
import { formatAge } from "../text/figures.ts";
import { stripControls } from "../text/safe.ts";
import { commandOf, countOf, idWords } from "../text/session.ts";
import { cutToCells, oneLine, wrap } from "../text/width.ts";
import type { Row } from "./roster.ts";

/** The most rows of the list that are shown at once; the fewest, however small the screen is. */
const SHOWN_MAX = 30;
const ROWS_MIN = 3;
/** Lines of pi itself, and of the list's frame, that stay in sight. */
const OTHER_ROWS = 14;
const MESSAGE_CELLS = 1_000;
/** The narrowest that a command is cut to so that the state beside it has room. */
const COMMAND_MIN = 16;

const KEYS = "enter follows · k ends · s sends a line · c copies the log's path · a attach · esc closes";
const LINE_KEYS = "enter sends · esc goes back";

/** What the list asks of who shows it. */
export interface PickerHost {
  /** Rows of the terminal. */
  rows(): number;
  /** Draws the list anew. */
  draw(): void;
  /** Closes the list; `follow` is the session whose output is to be followed. */
  close(follow?: number): void;
  /** What one of the keys does; gives the words that say what came of it. */
  act(key: "k" | "c" | "a", row: Row): Promise<string>;
  /** Why no line can be sent; undefined where one can. */
  whyNoLine(row: Row): string | undefined;
  send(row: Row, line: string): Promise<string>;
}

export class SessionPicker implements Component {
  readonly #theme: Pick<Theme, "fg">;
  readonly #host: PickerHost;
  #rows: Row[] = [];
  #note = "";
  /** The id of the row that is chosen: rows come and go meanwhile. */
  #chosen: number | undefined;
  #message = "";
  #input: { row: Row; line: Input } | undefined;

  constructor(theme: Pick<Theme, "fg">, host: PickerHost) {
    this.#theme = theme;
    this.#host = host;
  }

  /** Takes the sessions as they are now, and what is said of those that are listed no more. */
  show(rows: Row[], note = ""): void {
    const at = this.#at();
    this.#rows = rows;
    this.#note = note;
    const isThere = rows.some(({ id }) => id === this.#chosen);
    if (!isThere) this.#chosen = rows[Math.min(at, rows.length - 1)]?.id;
  }

  /** Says what came of a key. */
  say(message: string): void {
    this.#message = oneLine(message, MESSAGE_CELLS);
  }

  handleInput(key: string): void {
    if (this.#input) this.#input.line.handleInput(key);
    else this.#onKey(key);
    this.#host.draw();
  }

  #onKey(key: string): void {
    const row = this.#rows[this.#at()];
    if (["q", "escape", "ctrl+c"].some((one) => matchesKey(key, one as "q"))) this.#host.close();
    else if (matchesKey(key, "up")) this.#move(-1);
    else if (matchesKey(key, "down")) this.#move(1);
    else if (row === undefined) return;
    else if (matchesKey(key, "enter")) this.#host.close(row.id);
    else if (matchesKey(key, "s")) this.#ask(row);
    else for (const one of ["k", "c", "a"] as const) if (matchesKey(key, one)) this.#act(one, row);
  }

  #move(by: number): void {
    const count = this.#rows.length;
    this.#message = "";
    if (count > 0) this.#chosen = this.#rows[(this.#at() + by + count) % count]?.id;
  }

  #act(key: "k" | "c" | "a", row: Row): void {
    this.#message = key === "k" ? `ending ${idWords(row.id)} …` : "";
    this.#sayWhenDone(this.#host.act(key, row));
  }

  #ask(row: Row): void {
    const why = this.#host.whyNoLine(row);
    if (why !== undefined) return this.say(why);
    const line = new Input();
    line.focused = true;
    line.onEscape = () => {
      this.#input = undefined;
    };
    line.onSubmit = (text) => {
      this.#input = undefined;
      this.#sayWhenDone(this.#host.send(row, text));
    };
    this.#message = "";
    this.#input = { row, line };
  }

  #sayWhenDone(work: Promise<string>): void {
    const tell = (message: string) => {
      this.say(message);
      this.#host.draw();
    };
    work.then(tell, (error: unknown) => tell(error instanceof Error ? error.message : String(error)));
  }

  /** The place of the chosen row. */
  #at(): number {
    return Math.max(0, this.#rows.findIndex(({ id }) => id === this.#chosen));
  }

  /** Takes the width in cells and gives the lines, none of them wider. */
  render(width: number): string[] {
    const cells = Math.max(1, Math.floor(width));
    const dim = (text: string) => wrap(text, cells).map((line) => this.#theme.fg("dim", line));
    const rule = this.#theme.fg("accent", "─".repeat(cells));
    const ask = this.#input;
    return [
      rule,
      this.#theme.fg("accent", cutToCells(this.#title(), cells)),
      ...this.#list(cells),
      ...(this.#note === "" ? [] : dim(this.#note)),
      ...(this.#message === "" ? [] : wrap(this.#message, cells)
        .map((line) => this.#theme.fg("warning", line))),
      ...(ask ? [cutToCells(`a line for ${idWords(ask.row.id)}:`, cells), ...ask.line.render(cells)] : []),
      ...dim(ask ? LINE_KEYS : KEYS),
      rule,
    ];
  }

  /** The list keeps nothing of what it has drawn. */
  invalidate(): void {}

  #title(): string {
    const running = this.#rows.filter(({ isRunning }) => isRunning).length;
    const ended = this.#rows.length - running;
    const also = ended > 0 ? `, ${ended} ended` : "";
    return `execd: ${running === 0 && ended > 0 ? "no session" : countOf(running)} running${also}`;
  }

  #list(cells: number): string[] {
    const most = Math.max(ROWS_MIN, Math.min(SHOWN_MAX, this.#host.rows() - OTHER_ROWS));
    const at = this.#at();
    const from = Math.max(0, Math.min(at - Math.floor(most / 2), this.#rows.length - most));
    const shown = this.#rows.slice(from, from + most);
    const lines = shown.map((row, i) => this.#line(row, from + i === at, cells));
    const isAll = shown.length === this.#rows.length;
    return isAll ? lines : [...lines, this.#theme.fg("dim", cutToCells(`  (${at + 1}/${this.#rows.length})`, cells))];
  }

  #line({ id, seen, states, isRunning }: Row, isChosen: boolean, cells: number): string {
    const age = typeof seen.ageMs === "number" ? formatAge(seen.ageMs) : "";
    const head = `${isChosen ? "→" : " "} ${idWords(id)} ${age} `;
    const state = states.length === 0 ? "" : ` · ${stripControls(states.join(" · "))}`;
    const room = cells - head.length;
    const command = commandOf(seen, Math.max(COMMAND_MIN, room - state.length));
    const line = cutToCells(`${head}${command}${state}`, cells);
    return this.#theme.fg(isChosen ? "accent" : isRunning ? "text" : "muted", line);
  }
}
