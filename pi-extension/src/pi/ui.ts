/** What a person sees outside the tool rows: notices, the footer's status and the /tree widget. */
import type { RunningSession, Sessions } from "../execd/sessions.ts";
import { formatAge } from "../text/figures.ts";
import { tildify } from "../text/home.ts";
import { oneLine } from "../text/width.ts";
import type { HostContext, HostUi } from "./host.ts";

/** Key of the status and of the widget. */
const KEY = "unified-exec.sessions";
/** Sessions that the widget shows; the tool that lists them shows all. */
const WIDGET_SESSIONS = 5;
const COMMAND_CELLS = 60;
const CWD_CELLS = 60;
const NOTICE_CELLS = 1_000;
/** How often the ages in the widget are drawn anew. */
const WIDGET_TICK_MS = 1_000;

/** The words in which people are spoken to. */
export interface Voice {
  /** Stands before notices. */
  speaker: string;
  /** The tool that lists what runs. */
  list: string;
  /** The last line of the widget after /tree: which tools to go on with. */
  hint: string;
}

export class Ui {
  #ui: HostUi | undefined;
  #isTui = false;
  #isSilent = false;
  #widgetShown = false;
  #ticker: NodeJS.Timeout | undefined;
  readonly #voice: () => Voice;
  readonly #isArmed: (id: number) => boolean;

  /**
   * `voice` gives the words at the moment; `isArmed` tells whether the end of the session with this
   * id will be told to the model.
   */
  constructor(voice: () => Voice, isArmed: (id: number) => boolean) {
    this.#voice = voice;
    this.#isArmed = isArmed;
  }

  /** Takes the context of a new session of pi. */
  attach(ctx: HostContext): void {
    this.#ui = ctx.ui;
    this.#isTui = ctx.mode === "tui";
    this.#isSilent = ctx.hasUI === false;
    this.#widgetShown = false;
  }

  /** Whether nobody sees a notice: pi runs without a user interface. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Clears what is shown and forgets the context, which goes stale with its session. */
  detach(): void {
    this.#guarded((ui) => ui.setStatus?.(KEY, undefined));
    this.#hideWidget();
    this.#ui = undefined;
  }

  /** A notice in the warning's colour. */
  warn(message: string): void {
    this.say(this.#voice().speaker, message, "warning");
  }

  /** A warning about a setting; without a user interface stderr is where people look. */
  complain(message: string): void {
    this.warn(message);
    if (this.#isSilent) console.error(`execd: ${oneLine(message, NOTICE_CELLS)}`);
  }

  /** A notice; `speaker` stands before it. */
  say(speaker: string, message: string, type: "info" | "warning" | "error"): void {
    const text = `${speaker}: ${oneLine(message, NOTICE_CELLS)}`;
    this.#guarded((ui) => ui.notify(text, type));
  }

  /** A status in the footer; undefined takes it away. */
  status(key: string, text: string | undefined): void {
    this.#guarded((ui) => ui.setStatus?.(key, text));
  }

  /** Shows how many sessions run, now that it has changed. */
  refresh(sessions: Sessions): void {
    const status = sessions.count > 0 ? `execd: ${running(sessions.count)}` : undefined;
    this.#guarded((ui) => ui.setStatus?.(KEY, status));
    if (sessions.count === 0) this.#hideWidget();
    else if (this.#widgetShown) this.#drawWidget(sessions);
  }

  /** After /tree: the sessions did not go back with the conversation. */
  onTree(sessions: Sessions): void {
    if (sessions.count === 0) return;
    const notice = `${count(sessions.count)} still running after /tree.`;
    // pi draws the conversation anew after this event's handlers, and with it goes what they said.
    setTimeout(() => this.warn(notice), 0);
    this.#drawWidget(sessions);
    this.#widgetShown = true;
    if (!this.#isTui) return;
    clearInterval(this.#ticker);
    this.#ticker = setInterval(() => this.#drawWidget(sessions), WIDGET_TICK_MS).unref();
  }

  #drawWidget(sessions: Sessions): void {
    const lines = widgetLines(sessions.list(), Date.now(), this.#isArmed, this.#voice());
    this.#guarded((ui) => ui.setWidget?.(KEY, lines, { placement: "aboveEditor" }));
  }

  #hideWidget(): void {
    clearInterval(this.#ticker);
    if (!this.#widgetShown) return;
    this.#widgetShown = false;
    this.#guarded((ui) => ui.setWidget?.(KEY, undefined));
  }

  /** A context that went stale throws: then there is nobody to show anything to. */
  #guarded(show: (ui: HostUi) => void): void {
    try {
      if (this.#ui) show(this.#ui);
    } catch {
      this.#ui = undefined;
    }
  }
}

/** `1 session`, `2 sessions`. */
export function count(sessions: number): string {
  return `${sessions} session${sessions === 1 ? "" : "s"}`;
}

function running(sessions: number): string {
  return `${count(sessions)} running`;
}

/** `#2 41s npm run dev`: one session as people pick it; `marks` stand before its command. */
export function sessionLabel(id: number, ageMs: number, command: string, marks: string[]): string {
  return [`#${id}`, formatAge(ageMs), ...marks, oneLine(command, COMMAND_CELLS)].join(" ");
}

/** The mark of a session whose end the model will be told. */
export const WAKE_MARK = "[wake]";

/**
 * The widget's lines for `sessions` at `nowMs`; `isArmed` tells whose end will be told, `voice`
 * names the tools.
 */
export function widgetLines(
  sessions: RunningSession[],
  nowMs: number,
  isArmed: (id: number) => boolean,
  voice: Voice,
): string[] {
  const shown = sessions.slice(0, WIDGET_SESSIONS).map(
    ({ session_id, startedAtMs, command, cwd }) =>
      `  ${sessionLabel(session_id, nowMs - startedAtMs, command, marks(isArmed(session_id)))} `
      + `(${oneLine(tildify(cwd), CWD_CELLS)})`,
  );
  const more = sessions.length - shown.length;
  return [
    `⚠ execd: ${count(sessions.length)} still running`,
    ...shown,
    ...(more > 0 ? [`  … ${more} more; use ${voice.list}`] : []),
    `  ${voice.hint}`,
  ];
}

function marks(isArmed: boolean): string[] {
  return isArmed ? [WAKE_MARK] : [];
}
