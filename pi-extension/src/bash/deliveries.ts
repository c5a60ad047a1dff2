/**
 * Telling the model what became of its background windows. Reports wait in the table of windows
 * until pi has taken them.
 */
import { messageOf as whyOf } from "../text/values.ts";
import { Telling } from "../pi/telling.ts";
import type { Background, Report, WindowReport } from "./background.ts";
import type { Scope } from "./scope.ts";

/** Messages about windows that have ended, and about those that go on. */
export const COMPLETED_MESSAGE_TYPE = "bash-window-completed";
export const POLL_MESSAGE_TYPE = "bash-window-poll";

/** The `details` of both messages, for their renderer. */
export interface ReportDetails {
  windows: WindowReport[];
}

/** What deliveries need of the instance. */
export interface DeliveryEvents {
  /** Gives a message to pi; throws where that takes none. */
  send(customType: string, content: string, details: ReportDetails, triggerTurn: boolean): void;
  /** Tells people that a message could not be given to pi. */
  onLost(message: string): void;
}

export class Deliveries extends Telling {
  override readonly types = [COMPLETED_MESSAGE_TYPE, POLL_MESSAGE_TYPE];
  readonly #events: DeliveryEvents;
  readonly #background: () => Background;
  readonly #filters: () => Partial<Scope>;

  /** `filters`: whose reports are told at the moment. */
  constructor(
    events: DeliveryEvents,
    background: () => Background,
    filters: () => Partial<Scope>,
  ) {
    super();
    this.#events = events;
    this.#background = background;
    this.#filters = filters;
  }

  override get isPending(): boolean {
    return this.hasNews || this.#background().isPending(this.#filters());
  }

  protected override get hasNews(): boolean {
    return this.#background().hasReports(this.#filters());
  }

  /** A report waits. */
  reported(): void {
    this.hasCome();
  }

  protected override tell(triggerTurn: boolean): boolean {
    const reports = this.#background().take(this.#filters());
    try {
      const { content, windows } = messageOf(reports);
      const polls = windows.every(({ kind }) => kind === "poll");
      const type = polls ? POLL_MESSAGE_TYPE : COMPLETED_MESSAGE_TYPE;
      this.#events.send(type, content, { windows }, triggerTurn);
      return true;
    } catch (error) {
      this.#background().putBack(reports);
      this.#events.onLost(`the model could not be told yet of ${named(reports)}: `
        + whyOf(error));
      return false;
    }
  }
}

/** The text that the model reads, and what is drawn: the tails stand in the text alone. */
function messageOf(reports: Report[]): { content: string; windows: WindowReport[] } {
  let content = "";
  const windows = reports.map(({ text, facts }) => {
    if (content !== "") content += "\n\n";
    const { tail = "", ...others } = facts;
    const within = text.lastIndexOf(tail);
    const from = content.length + within;
    content += text;
    if (within < 0) return facts;
    return { ...others, tail_at: [from, from + tail.length] };
  });
  return { content, windows };
}

function named(reports: Report[]): string {
  return reports.map(({ facts }) => facts.window).join(", ");
}
