/**
 * A command that asks for a password in its terminal while a call of bash, bash_stream or
 * poll_process waits for it: execd tells the call of that, and the time of its wait stands still
 * while the person is asked. timeoutMs of bash_stream is the command's, and goes on. Where nobody
 * answers, the call is over and the command goes on, of bash in the background (docs: pi.md,
 * Passwords).
 */
import type { RequestOptions } from "../execd/daemon.ts";
import type { PasswordAsked } from "../execd/wire-results.ts";
import type { Call } from "../pi/host.ts";
import type { ToolContext } from "./context.ts";

/** The passwords of one call. */
export class Passwords {
  readonly #context: ToolContext;
  readonly #call: Call;
  readonly #signal: AbortSignal;
  readonly #leaves: boolean;
  /** Aborts when the call is to wait no longer, because nobody gives the password. */
  readonly #leave = new AbortController();
  /** Aborts when the call is over. */
  readonly #over = new AbortController();
  readonly #boxes: Promise<void>[] = [];
  #said: string | undefined;

  /** `signal` ends the call; `leaves`: the cancel has to say that the command is to go on. */
  constructor(context: ToolContext, call: Call, signal: AbortSignal, leaves: boolean) {
    this.#context = context;
    this.#call = call;
    this.#signal = signal;
    this.#leaves = leaves;
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
      leaves: () => leaves() && this.#leaves,
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

  /** Whether the call was ended because nobody gives the password. */
  get hasLeft(): boolean {
    return this.#leave.signal.aborted;
  }

  /** What came of the passwords, once the call is over; undefined where none was asked for. */
  async said(): Promise<string | undefined> {
    await this.end();
    return this.#said;
  }

  /** The call is over: a box that is open closes. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled(this.#boxes);
  }
}
