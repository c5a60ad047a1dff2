/**
 * Telling the model what became of its background windows: one message that begins a turn, when pi
 * is idle or when a run has ended.
 *
 * Nothing is given to pi during a run: it would keep it for the run's end just the same, but drop
 * it when the user presses Esc. Reports wait in the table of windows until pi has taken them.
 */
import type { HoldMode } from "../hold.ts";
import type { Background, Report, WindowReport } from "./background.ts";
import type { Scope } from "./scope.ts";

/** Windows that end within this time of each other are told in one message. */
export const GATHER_MS = 250;

/** Messages about windows that have ended, and about those that go on. */
export const COMPLETED_MESSAGE_TYPE = "bash-window-completed";
export const POLL_MESSAGE_TYPE = "bash-window-poll";

/** The `details` of both messages, for their renderer. */
export interface ReportDetails {
  windows: WindowReport[];
}

/** How a message is given to pi. */
export interface Sending {
  /** It begins a turn of its own. Otherwise the model reads it with the next prompt. */
  triggerTurn: boolean;
}

/** What deliveries need of the instance. */
export interface DeliveryEvents {
  /** Gives a message to pi; throws where that takes none. */
  send(customType: string, content: string, details: ReportDetails, how: Sending): void;
  /** Tells people that a message could not be given to pi. */
  onLost(message: string): void;
}

export class Deliveries {
  readonly #events: DeliveryEvents;
  readonly #background: () => Background;
  readonly #filters: () => Partial<Scope>;
  #isRunning = false;
  #wasStopped = false;
  #closed = false;
  #gathering: NodeJS.Timeout | undefined;
  #holders: (() => void)[] = [];

  /** `filters`: whose reports are told at the moment. */
  constructor(
    events: DeliveryEvents,
    background: () => Background,
    filters: () => Partial<Scope>,
  ) {
    this.#events = events;
    this.#background = background;
    this.#filters = filters;
  }

  /** Whether something is to be told, or will be. */
  get isPending(): boolean {
    const filters = this.#filters();
    return this.#background().hasReports(filters) || this.#background().isPending(filters);
  }

  /** A report waits: it is told soon, with others that come at the same time. */
  reported(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      // It may have been told, or taken back, in the meantime.
      if (!this.#background().hasReports(this.#filters())) return;
      if (this.#holders.length > 0) for (const done of this.#holders.splice(0)) done();
      else if (!this.#isRunning) this.#flush({ triggerTurn: true });
    }, GATHER_MS).unref();
  }

  onAgentStart(): void {
    this.#isRunning = true;
    this.#wasStopped = false;
  }

  /**
   * A run ends; gives whether it goes on with something that was told now. Whoever stopped it does
   * not want it to go on by itself.
   */
  onAgentEnd(event: HoldMode): boolean {
    const last = event.messages?.findLast(({ role }) => role === "assistant");
    this.#wasStopped = last?.stopReason === "error" || last?.stopReason === "aborted";
    return !this.#wasStopped && this.#flush({ triggerTurn: true });
  }

  onSettled(): void {
    this.#isRunning = false;
    this.#flush({ triggerTurn: !this.#wasStopped });
  }

  /** Resolves after a report was given to pi, when none will come any more, or at `over`. */
  async hold(over: AbortSignal): Promise<void> {
    if (!this.isPending || over.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        over.removeEventListener("abort", done);
        this.#holders = this.#holders.filter((other) => other !== done);
        resolve();
      };
      over.addEventListener("abort", done, { once: true });
      this.#holders.push(done);
      if (this.#background().hasReports(this.#filters())) this.reported();
    });
    if (!over.aborted) this.#flush({ triggerTurn: true });
  }

  /** A window has come or gone: nobody waits for what cannot come any more. */
  changed(): void {
    if (!this.isPending) for (const done of this.#holders.splice(0)) done();
  }

  /** Tells again after close(). */
  open(): void {
    this.#closed = false;
    if (this.#background().hasReports(this.#filters())) this.reported();
  }

  /** pi's session ends: what was not told stays in the table. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#isRunning = false;
    this.#wasStopped = false;
    for (const done of this.#holders.splice(0)) done();
  }

  /** Gives pi all that is to be told at the moment, and says whether there was something. */
  #flush(how: Sending): boolean {
    const reports = this.#closed ? [] : this.#background().take(this.#filters());
    if (reports.length === 0) return false;
    try {
      const windows = reports.map(({ facts }) => facts);
      const polls = windows.every(({ kind }) => kind === "poll");
      const type = polls ? POLL_MESSAGE_TYPE : COMPLETED_MESSAGE_TYPE;
      this.#events.send(type, contentOf(reports), { windows }, how);
      return true;
    } catch (error) {
      this.#background().putBack(reports);
      const why = error instanceof Error ? error.message : String(error);
      this.#events.onLost(`the model could not be told yet of ${named(reports)}: ${why}`);
      return false;
    }
  }
}

function contentOf(reports: Report[]): string {
  return reports.map(({ text }) => text).join("\n\n");
}

function named(reports: Report[]): string {
  return reports.map(({ facts }) => facts.window).join(", ");
}
