/**
 * What the bash family has of its own in one session of pi: its settings, its background windows,
 * and who is told of them. Which texts its tools give is said elsewhere.
 */
import type { Client } from "../execd/client.ts";
import type { SeenRunning } from "../execd/sessions.ts";
import type { SessionInfo } from "../execd/wire-results.ts";
import type { Beginning } from "../pi/handover.ts";
import type { Awaited } from "../pi/hold.ts";
import type { Host, HostContext } from "../pi/host.ts";
import type { Inbox, Letter, Source } from "../pi/inbox.ts";
import type { Ui } from "../pi/ui.ts";
import { oneLine } from "../text/width.ts";
import { Background, type BackgroundListener, type Report } from "./background.ts";
import { type ReadConfig, type TmuxBashConfig, readConfig } from "./config.ts";
import { deleteLogs, logDirFlags, preserveFlags } from "./logs.ts";
import { COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE, named, reportMessage } from "./message.ts";
import { type Scope, filtersOf, noteFork, passes, scopeOf } from "./scope.ts";
import { execds, shared } from "./shared.ts";
import { backgroundStatus } from "./status.ts";

const NAME_CELLS = 60;

/** What windows need of the session of pi. */
interface WindowsContext {
  readonly host: Host;
  readonly ui: Ui;
  readonly execd: Client;
  readonly inbox: Inbox;
}

export class Windows implements BackgroundListener, Source {
  readonly types = [COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE];
  readonly #context: WindowsContext;
  readonly #foreground = new Map<AbortController, Promise<unknown>>();
  #background = new Background();
  /** What pi has refused, and people were told so. */
  readonly #refused = new WeakSet<Report>();
  #read: ReadConfig | undefined;
  #scope: Scope = scopeOf({});
  readonly #status = new Map<string, string | undefined>();
  readonly #execdName = () => this.execd.name;

  constructor(context: WindowsContext) {
    this.#context = context;
    context.inbox.add(this);
  }

  /** The settings that hold at the moment. */
  get config(): TmuxBashConfig {
    this.#read ??= readConfig();
    return this.#read.config;
  }

  get host(): Host {
    return this.#context.host;
  }

  get execd(): Client {
    return this.#context.execd;
  }

  get background(): Background {
    return this.#background;
  }

  /** The scope of what is started now. */
  get scope(): Scope {
    return this.#scope;
  }

