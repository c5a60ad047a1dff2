/**
 * The keys by which a person does something with a session, the same in the list of sessions and in the
 * view of one's output; and the lines that ask for more, or say what came of it.
 */
import type { Theme } from "@earendil-works/pi-coding-agent";
import { Input, matchesKey } from "@earendil-works/pi-tui";
import { idWords } from "../text/session.ts";
import { messageOf } from "../text/values.ts";
import { cutToCells, oneLine, wrap } from "../text/width.ts";
import type { Row } from "./roster.ts";

/** What is said of the keys, below a list or a view. */
export const ACTION_KEYS = "k ends · s sends a line · c copies the log's path · a attach";
const LINE_KEYS = "enter sends · esc goes back";
const MESSAGE_CELLS = 1_000;

/** The keys that ask for nothing more. */
export type ActionKey = "k" | "c" | "a";

/** What the keys ask of who shows them. */
export interface KeysHost {
  /** Draws anew. */
  draw(): void;
  /** What one of the keys does; gives the words that say what came of it. */
  act(key: ActionKey, row: Row): Promise<string>;
  /** Why no line can be sent; undefined where one can. */
  whyNoLine(row: Row): string | undefined;
  send(row: Row, line: string): Promise<string>;
}

export class SessionKeys {
  readonly #host: KeysHost;
  #message = "";
  #input: { row: Row; line: Input } | undefined;

  constructor(host: KeysHost) {
    this.#host = host;
  }

  /** Whether a line is being typed: all keys are its own then. */
  get isTyping(): boolean {
    return this.#input !== undefined;
  }

  /** Says what came of a key; nothing for nothing. */
  say(message: string): void {
    this.#message = oneLine(message, MESSAGE_CELLS);
  }

  /** Takes a key of the line that is being typed. */
  type(key: string): void {
    this.#input?.line.handleInput(key);
  }

  /** Takes any other key, which is about this session; one that has no meaning here does nothing. */
  press(key: string, row: Row): void {
    if (matchesKey(key, "s")) return this.#ask(row);
    for (const one of ["k", "c", "a"] as const) if (matchesKey(key, one)) this.#act(one, row);
  }

  #act(key: ActionKey, row: Row): void {
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
    work.then(tell, (error: unknown) => tell(messageOf(error)));
  }

  /** Takes the width in cells and gives the lines that say something, none of them wider. */
  render(cells: number, theme: Pick<Theme, "fg">): string[] {
    const ask = this.#input;
    const said = this.#message === "" ? [] : wrap(this.#message, cells);
    return [
      ...said.map((line) => theme.fg("warning", line)),
      ...(ask ? [cutToCells(`a line for ${idWords(ask.row.id)}:`, cells), ...ask.line.render(cells)] : []),
    ];
  }

  /** What is said of the keys at the moment; `others` are those of who shows them. */
  keys(others: string): string {
    return this.#input ? LINE_KEYS : others;
  }
}
