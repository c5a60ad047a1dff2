/**
 * Passwords: a program that the model waits on asks for one in its terminal, and the person gives it
 * in a box that shows dots. The bytes go to execd and nowhere else; the model is told whether somebody has
 * answered (docs: pi.md, Secrets).
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, Input } from "@earendil-works/pi-tui";
import type { Client } from "../execd/client.ts";
import type { RequestOptions } from "../execd/daemon.ts";
import type {
  PasswordAsked, Reply, SessionEvent, SessionInfo, WaitForResult, WaitForRow, WaitResult,
} from "../execd/wire-results.ts";
import type { Method } from "../execd/wire.ts";
import { cutToCells, oneLine } from "../text/width.ts";
import type { HostContext } from "./host.ts";
import {
  type Rest, joined, restOf, withoutOurs, withoutOursOfAll, withTimeOf,
} from "./password-replies.ts";

/** How often one call asks: a program that is never content must not hold the call for ever. */
const ASKS_PER_CALL = 8;
/** While the box is open, the session is looked at so often. */
const LOOK_MS = 500;
/** So many looks that find it waiting for something else close the box. */
const OTHER_LOOKS = 2;
const NAME_CELLS = 40;
/** How long wait_for waits where the call does not say (docs: protocol.md, wait_for). */
const WAIT_FOR_MS = 30_000;
const PROMPT_CELLS = 200;

/** What the person reads where the terminal passes on each key, so that execd cannot see its echo. */
const SHOWN_WITHIN = "a terminal within this program may show what you type, and the model reads it";

/** What the model reads. */
const WORDS = {
  answered: "password asked; answered",
  declined: "password asked; the person declined",
  over: "password asked; the session no longer waits for it",
  unsent: "password asked; it could not be sent",
  cancelled: "password asked; nobody answered",
  nobody: "a password is asked for, and nobody can give it here: do without (a key, an askpass "
    + "program, sudo -n), or ask for another way",
} as const;

type Answer = keyof typeof WORDS;

/** The session of pi, as far as it is needed here. */
export interface Asking {
  /** Whether the person is to be asked. */
  readonly settings: { readonly secrets: boolean };
  /** The client, whose execd may be gone when the person has answered. */
  readonly execd: Pick<Client, "starts" | "assertSame">;
  request<M extends Method>(method: M, params: object, options: RequestOptions): Promise<Reply<M>>;
}

/** A wait that may have stopped for a password. */
export interface Stopped<R> {
  ctx: HostContext;
  signal: AbortSignal;
  /** What the wait was asked for with. */
  params: Record<string, unknown>;
  /** Waits again, with these params; `signal` ends it. */
  goOn(params: object, signal: AbortSignal): Promise<R>;
}

/** A session that waits for a password, and what it has printed. */
interface Prompt {
  id: number;
  detail: SessionInfo["state_detail"];
  output: string | undefined;
  total: number | undefined;
}

/** What was answered to the prompt of one session; `isKnown`: an earlier result has told it. */
interface Answered {
  id: number;
  answer: Answer;
  isKnown: boolean;
}

/** What came of a wait. */
export interface Attended<R> {
  reply: R;
  /** What the model is told of passwords; empty where none was asked for. */
  said: string;
}

export class Secrets {
  readonly #context: Asking;
  /** One box after the other. */
  #last: Promise<unknown> = Promise.resolve();
  /** Sessions whose prompt nobody has answered, and the length of their output then. */
  readonly #refused = new Map<number, { answer: Answer; total: number | undefined }>();

  constructor(context: Asking) {
    this.#context = context;
  }

  /** Whether waits are to end where a password is asked for. */
  get wanted(): boolean {
    return this.#context.settings.secrets;
  }

  /**
   * Takes the reply of a wait. Where its session waits for a password, the person is asked and the
   * wait goes on, as often as that is so.
   */
  async attend(reply: WaitResult, stopped: Stopped<WaitResult>): Promise<Attended<WaitResult>> {
    let now = reply;
    let answer: Answer | undefined;
    const askedMs = reply.yield_time_ms ?? 0;
    const { execd } = this.#context;
    const { starts } = execd;
    for (let asks = 0; asks < ASKS_PER_CALL; asks++) {
      if (!this.wanted || now.session_id === undefined) break;
      if (now.state !== "waiting_for_password") break;
      const { session_id: id, output, output_bytes_total: total } = now;
      answer = await this.#answer({ id, detail: now.state_detail, output, total }, stopped);
      // The session is gone with its execd: another one knows nothing of it.
      execd.assertSame(starts);
      if ((answer !== "answered" && answer !== "over") || stopped.signal.aborted) break;
      const rest = restOf(stopped.params, now, askedMs - (now.effective_wait_ms ?? 0));
      const { reply: after, isTimedOut } = await this.#waitOn(rest, stopped);
      now = joined(now, after, { params: stopped.params, isTimedOut });
    }
    const said = answer === undefined ? "" : `\n${WORDS[answer]}`;
    return { reply: withoutOurs(now, stopped.params), said };
  }

