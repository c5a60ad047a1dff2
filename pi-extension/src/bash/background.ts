/**
 * The background windows of one execd, and what is still to be told of them. This table outlives
 * pi's sessions: /new and the like hand it on, together with the client. Who is told, and when, is
 * for its listener to decide.
 */
import type { Far } from "../execd/far-logs.ts";
import type { WindowExited, WindowPoll } from "../execd/wire-results.ts";
import { given, isObject } from "../text/values.ts";
import { oneLine } from "../text/width.ts";
import { type Scope, passes } from "./scope.ts";
import { type Window, shared } from "./shared.ts";

/** The most of a command that is repeated. */
const COMMAND_CELLS = 200;
/**
 * The most windows that are remembered because they ended before their opening was read. Windows
 * that were never opened here are pushed out by newer ones.
 */
const EARLY_MAX = 64;
/** The most windows that have ended and stay listed: as many as execd keeps. */
const ENDED_MAX = 64;

/** Something to tell of a window. */
export interface WindowReport {
  kind: "exited" | "poll" | "lost";
  window: string;
  name: string;
  command: string;
  exit_code?: number;
  signal?: string;
  /** By whom it was ended, where that is told. */
  killed_by?: string;
  /**
   * The end of the window's output. A message has it in its text alone, at `tail_at`: `[from, to]`.
   */
  tail?: string;
  tail_at?: number[];
  /** Lines and bytes were cut from the tail. */
  truncated?: true;
  log_path?: string;
  /** What the log lacks, as replies tell it. */
  log_complete?: false;
  log_truncated?: true;
  /** The first byte of the output that the log still has, where that is not the first of all. */
  log_from?: number;
}

/** A report that waits to be told. */
export interface Report {
  scope: Scope;
  /** What the model reads. */
  text: string;
  facts: WindowReport;
}

/** Who shows the windows and tells of them at the moment. */
export interface BackgroundListener {
  /** A window has come or gone. */
  onChange(): void;
  /** Takes a report and says whether that was all: else it waits until it is taken. */
  onReport(report: Report): boolean;
}

/** What was told of a window that is not known yet. */
interface Early {
  exited?: WindowExited;
  over?: true;
}

export class Background {
  /** Whether the logs of all sessions are remembered, to be deleted at the end. */
  tracksLogs = false;
  /** Whose windows they were when they were handed on: a session of pi, as scopes name it. */
  leftBy = "";
  readonly #logs = new Set<string>();
  readonly #windows = new Map<string, Window>();
  readonly #early = new Map<string, Early>();
  #reports: Report[] = [];
  #listener: BackgroundListener | undefined;

  /** The windows that run. */
  get windows(): readonly Window[] {
    return this.#running();
  }

  /** How many windows run. */
  get running(): number {
    return this.#running().length;
  }

  /** The logs of all sessions so far, where they are remembered. */
  get logs(): ReadonlySet<string> {
    return this.#logs;
  }

  /** Whether a window runs whose end is waited for, and will be told to who has these filters. */
  isPending(filters: Partial<Scope>): boolean {
    return this.pending(filters).length > 0;
  }

