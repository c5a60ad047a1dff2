/** What a person sees outside the tool rows: notices, the footer's status and the /tree widget. */
import type { SeenRunning } from "../execd/sessions.ts";
import { WAKE_MARK, countOf, labelOf } from "../text/session.ts";
import { oneLine } from "../text/width.ts";
import type { HostContext, HostUi } from "./host.ts";

/** Key of the status and of the widget. */
const KEY = "unified-exec.sessions";
/** Sessions that the widget shows; the tool that lists them shows all. */
const WIDGET_SESSIONS = 5;
const COMMAND_CELLS = 60;
/** Sessions that the footer names, and the cells of each: pi cuts the line at the width. */
const FOOTER_SESSIONS = 3;
const FOOTER_CELLS = 32;
const NOTICE_CELLS = 1_000;
/** The most notices that are said again with the one that pi writes in their place, and their length. */
const INFORMED_MAX = 8;
const INFORMED_UNITS = 64 * 1024;
/** How often ages are drawn anew in a terminal, and how often execd is asked for states. */
const TICK_MS = 1_000;
const TICKS_PER_LOOK = 5;

/** Stands before every notice. */
const SPEAKER = "execd";

/** What the ui asks of the session of pi. */
export interface UiSource {
  /** What runs, of all families. */
  seen(): SeenRunning[];
  /** Whether the end of the session with this id will be told to the model. */
  isArmed(id: number): boolean;
  /** Asks execd what the sessions are doing; resolves when that is known. */
  look(): Promise<void>;
}

export class Ui {
  #ui: HostUi | undefined;
  #isTui = false;
  #isSilent = false;
  #widgetShown = false;
  #status: string | undefined;
  #ticker: NodeJS.Timeout | undefined;
  #ticks = 0;
  #isLooking = false;
  #counted = 0;
  /** The notices of information since something else has come. */
  #informed: string[] = [];
  readonly #source: UiSource;

  constructor(source: UiSource) {
    this.#source = source;
  }

  /** Takes the context of a new session of pi. */
  attach(ctx: HostContext): void {
    this.#ui = ctx.ui;
    this.#isTui = ctx.mode === "tui";
    this.#isSilent = ctx.hasUI === false;
    this.#widgetShown = false;
    this.#status = undefined;
    this.passed();
  }