  async #waitOn(
    { params, endsAfterMs }: Rest,
    { signal, goOn }: Stopped<WaitResult>,
  ): Promise<{ reply: WaitResult; isTimedOut: boolean }> {
    if (endsAfterMs === undefined) return { reply: await goOn(params, signal), isTimedOut: false };
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), endsAfterMs);
    try {
      const reply = await goOn(params, AbortSignal.any([signal, over.signal]));
      const isTimedOut = over.signal.aborted && !signal.aborted && reply.wait_status === "cancelled";
      return { reply, isTimedOut };
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The same of a wait for several sessions. It ends as soon as one of them asks for a password, has
   * told nothing then, and goes on when the person has answered. What the model was told already of
   * a prompt, that it was declined or that nobody can answer, ends no wait a second time.
   */
  async attendAll(stopped: Stopped<WaitForResult>): Promise<Attended<WaitForResult>> {
    const { params, signal, goOn } = stopped;
    const said = new Set<string>();
    const events: SessionEvent[] = [];
    let leftMs = Number(params.timeout_ms ?? WAIT_FOR_MS);
    let time: object = {};
    let first: WaitForResult | undefined;
    let endsByPassword = this.wanted;
    for (let asks = 0; ; asks++) {
      const beganMs = performance.now();
      const own = endsByPassword && { until_password: true };
      const reply = await goOn({ ...time, ...own }, signal);
      first ??= reply;
      leftMs -= performance.now() - beganMs;
      time = { timeout_ms: Math.max(0, Math.round(leftMs)) };
      events.push(...(reply.events ?? []));
      const asksNow = this.wanted && asks < ASKS_PER_CALL && !signal.aborted;
      const answers = asksNow ? await this.#answerEach(reply.sessions, stopped) : [];
      for (const { id, answer } of answers) said.add(`\nsession ${id}: ${WORDS[answer]}`);
      const isAnswered = answers.some(({ answer }) => answer === "answered" || answer === "over");
      const isOld = endsByPassword && answers.length > 0 && answers.every(({ isKnown }) => isKnown);
      const tells = reply.sessions.some(({ output }) => output !== undefined);
      if (tells || !(isAnswered || (isOld && endedByPassword(reply)))) {
        const all = events.length > 0 && { events };
        const told = withTimeOf(first, withoutOursOfAll(reply, params));
        return { reply: { ...told, ...all }, said: [...said].join("") };
      }
      endsByPassword = this.wanted && !isOld;
    }
  }

  /**
   * The terminal of a call that goes on waiting is asked for a password. `signal` closes the box:
   * the call is over. Gives whether the wait is to go on, whether a person has answered or declined,
   * and what the model is told.
   */
  async attendCall(
    { session_id: id }: PasswordAsked,
    stopped: Pick<Stopped<unknown>, "ctx" | "signal">,
  ): Promise<{ goesOn: boolean; byPerson: boolean; said: string }> {
    const detail = (await this.#row(id).catch(() => undefined))?.state_detail;
    const { text, total_bytes: total } = await this.#lastLine(id);
    const answer = await this.#answer({ id, detail, output: text, total }, stopped);
    const goesOn = answer === "answered" || answer === "over";
    return { goesOn, byPerson: answer === "answered" || answer === "declined", said: WORDS[answer] };
  }

  async #answerEach(rows: WaitForRow[], stopped: Stopped<WaitForResult>): Promise<Answered[]> {
    const answers: Answered[] = [];
    const { execd } = this.#context;
    const { starts } = execd;
    for (const { session_id: id, state, state_detail: detail } of rows) {
      if (state !== "waiting_for_password") continue;
      const { text, total_bytes: total } = await this.#lastLine(id);
      const known = this.#refusedAt(id, total);
      const prompt = { id, detail, output: text, total };
      const answer = known ?? await this.#answer(prompt, stopped);
      execd.assertSame(starts);
      answers.push({ id, answer, isKnown: known !== undefined });
    }
    return answers;
  }

  async #lastLine(id: number): Promise<{ text?: string; total_bytes?: number }> {
    try {
      const page = await this.#context.request("read_output", { session_id: id, lines: 1 }, {});
      return page as { text?: string; total_bytes?: number };
    } catch {
      // It has ended, or its log cannot be read: the box says less then.
      return {};
    }
  }

  async #answer(
    prompt: Prompt,
    { ctx, signal }: Pick<Stopped<unknown>, "ctx" | "signal">,
  ): Promise<Answer> {
    const { id, total } = prompt;
    const known = this.#refusedAt(id, total);
    if (known !== undefined) return known;
    this.#refused.delete(id);
    const hasBox = ctx.mode === "tui" && typeof ctx.ui?.custom === "function";
    const ask = () => this.#ask(prompt, ctx, signal);
    const asked = hasBox ? this.#last.then(ask) : Promise.resolve("nobody" as const);
    this.#last = asked.catch(() => {});
    const answer = await asked;
    if (answer === "declined" || answer === "nobody") this.#refused.set(id, { answer, total });
    return answer;
  }

  /** What came of the prompt that the session shows at this length of its output, where nobody gave it. */
  #refusedAt(id: number, total: number | undefined): Answer | undefined {
    const refused = this.#refused.get(id);
    return refused?.total === total ? refused?.answer : undefined;
  }

  /** Opens the box, and sends what the person has typed. */
  async #ask(
    { id, detail, output }: Prompt,
    ctx: HostContext,
    signal: AbortSignal,
  ): Promise<Answer> {
    const who = oneLine(detail?.command ?? "a program", NAME_CELLS);
    const title = `#${id} ${who} asks for a password (hidden from the model)`;
    const prompt = oneLine(output?.split("\n").at(-1) ?? "", PROMPT_CELLS);
    const warning = detail?.by === "text" ? SHOWN_WITHIN : "";
    const closed = new AbortController();
    let over = false;
    let close = () => {};
    const looks = this.#untilOver(id, closed.signal).then((isOver) => {
      over = isOver;
      if (isOver) close();
    });
    const cancel = () => close();
    signal.addEventListener("abort", cancel);
    try {
      if (signal.aborted) return "cancelled";
      const typed = await ctx.ui?.custom?.<string | undefined>((tui, theme, _keys, done) => {
        close = () => done(undefined);
        if (over || signal.aborted) close();
        return new Box(theme, { title, prompt, warning }, done, () => tui.requestRender());
      });
      if (typed === undefined) {
        if (over) return "over";
        return signal.aborted ? "cancelled" : "declined";
      }
      return await this.#send(id, typed);
    } finally {
      signal.removeEventListener("abort", cancel);
      closed.abort();
      await looks;
    }
  }

  async #send(id: number, typed: string): Promise<Answer> {
    const bytes = Buffer.from(`${typed}\r`);
    const params = { session_id: id, data_b64: bytes.toString("base64"), secret: true };
    bytes.fill(0);
    try {
      await this.#context.request("attach_input", params, {});
      return "answered";
    } catch {
      // Why it was not taken may be said by the next poll; the error is not told, since nobody has
      // promised that it quotes nothing.
      return "unsent";
    }
  }

  /** Looks at the session until it waits for no password any more; false when nobody looks on. */
  async #untilOver(id: number, closed: AbortSignal): Promise<boolean> {
    let others = 0;
    while (!closed.aborted) {
      await delay(LOOK_MS, undefined, { signal: closed, ref: false }).catch(() => {});
      if (closed.aborted) return false;
      const asks = await this.#asks(id);
      others = asks === false ? others + 1 : 0;
      if (others >= OTHER_LOOKS) return true;
    }
    return false;
  }

  async #row(id: number): Promise<SessionInfo | undefined> {
    const { sessions } = await this.#context.request("list_sessions", { peek: true }, {});
    return sessions.find(({ session_id }) => session_id === id);
  }

  /** Whether a session asks for a password; undefined where execd does not say. */
  async #asks(id: number): Promise<boolean | undefined> {
    try {
      const row = await this.#row(id);
      // A list that was too long to look at the session in time says nothing of it.
      if (row?.running === true && row.state === undefined) return undefined;
      return row?.running === true && row.state === "waiting_for_password";
    } catch {
      // execd is gone, or ends: so are its sessions.
      return false;
    }
  }
}