  /** Which windows are seen now. */
  get filters(): Partial<Scope> {
    return filtersOf(this.#scope, this.config.tmuxWindowScope);
  }

  /**
   * Reads the settings, and says what is to be said about them: once, and what is wrong again at
   * each /reload.
   */
  readSettings(reason: string): void {
    this.#read = readConfig();
    const { told } = shared();
    for (const { type, text } of this.#read.complaints) {
      if (told.has(text) && (type === "info" || reason !== "reload")) continue;
      told.add(text);
      this.#say(text, type);
    }
  }

  /** pi's session begins; `kept` is what the session before it has handed on. */
  open({ reason }: Beginning, ctx: HostContext, kept: unknown): void {
    // What is handed on was perhaps made by another copy of this module: pi loads it anew at
    // /reload.
    const background = kept as Background | undefined;
    if (background) this.#background = background;
    const session = ctx.sessionManager?.getSessionId?.() ?? "";
    if (background && reason === "fork") noteFork(session, background.leftBy);
    this.#scope = scopeOf(ctx);
    this.#trackLogs();
    this.#background.listen(this);
    execds().add(this.#execdName);
    this.onChange();
  }

  /** pi's session ends, and what runs in the foreground with it; resolves when that is gone. */
  async close(): Promise<void> {
    execds().delete(this.#execdName);
    this.#showStatus(0);
    this.#background.listen(undefined);
    for (const controller of this.#foreground.keys()) controller.abort();
    await Promise.allSettled(this.#foreground.values());
  }

  get isPending(): boolean {
    return this.hasNews || this.#background.isPending(this.filters);
  }

  get hasNews(): boolean {
    return this.#background.hasReports(this.filters);
  }

  take(): Letter {
    const background = this.#background;
    const reports = background.take(this.filters);
    return {
      ...reportMessage(reports),
      putBack: () => background.putBack(reports),
      refused: (why) => {
        background.putBack(reports);
        const news = reports.filter((report) => !this.#refused.has(report));
        if (news.length === 0) return;
        for (const report of news) this.#refused.add(report);
        this.#say(`the model could not be told yet of ${named(news)}: ${why}`, "warning");
      },
    };
  }

  /** Whether something is to be told to any session of pi. */
  get hasReports(): boolean {
    return this.#background.hasReports({});
  }

  /** Gives the windows for the next session of pi; this one has none then. */
  handOn(): Background {
    const background = this.#background;
    background.leftBy = this.#scope.piSession;
    this.#background = new Background();
    return background;
  }

  /** pi ends, after execd has: nothing is left to tell. */
  end(): void {
    deleteLogs(this.#background.logs);
    this.#background.close();
  }

  onNotification(method: string, params: unknown): void {
    this.#trackLogs();
    this.#background.onNotification(method, params);
  }

  /** A reply of execd may name a log. */
  onReply(result: Record<string, unknown>): void {
    this.#trackLogs();
    this.#background.noteLog(result.log_path ?? result.logPath);
  }

  /**
   * Logs are deleted at the end where that is asked for, but not those of another machine: what has
   * the same path on this one is another file.
   */
  #trackLogs(): void {
    this.#background.tracksLogs = !this.config.preserveOutputFiles && !this.execd.isRemote;
  }

  /** execd is gone, with all windows. */
  lost(why: string): void {
    this.#background.lost(why);
  }

  /**
   * Notes which windows run; the function that it gives takes execd's list of sessions as of then.
   */
  mend(): (listed: ReadonlyMap<number, SessionInfo>) => void {
    const background = this.#background;
    const known = background.ids;
    return (listed) => {
      for (const id of known) {
        const row = listed.get(Number(id.slice(1)));
        if (!row?.running) background.over(id, row === undefined);
      }
    };
  }

  seen(nowMs: number): SeenRunning[] {
    return this.#background.windows.map(({ window, name, command, startedAtMs }) => {
      const id = Number(window.slice(1));
      return { id, name, command, ageMs: nowMs - startedAtMs, states: [] };
    });
  }

  /** The windows whose ends are waited for. */
  awaited(): Awaited[] {
    return this.#background.pending(this.filters)
      .map(({ window, command }) => ({ id: Number(window.slice(1)), command }));
  }

  get running(): number {
    return this.#background.running;
  }

  /** Runs a call that ends when `signal` aborts, or pi's session ends. */
  async inForeground<T>(
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const either = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal;
    const running = call(either);
    this.#foreground.set(controller, running);
    try {
      return await running;
    } finally {
      this.#foreground.delete(controller);
    }
  }

  /** The flags that execd is started with. */
  flags(remote: boolean): string[] {
    const { outputDir, preserveOutputFiles } = this.config;
    return [...logDirFlags(outputDir, remote), ...preserveFlags(preserveOutputFiles)];
  }

  onChange(): void {
    const { running } = this.#background;
    this.#context.ui.refresh(running);
    this.#showStatus(running);
    this.#context.inbox.changed();
  }

  #showStatus(running: number): void {
    for (const [key, value] of backgroundStatus(running)) {
      if (value === this.#status.get(key)) continue;
      this.#status.set(key, value);
      this.#context.ui.status(key, value);
    }
  }

  onReport(report: Report): boolean {
    const { facts } = report;
    if (!passes(report.scope, this.filters)) {
      // The window's own session is told when it comes back; the person who sits here may want to
      // know now.
      if (facts.kind !== "poll") this.#say(awayText(report), "info");
      return facts.kind === "poll";
    }
    if (facts.kind === "poll" && this.config.pollDelivery === "display") {
      this.#show(report);
      return true;
    }
    this.#context.inbox.hasCome();
    return false;
  }

  #say(message: string, type: "info" | "warning" | "error"): void {
    this.#context.ui.say(message, type);
  }

  /** Shows a report to people only: an entry of the session that no model reads. */
  #show({ text, facts }: Report): void {
    const { appendEntry, registerEntryRenderer } = this.host;
    try {
      if (!appendEntry || !registerEntryRenderer) throw new Error("this host draws no entries");
      appendEntry(POLL_MESSAGE_TYPE, { windows: [facts] });
    } catch {
      this.#say(text, "info");
    }
  }
}

function awayText({ facts }: Report): string {
  const name = oneLine(facts.name, NAME_CELLS);
  const how = facts.kind === "lost" ? "is lost"
    : facts.signal === undefined ? `ended with exit code ${facts.exit_code ?? "?"}`
    : `ended by ${oneLine(facts.signal, NAME_CELLS)}`;
  return `${name} ${facts.window} of another session ${how}; that session will be told`;
}
