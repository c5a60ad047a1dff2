/** What a result of the unified tools tells besides its own: the ends of other sessions. */
import type { SessionEvent } from "../execd/wire-results.ts";
import type { Ended, OwnEnd } from "../pi/wakes.ts";
import { eventLine, withoutEventLines } from "../text/events.ts";
import { given } from "../text/values.ts";
import type { ToolContext } from "./context.ts";

/** What goes with each request whose reply the model reads: how much of a header, and the events. */
export function asModelsRead({ settings }: ToolContext): { events: true; header: "compact" | "full" } {
  return { events: true, header: settings.header };
}

/** What a result has to tell besides its own. */
export interface Besides {
  /** Takes a text of the reply and gives it without execd's lines of events. */
  without(text: string): string;
  /** A line for each event, each with a line end before it. */
  lines: string;
  /** For `details`: the events, where there are some. */
  details: { events?: SessionEvent[] };
}

/**
 * A result is made of a reply that tells the ends `own` by itself. execd has put the events that the
 * reply carries into its texts; which of them the model is to be told is decided here, since a
 * message may have told one of them, and an earlier result may not have reached the model.
 */
export function besides(
  context: ToolContext,
  callId: string,
  own: OwnEnd[],
  carried: SessionEvent[] | undefined,
): Besides {
  const events = context.wakes.tell(callId, own, carried);
  const nowMs = Date.now();
  return {
    without: (text) => withoutEventLines(text, carried?.length ?? 0),
    lines: events.map((event) => `\n${eventLine(event, nowMs)}`).join(""),
    details: events.length === 0 ? {} : { events },
  };
}

/** What replies tell of a session that has ended. */
type EndFields = Partial<Record<keyof Ended, unknown>>;

/** The end of a session that a reply tells; none where it goes on. */
export function ownEnd(fields: EndFields, woke: boolean): OwnEnd[] {
  const { exit_code, signal, killed_by, command, cwd, session_id, ...others } = fields;
  const { log_path, log_from, far } = others;
  if ((exit_code ?? signal) === undefined) return [];
  const id = Number.isSafeInteger(session_id) ? session_id : undefined;
  const log = { log_path, log_from, far };
  const ended = given({ session_id: id, exit_code, signal, killed_by, command, cwd, ...log }) as Ended;
  return [{ ended, woke }];
}