  /**
   * The windows that run, whose end is waited for, and will be told to who has these filters: those
   * of commands that have taken longer than their call.
   */
  pending(filters: Partial<Scope>): Window[] {
    return this.#running().filter(({ scope, told, isAsked }) =>
      !told && !isAsked && passes(scope, filters));
  }

  /** Whether a report waits that passes these filters. */
  hasReports(filters: Partial<Scope>): boolean {
    return this.#reports.some(({ scope }) => passes(scope, filters));
  }

  /** From now on this listener is told; undefined: nobody is. */
  listen(listener: BackgroundListener | undefined): void {
    this.#listener = listener;
  }

  /** Takes a notification of execd that is about no request. */
  onNotification(method: string, params: unknown): void {
    if (!isObject(params)) return;
    const { session_id: id, window, text, log_path: log } = params;
    if (method === "session_started") this.noteLog(log);
    if (method === "session_exited" && Number.isSafeInteger(id)) this.#over(`@${id}`);
    // A transport may print JSON of its own: only what names a window is taken.
    if (typeof window !== "string" || typeof text !== "string") return;
    if (method === "window_exited") this.#exited(params as unknown as WindowExited);
    if (method === "window_poll") this.#polled(params as unknown as WindowPoll);
  }

  /** Remembers a log that is deleted at the end, where logs are deleted at all. */
  noteLog(path: unknown): void {
    if (this.tracksLogs && typeof path === "string") this.#logs.add(path);
  }

  /** A window is listed from now on. Its end may have been read before this. */
  opened(window: Window): void {
    shared().tables.add(this.#windows);
    this.#windows.set(window.window, window);
    this.#forgetOldest();
    const early = this.#early.get(window.window);
    this.#early.delete(window.window);
    if (early?.exited) this.#exited(early.exited);
    if (early?.over) this.#over(window.window);
    this.#listener?.onChange();
  }

  /** A window is polled no more: a check-in that waits is old news. */
  unpolled(id: string): void {
    this.#reports = this.#reports.filter(({ facts }) =>
      facts.window !== id || facts.kind !== "poll");
  }

  /** A window was closed on purpose: there is nothing to tell. */
  closed(id: string): void {
    this.unpolled(id);
    if (this.#windows.delete(id)) this.#listener?.onChange();
  }

  /** The ids of the windows that run. */
  get ids(): string[] {
    return this.#running().map(({ window }) => window);
  }

  /**
   * Nothing runs in this window any more, and execd could not tell so. A window whose end is still
   * to be told waits for that, as an end is always told, unless the window is `gone` from execd
   * too.
   */
  over(id: string, gone: boolean): void {
    if (gone ? this.#windows.has(id) : this.#windows.get(id)?.told) this.#over(id);
  }

  /** All windows are gone with their execd, and their ends were not told. */
  lost(why: string): void {
    const lost = this.#running().filter(({ told }) => !told);
    this.#windows.clear();
    this.#early.clear();
    this.#reports = this.#reports.filter(({ facts }) => facts.kind !== "poll");
    for (const window of lost) {
      const where = window.far === true ? ", on the machine where it ran" : "";
      const log = window.logPath === undefined ? ""
        : `\n\nIts output so far${where}: ${window.logPath}`;
      const text = `Background command was lost: ${window.name} ${window.window}. ${why}\n`
        + `$ ${oneLine(window.command, COMMAND_CELLS)}${log}`;
      this.#report(window, "lost", { ...window, tail: "", text });
    }
    this.#listener?.onChange();
  }

  /** Takes the reports that pass, oldest first. */
  take(filters: Partial<Scope>): Report[] {
    const taken = this.#reports.filter(({ scope }) => passes(scope, filters));
    this.#reports = this.#reports.filter((report) => !taken.includes(report));
    return taken;
  }

  /** Gives back reports that could not be told. A check-in may be old news by now. */
  putBack(reports: Report[]): void {
    const isNews = ({ facts: { kind, window: id } }: Report) => {
      if (kind !== "poll") return true;
      const window = this.#windows.get(id);
      const isNewest = this.#reports.every(({ facts }) => facts.window !== id);
      return window !== undefined && !window.told && isNewest;
    };
    this.#reports = [...reports.filter(isNews), ...this.#reports];
  }

  /** Nothing is left to be told or listed: pi ends. */
  close(): void {
    shared().tables.delete(this.#windows);
    this.#windows.clear();
    this.#early.clear();
    this.#reports = [];
    this.#listener = undefined;
  }

  #exited(note: WindowExited): void {
    const window = this.#windows.get(note.window);
    if (!window) {
      this.#noteEarly(note.window, { exited: note });
      return;
    }
    if (window.told) return;
    this.#windows.set(note.window, { ...window, told: true });
    this.unpolled(note.window);
    // The end is told before the window goes, so that nobody takes the window for lost in between.
    this.#report(window, "exited", note);
    if ((note.still_running ?? []).length === 0) this.#over(note.window);
    else this.#listener?.onChange();
  }

  /** Nothing runs in this window any more. */
  #over(id: string): void {
    const window = this.#windows.get(id);
    if (!window) {
      this.#noteEarly(id, { over: true });
      return;
    }
    if (window.ended) return;
    this.#windows.delete(id);
    if (window.stays && window.told) this.#windows.set(id, { ...window, ended: true });
    this.#forgetOldest();
    this.unpolled(id);
    this.#listener?.onChange();
  }

  #polled(note: WindowPoll): void {
    const window = this.#windows.get(note.window);
    if (!window || window.told) return;
    // Only the newest check-in is worth telling.
    this.unpolled(note.window);
    this.#report(window, "poll", note);
  }

  #noteEarly(id: string, news: Early): void {
    const known = this.#early.get(id);
    this.#early.delete(id);
    this.#early.set(id, { ...known, ...news });
    const [oldest] = this.#early.keys();
    if (this.#early.size > EARLY_MAX && oldest !== undefined) this.#early.delete(oldest);
  }

  /** Forgets the windows that ended first: windows stand in the order of their ends. */
  #forgetOldest(): void {
    const ended = [...this.#windows.values()].filter((one) => one.ended);
    for (const { window } of ended.slice(0, Math.max(0, ended.length - ENDED_MAX))) {
      this.#windows.delete(window);
    }
  }

  #running(): Window[] {
    return [...this.#windows.values()].filter(({ ended }) => !ended);
  }

  #report(window: Window, kind: WindowReport["kind"], note: WindowExited | WindowPoll): void {
    const { scope, name, logPath, far } = window;
    const command = oneLine(window.command, COMMAND_CELLS);
    const { exit_code, signal, killed_by, truncation, log_complete, log_truncated, log_from } =
      note as Partial<WindowExited>;
    // A log that turned out to have nothing, or was moved, is named no more.
    const log = kind === "lost" ? logPath : note.log_path;
    const facts: WindowReport = {
      kind, window: window.window, name, command, tail: note.tail,
      ...given({ exit_code, signal, killed_by, log_path: log }),
      ...(log !== undefined && given({ far: kind === "lost" ? far : (note as Far).far })),
      ...(truncation?.truncated && { truncated: true }),
      ...(log_complete === false && { log_complete }),
      ...(log_truncated === true && { log_truncated }),
      ...given({ log_from }),
    };
    const text = kind === "exited" ? withName(note.text, window, killed_by) : note.text;
    const report = { scope, text, facts };
    this.#reports.push(report);
    if (this.#listener?.onReport(report)) {
      this.#reports = this.#reports.filter((other) => other !== report);
    }
  }
}

/** Persons who end windows, by execd's words for them. */
const PERSONS: readonly string[] = ["the user", "execd kill"];

/**
 * The text of an end, with the name of its window behind the summary: one message may tell of
 * several; and with the person who has ended it, where one has.
 */
function withName(text: string, { window, name, command }: Window, by: string | undefined): string {
  const [summary = "", ...rest] = text.split("\n");
  const person = by !== undefined && PERSONS.includes(by) ? [`ended by ${by}`] : [];
  const named = [`window: ${name} ${window}`, `$ ${oneLine(command, COMMAND_CELLS)}`, ...person];
  return [summary, ...named, ...rest].join("\n");
}
