/**
 * What a conversation was not told when it was left, in the file of the conversation: a later pi
 * that goes on with it (`pi --continue`, /resume) tells it. Nothing is taken out of the file when it
 * is told: what stands in a later result was told, whatever became of that pi.
 */
import type { SessionEvent } from "../execd/wire-results.ts";
import { isObject } from "../text/values.ts";
import type { Host, HostContext } from "./host.ts";

/** The type of the entries; pi shows them to no model. */
const ENTRY_TYPE = "execd-untold";
/** The most events that one entry keeps: the last ones, as many as a book of a session holds. */
const EVENTS_MAX = 1_024;

/** Writes what was not told into the conversation that is left now, where it does not stand there. */
export function keepUntold(host: Host, ctx: HostContext, events: SessionEvent[]): void {
  if (events.length === 0 || typeof host.appendEntry !== "function") return;
  const names = (some: SessionEvent[]) => some.map(nameOf).join("\n");
  if (names(keptUntold(ctx)) === names(events)) return;
  host.appendEntry(ENTRY_TYPE, { events: events.slice(-EVENTS_MAX) });
}

/** What the conversation was not told when it was last left, and no result has told since. */
export function keptUntold(ctx: HostContext): SessionEvent[] {
  let untold: SessionEvent[] = [];
  for (const entry of ctx.sessionManager?.getEntries?.() ?? []) {
    if (entry.type === "custom" && entry.customType === ENTRY_TYPE) {
      untold = eventsIn(entry.data);
    } else if (entry.type === "message" && entry.message.role === "toolResult") {
      if (untold.length === 0 || entry.message.isError) continue;
      const told = new Set(eventsIn(entry.message.details).map(nameOf));
      untold = untold.filter((event) => !told.has(nameOf(event)));
    }
  }
  return untold;
}

/** Takes events from several places and gives each once. */
export function withoutDoubles(events: SessionEvent[]): SessionEvent[] {
  return [...new Map(events.map((event) => [nameOf(event), event])).values()];
}

function eventsIn(data: unknown): SessionEvent[] {
  const events = isObject(data) && Array.isArray(data.events) ? data.events : [];
  return events.filter((one): one is SessionEvent =>
    isObject(one) && Number.isSafeInteger(one.session_id) && typeof one.at_ms === "number"
    && typeof one.what === "string" && typeof one.command === "string");
}

/** Numbers of events are those of one execd: an event goes by what it says. */
function nameOf({ session_id, what, at_ms, message = "" }: SessionEvent): string {
  return `${session_id} ${what} ${at_ms} ${message}`;
}
