/**
 * A foreground command of bash that asks for a password in its terminal: execd tells the call of
 * that, and its time stands still while the person is asked. Where nobody answers, the command goes
 * on in the background (docs: pi.md, Secrets).
 */
import type { RequestOptions } from "../execd/daemon.ts";
import type { BashResult, PasswordAsked } from "../execd/wire-results.ts";
import type { Call } from "../pi/host.ts";
import type { ToolContext } from "./context.ts";

/** The passwords of one call. */
export class Passwords {
  readonly #context: ToolContext;
  readonly #call: Call;
  readonly #signal: AbortSignal;
  readonly #kills: boolean;
  /** Aborts when the call is to wait no longer, because nobody gives the password. */
  readonly #leave = new AbortController();
  /** Aborts when the call is over. */
  readonly #over = new AbortController();
  readonly #boxes: Promise<void>[] = [];
  #said: string | undefined;

  /** `signal` ends the call; `kills`: a command that cannot go on is ended, as the call asks. */
  constructor(context: ToolContext, call: Call, signal: AbortSignal, kills: boolean) {
    this.#context = context;
    this.#call = call;
    this.#signal = signal;
    this.#kills = kills;
  }

  /** What the request says so that execd tells of passwords. */
  get params(): { tellPassword?: true } {
    return this.#context.secrets.wanted ? { tellPassword: true } : {};
  }

  /** How the request is cancelled. */
  get options(): RequestOptions {
    const leaves = () => this.#leave.signal.aborted && !this.#signal.aborted;
    return {
      signal: AbortSignal.any([this.#signal, this.#leave.signal]),
      whyCancelled: () => leaves() ? this.#said : undefined,
      leaves: () => leaves() && !this.#kills,
    };
  }

  /** execd says that the command's terminal is asked for a password. */
  onAsked(note: PasswordAsked): void {
    this.#boxes.push(this.#ask(note));
  }

  async #ask(note: PasswordAsked): Promise<void> {
    const signal = AbortSignal.any([this.#signal, this.#over.signal]);
    const { goesOn, byPerson, said } =
      await this.#context.secrets.attendCall(note, { ctx: this.#call.ctx, signal });
    // A box that closed because the call was over has told nobody anything. A command may end as
    // soon as it has been answered: what the person did is told all the same.
    const isOver = this.#over.signal.aborted;
    if (isOver && !byPerson) return;
    this.#said = said;
    if (!goesOn && !isOver) this.#leave.abort();
  }

  /** The text of a reply, with what came of the password where the reply does not say it. */
  async told({ text, status }: BashResult): Promise<string> {
    await this.end();
    const isSaid = this.#leave.signal.aborted && status === "background";
    return this.#said === undefined || isSaid ? text : `${text}\n\n${this.#said}`;
  }

  /** The call is over: a box that is open closes. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled(this.#boxes);
  }
}
