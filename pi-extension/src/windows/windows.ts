/** The bash surface's side of one instance: its settings, its windows, and who is told of them. */
import type { Host, HostContext } from "../host.ts";
import { oneLine } from "../render/safe.ts";
import { sending } from "../telling.ts";
import { BASH_WORDS } from "../tools/words.ts";
import type { Ui } from "../ui.ts";
import { Background, type BackgroundListener, type Report } from "./background.ts";
import { type ReadConfig, type TmuxBashConfig, readConfig } from "./config.ts";
import { Deliveries, POLL_MESSAGE_TYPE } from "./deliveries.ts";
import { logDirFlags, preserveFlags } from "./logs.ts";
import { type Scope, filtersOf, passes, scopeOf } from "./scope.ts";
import { shared } from "./shared.ts";
import { backgroundStatus } from "./status.ts";

const NAME_CELLS = 60;

export class Windows implements BackgroundListener {
  readonly deliveries: Deliveries;
  readonly #host: Host;
  readonly #ui: Ui;
  readonly #foreground = new Map<AbortController, Promise<unknown>>();
  #background = new Background();
  #read: ReadConfig | undefined;
  #scope: Scope = scopeOf({});
  readonly #status = new Map<string, string | undefined>();

  constructor(host: Host, ui: Ui) {
    this.#host = host;
    this.#ui = ui;
    this.deliveries = new Deliveries(
      {
        send: (customType, content, details, triggerTurn) => {
          if (!host.sendMessage) throw new Error("this host takes no messages");
          const message = { customType, content, display: true, details };
          host.sendMessage(message, sending(triggerTurn));
        },
        onLost: (message) => this.#say(message, "warning"),
      },
      () => this.#background,
      () => this.filters,
    );
  }

  /** What holds at the moment. */
  get config(): TmuxBashConfig {
    this.#read ??= readConfig();
    return this.#read.config;
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
      // Without a user interface stderr is where people look.
      if (this.#ui.isSilent && type !== "info") console.error(`pi-execd: ${text}`);
    }
  }

  /** pi's session begins; `background` is what the one before it has left. */
  open(ctx: HostContext, background: Background | undefined): void {
    if (background) this.#background = background;
    this.#scope = scopeOf(ctx);
    this.#background.tracksLogs = !this.config.preserveOutputFiles;
    this.#background.listen(this);
    this.deliveries.open();
    this.onChange();
  }

  /** pi's session ends, and what runs in the foreground with it; resolves when that is gone. */
  async close(): Promise<void> {
    this.deliveries.close();
    this.#showStatus(0);
    this.#background.listen(undefined);
    for (const controller of this.#foreground.keys()) controller.abort();
    await Promise.allSettled(this.#foreground.values());
  }

  /** Leaves the windows to the next session; this instance has none then. */
  handOn(): Background {
    const background = this.#background;
    this.#background = new Background();
    return background;
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
    this.#showStatus(this.#background.running);
    this.deliveries.changed();
  }

  #showStatus(running: number): void {
    for (const [key, value] of backgroundStatus(running)) {
      if (value === this.#status.get(key)) continue;
      this.#status.set(key, value);
      this.#ui.status(key, value);
    }
  }

  onReport(report: Report): boolean {
    const { facts } = report;
    if (!passes(report.scope, this.filters)) {
      // Its own session is told when it comes back; whoever sits here may want to know now.
      if (facts.kind !== "poll") this.#say(awayText(report), "info");
      return facts.kind === "poll";
    }
    if (facts.kind === "poll" && this.config.pollDelivery === "display") {
      this.#show(report);
      return true;
    }
    this.deliveries.reported();
    return false;
  }

  #say(message: string, type: "info" | "warning" | "error"): void {
    this.#ui.say(BASH_WORDS.speaker, message, type);
  }

  /** Shows a report to people only: an entry of the session that no model reads. */
  #show({ text, facts }: Report): void {
    const { appendEntry, registerEntryRenderer } = this.#host;
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
