/** What has happened to sessions, as lines for models and words for people. */
import { endOf, titleOf } from "./session.ts";
import { oneLine } from "./width.ts";

const COMMAND_CELLS = 80;
const MESSAGE_CELLS = 240;
/** By whom sessions are ended that run when pi itself ends. */
export const PI_QUIT = "pi quit";
/** How lines of events begin, ours and those in execd's texts. */
const LINE_BEGINS = "event: session ";

/** What is read of an event of execd. */
export interface Happening {
  session_id: number;
  at_ms: number;
  what: string;
  command: string;
  exit_code?: number | undefined;
  signal?: string | undefined;
  killed_by?: string | undefined;
  message?: string | undefined;
}

/** Takes an event and gives it as a line for models, in execd's words. */
export function eventLine(event: Happening, nowMs: number): string {
  const session = `session ${event.session_id} (${oneLine(event.command, COMMAND_CELLS)})`;
  return `event: ${session} ${whatHappened(event)}, ${age(nowMs - event.at_ms)}`;
}

/** An event for people: `#3 npm test · exit 1`, `#4 make · ended by you · signal SIGTERM` */
export function eventWords(event: Happening): string {
  const title = titleOf({ id: event.session_id, command: event.command }, COMMAND_CELLS);
  return [title, ...partsOf(event)].join(" · ");
}

function partsOf({ what, killed_by, message, exit_code, signal }: Happening): string[] {
  const by = killed_by === undefined ? undefined : oneLine(killed_by, MESSAGE_CELLS);
  // Who reads this is the user.
  const who = by?.replace(/^the user: (\/\w+)$/, "you ($1)").replace(/^the user\b/, "you");
  if (what === "evicted") return ["evicted: a new session needed its place"];
  if (what === "killed") return [who === undefined ? "is being ended" : `is being ended by ${who}`];
  if (what === "log_trouble") return [oneLine(message ?? "", MESSAGE_CELLS)];
  if (by === PI_QUIT) return ["ended when pi quit"];
  const end = endOf(exit_code, signal);
  if (who === undefined) return [end ?? "ended"];
  if (by === "signal from outside") return [end ?? "ended", by];
  return [`ended by ${who}`, ...(end === undefined ? [] : [end])];
}

function whatHappened(event: Happening): string {
  const by = event.killed_by === undefined ? undefined : oneLine(event.killed_by, MESSAGE_CELLS);
  if (event.what === "evicted") return "was evicted";
  if (event.what === "killed") return `is being killed (${by ?? ""})`;
  if (event.what === "log_trouble") return oneLine(event.message ?? "", MESSAGE_CELLS);
  if (by === PI_QUIT) return "ended when pi quit";
  const end = endWords(event);
  if (by === undefined) return end ?? "ended";
  if (by === "signal from outside") return `${end ?? "ended"} (${by})`;
  return `was killed (${by})${end === undefined ? "" : `, ${end}`}`;
}

function endWords({ exit_code, signal }: Happening): string | undefined {
  if (exit_code !== undefined) return `exited ${exit_code}`;
  return signal === undefined ? undefined : `ended by ${oneLine(signal, COMMAND_CELLS)}`;
}

function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
}

/** Takes a text of execd with the lines of so many events in it, and gives it without these. */
export function withoutEventLines(text: string, events: number): string {
  let left = events;
  const lines = text.split("\n").filter((line) => {
    const isEvent = left > 0 && line.startsWith(LINE_BEGINS);
    if (isEvent) left -= 1;
    return !isEvent;
  });
  return lines.join("\n");
}