  /** Takes a command's context where none was taken: a host may tell of no session's begin. */
  meet(ctx: HostContext): void {
    if (this.#ui === undefined) this.attach(ctx);
  }

  /** Clears what is shown and forgets the context, which goes stale with its session. */
  detach(): void {
    this.#tick(false);
    this.#showStatus(undefined);
    this.#hideWidget();
    this.#ui = undefined;
    this.#counted = 0;
  }

  /** A notice in the warning's colour. */
  warn(message: string): void {
    this.say(message, "warning");
  }

  /** A notice. Without a user interface stderr is where people look for what is wrong. */
  say(message: string, type: "info" | "warning" | "error"): void {
    const line = oneLine(message, NOTICE_CELLS);
    if (type === "info") return this.inform(line);
    const text = `${SPEAKER}: ${line}`;
    this.#guarded((ui) => ui.notify(text, type));
    this.passed();
    if (this.#isSilent) console.error(text);
  }

  /** A notice of information, of any length. */
  inform(message: string): void {
    this.show(`${SPEAKER}: ${message}`);
  }

  /**
   * Shows a text, such as the end of an output. In a terminal pi writes it in the place of the one
   * before it, where nothing has come between: what was said there is said again with it.
   */
  show(text: string): void {
    this.#informed = [...(this.#isTui ? keptOf(this.#informed) : []), text];
    const all = this.#informed.join("\n");
    this.#guarded((ui) => ui.notify(all, "info"));
  }

  /** Something else has come into view: pi does not write over what was said before that. */
  passed(): void {
    this.#informed = [];
  }

  /** A status in the footer; undefined takes it away. */
  status(key: string, text: string | undefined): void {
    this.#guarded((ui) => ui.setStatus?.(key, text));
  }

  /** Shows what runs, now that it has changed. `counted`: so many have a status that counts them. */
  refresh(counted = this.#counted): void {
    this.#counted = counted;
    const seen = this.#source.seen();
    this.#tick(seen.length > 0);
    this.#draw(seen);
  }

  /** After /tree: the sessions did not go back with the conversation. */
  onTree(): void {
    const seen = this.#source.seen();
    if (seen.length === 0) return;
    const notice = `${countOf(seen.length)} still running after /tree.`;
    // pi draws the conversation anew after this event's handlers, and with it goes what they said.
    setTimeout(() => this.warn(notice), 0);
    this.#widgetShown = true;
    this.#draw(seen);
  }

  #draw(seen: SeenRunning[]): void {
    this.#showStatus(statusText(seen, this.#isTui, this.#counted));
    if (seen.length === 0) return this.#hideWidget();
    if (!this.#widgetShown) return;
    const lines = widgetLines(seen, (id) => this.#source.isArmed(id));
    this.#guarded((ui) => ui.setWidget?.(KEY, lines, { placement: "aboveEditor" }));
  }

  #showStatus(text: string | undefined): void {
    if (text === this.#status) return;
    this.#status = text;
    this.#guarded((ui) => ui.setStatus?.(KEY, text));
  }

  /** In a terminal ages and states are drawn anew while something runs; elsewhere that is noise. */
  #tick(isNeeded: boolean): void {
    const isOn = isNeeded && this.#isTui;
    if (isOn === (this.#ticker !== undefined)) return;
    clearInterval(this.#ticker);
    this.#ticks = 0;
    this.#ticker = isOn ? setInterval(() => this.#onTick(), TICK_MS).unref() : undefined;
  }

  #onTick(): void {
    this.#ticks += 1;
    if (this.#ticks % TICKS_PER_LOOK === 1) void this.#look();
    // The footer's ages need not be exact to the second.
    if (this.#widgetShown || this.#ticks % TICKS_PER_LOOK === 1) this.#draw(this.#source.seen());
  }

  /** An execd that does not answer is asked once. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await this.#source.look().catch(() => {});
    this.#isLooking = false;
    if (this.#ticker !== undefined) this.#draw(this.#source.seen());
  }

  #hideWidget(): void {
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

/** The newest of what was said that is said again with one more. */
function keptOf(texts: readonly string[]): string[] {
  let units = 0;
  const isKept = (text: string) => (units += text.length) <= INFORMED_UNITS;
  const newest = texts.slice(1 - INFORMED_MAX).reverse();
  const end = newest.findIndex((text) => !isKept(text));
  return newest.slice(0, end < 0 ? undefined : end).reverse();
}

/**
 * `execd: 2 sessions running · #1 41s npm run dev · #2 3m psql, waits for a line`; undefined where
 * nothing runs. Where the status beside it counts them all (`counted`), they are named alone.
 */
export function statusText(
  seen: SeenRunning[],
  hasAges: boolean,
  counted = 0,
): string | undefined {
  if (seen.length === 0) return undefined;
  const named = seen.slice(0, FOOTER_SESSIONS).map(({ states, ageMs, cwd: _, ...others }) =>
    [labelOf(hasAges ? { ...others, ageMs } : others, FOOTER_CELLS), ...states.slice(0, 1)].join(", "));
  const more = seen.length - named.length;
  const rest = more > 0 ? [`${more} more`] : [];
  const count = seen.length === counted ? [] : [`${countOf(seen.length)} running`];
  return `execd: ${[...count, ...named, ...rest].join(" · ")}`;
}

/** The widget's lines for `sessions`; `isArmed` tells whose end will be told. */
export function widgetLines(
  sessions: SeenRunning[],
  isArmed: (id: number) => boolean,
): string[] {
  const shown = sessions.slice(0, WIDGET_SESSIONS).map((one) => {
    const marks = isArmed(one.id) ? [WAKE_MARK] : [];
    return `  ${[labelOf(one, COMMAND_CELLS), ...one.states, ...marks].join(" · ")}`;
  });
  const more = sessions.length - shown.length;
  return [
    `⚠ execd: ${countOf(sessions.length)} still running`,
    ...shown,
    ...(more > 0 ? [`  … ${more} more`] : []),
    "  /sessions shows them all: follow one, end it, send it a line",
  ];
}