/** Whether a wait for several sessions ended because one of them asks for a password. */
function endedByPassword({ wait: { by, state } }: WaitForResult): boolean {
  return by === "input" && state === "waiting_for_password";
}

/** A line that is typed and not shown. */
class Box implements Component {
  readonly #input = new Input();
  readonly #theme: Pick<Theme, "fg">;
  readonly #lines: { title: string; prompt: string; warning: string };
  readonly #draw: () => void;

  constructor(
    theme: Pick<Theme, "fg">,
    lines: { title: string; prompt: string; warning: string },
    done: (typed: string | undefined) => void,
    draw: () => void,
  ) {
    this.#theme = theme;
    this.#lines = lines;
    this.#draw = draw;
    this.#input.onSubmit = (typed) => {
      this.#input.setValue("");
      done(typed);
    };
    this.#input.onEscape = () => {
      this.#input.setValue("");
      done(undefined);
    };
  }

  handleInput(key: string): void {
    this.#input.handleInput(key);
    this.#draw();
  }

  render(width: number): string[] {
    const cells = Math.max(1, Math.floor(width));
    const { title, prompt, warning } = this.#lines;
    const rule = this.#theme.fg("accent", "─".repeat(cells));
    const typed = "•".repeat([...this.#input.getValue()].length);
    const cut = (text: string) => cutToCells(text, cells);
    return [
      rule,
      this.#theme.fg("accent", cut(title)),
      ...(prompt === "" ? [] : [this.#theme.fg("muted", cut(prompt))]),
      ...(warning === "" ? [] : [this.#theme.fg("warning", cut(warning))]),
      cut(`> ${typed}▏`),
      this.#theme.fg("dim", cut("enter sends · esc declines")),
      rule,
    ];
  }

  /** The box keeps nothing of what it has drawn. */
  invalidate(): void {}
}
