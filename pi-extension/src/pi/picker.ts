/**
 * The list of sessions in the place of pi's editor: one of them is followed, ended, written to. What
 * the keys do is for session-keys.ts and session-actions.ts to say.
 */
import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, matchesKey } from "@earendil-works/pi-tui";
import { formatAge } from "../text/figures.ts";
import { stripControls } from "../text/safe.ts";
import { commandOf, countOf, idWords } from "../text/session.ts";
import { cutToCells, wrap } from "../text/width.ts";
import type { Row } from "./roster.ts";
import { ACTION_KEYS, type KeysHost, SessionKeys } from "./session-keys.ts";

/** The most rows of the list that are shown at once; the fewest, however small the screen is. */
const SHOWN_MAX = 30;
const ROWS_MIN = 3;
/** Lines of pi itself, and of the list's frame, that stay in sight. */
const OTHER_ROWS = 14;
/** The narrowest that a command is cut to so that the state beside it has room. */
const COMMAND_MIN = 16;

const KEYS = `enter follows · ${ACTION_KEYS} · esc closes`;

/** What the list asks of who shows it. */
export interface PickerHost extends KeysHost {
  /** Rows of the terminal. */
  rows(): number;
  /** Closes the list; `follow` is the session whose output is to be followed. */
  close(follow?: number): void;
}

export class SessionPicker implements Component {
  readonly #theme: Pick<Theme, "fg">;
  readonly #host: PickerHost;
  #rows: Row[] = [];
  #note = "";
  /** The id of the row that is chosen: rows come and go meanwhile. */
  #chosen: number | undefined;
  readonly #keys: SessionKeys;

  constructor(theme: Pick<Theme, "fg">, host: PickerHost) {
    this.#theme = theme;
    this.#host = host;
    this.#keys = new SessionKeys(host);
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
    this.#keys.say(message);
  }

  handleInput(key: string): void {
    if (this.#keys.isTyping) this.#keys.type(key);
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
    else this.#keys.press(key, row);
  }

  #move(by: number): void {
    const count = this.#rows.length;
    this.#keys.say("");
    if (count > 0) this.#chosen = this.#rows[(this.#at() + by + count) % count]?.id;
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
    return [
      rule,
      this.#theme.fg("accent", cutToCells(this.#title(), cells)),
      ...this.#list(cells),
      ...(this.#note === "" ? [] : dim(this.#note)),
      ...this.#keys.render(cells, this.#theme),
      ...dim(this.#keys.keys(KEYS)),
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
