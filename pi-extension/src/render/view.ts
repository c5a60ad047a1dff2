/**
 * What a row shows, in one model for the tools of all families: a family reads the fields of its
 * replies and makes a `RowView` of them. Here are the model and the parts of it that are the same
 * everywhere (how a session ended, where its log is, how it stands in a list). Where the parts
 * stand in a row is decided in body.ts, how text is stripped, wrapped and painted in row.ts.
 */
import type { ThemeColor } from "@earendil-works/pi-coding-agent";
import type {
  SessionInfo, StreamReport, StreamSession, WaitResult,
} from "../execd/wire-results.ts";
import { eventWords } from "../text/events.ts";
import { formatSeconds } from "../text/figures.ts";
import { tildify } from "../text/home.ts";
import { endOf, idWords, labelOf as sessionLabel, statesOf } from "../text/session.ts";
import { isObject } from "../text/values.ts";
import {
  type Ended, endedWords, listeningWords, stateWords,
} from "../text/waits.ts";
import { oneLine } from "../text/width.ts";
import { type Fields, arrayOf, fieldsOf, labelOf, numberOf, stringOf } from "./fields.ts";
import { type RowContext, type Span, span } from "./row.ts";
import type { RowState } from "./state.ts";

/** The cells of a command in a list while collapsed, before the line is cut at the width. */
export const LIST_CELLS = 300;

/** The most of a note or a name that is drawn. */
const MAX_NOTE_CHARS = 4096;

/** All that a result or a message shows. Every text may be anybody's: the row strips it. */
export interface RowView {
  /** The first lines of a message; a tool's row has its call there. */
  title?: Span[][];
  body?: Body | undefined;
  list?: List;
  /** Lines of their own below: truncation, notes, failures. */
  notices?: Span[];
  /** The parts of the last line, joined with ` · `; what is undefined is left out. */
  facts?: (Span | undefined)[];
  /** Whether an empty line stands before every notice, as in pi's own rows of bash. */
  isSpaced?: boolean;
  /** Whether what was run has failed: the row is red then, as one of pi's own bash is. */
  isFailed?: boolean | undefined;
}

/** What a command printed, or the text of an error. */
export interface Body {
  /** Blank for nothing. */
  text: string;
  /** `toolOutput` unless said otherwise. */
  tone?: ThemeColor;
  /** Which end shows where not all does; the end unless said otherwise. */
  keep?: "end" | "start";
  /** How many visual lines show; unless said otherwise a few while collapsed, else all. */
  limit?: number | undefined;
}

/** Sessions below each other, a few of them while collapsed. */
export interface List {
  entries: Entry[];
  /** What one and what several entries are called. */
  nouns: [one: string, several: string];
  /** What is said where there are no entries. */
  none: string;
  /** A line below. */
  last?: string | undefined;
}

/** One entry of a list. */
export interface Entry {
  spans: Span[];
  /** A second line, while the row is expanded. */
  below?: Span | undefined;
  /** Whether the entry is one visual line also while the row is expanded. */
  isCut?: boolean;
}

/** How a tool looks. */
export interface Look {
  call: CallText;
  view: ResultView;
  /** Whether the call's own line counts the seconds while it waits. */
  hasClock?: true;
}

/** Gives a call's text for arguments in any state. */
export type CallText = (args: Fields, context: RowContext) => Span[];

/** Gives what is shown of a result. */
export type ResultView = (outcome: Outcome) => RowView;

/** A result as it came, and how its row stands. */
export interface Outcome {
  details: Fields;
  /** The result's text, as the model got it. */
  text: string;
  expanded: boolean;
  /** Still running, and no error. */
  partial: boolean;
  context: RowContext;
  state: RowState;
}

/** How a family spells what all families tell of a session. */
export type Names = Record<keyof typeof SNAKE, string>;

/** The spelling of the unified tools. */
export const SNAKE = {
  id: "session_id",
  exit: "exit_code",
  log: "log_path",
  complete: "log_complete",
  truncated: "log_truncated",
  from: "log_from",
  total: "output_bytes_total",
  age: "elapsed_ms",
} as const satisfies Record<string, keyof WaitResult | keyof SessionInfo>;

/** The spelling of the stream tools. */
export const CAMEL = {
  id: "sessionId",
  exit: "exitCode",
  log: "logPath",
  complete: "logComplete",
  truncated: "logTruncated",
  from: "logFrom",
  total: "outputBytes",
  age: "durationMs",
} as const satisfies Record<keyof typeof SNAKE, keyof StreamReport | keyof StreamSession>;

/**
 * Takes the fields of a reply and how they are spelled, and gives what rows say of its session:
 * `#2`, `exit 0`, `log: ~/x.log (incomplete)` and, for a notice, the log behind a blank. What the reply does not tell is undefined, and empty in a notice.
 */
export function factsOf(fields: Fields, names: Names) {
  const id = labelOf(fields[names.id]);
  const path = logPath(fields, names);
  const isFar = fields.far === true;
  const from = numberOf(fields[names.from]);
  const lack = logLack(fields[names.complete], fields[names.truncated], from, fields[names.total]);
  const tone = lack === "" ? "muted" : "warning";
  return {
    id: id === undefined ? undefined : muted(idWords(id)),
    exit: exitFact(fields, names),
    log: path === undefined ? undefined : span(`${isFar ? "log there" : "log"}: ${path}${lack}`, tone),
    fullOutput: path === undefined ? ""
      : isFar ? ` Full output there: ${path}${lack}`
      : ` Full output: ${path}${lack}${howToRead(path, from)}`,
  };
}

function exitFact(fields: Fields, names: Names): Span | undefined {
  const end = endOf(fields[names.exit], fields.signal);
  return end === undefined ? undefined : span(end, end === "exit 0" ? "muted" : "error");
}

/** Whether the fields of a reply tell of a command that has failed, or could not be started. */
export function isFailed(fields: Fields, names: Names): boolean {
  const end = endOf(fields[names.exit], fields.signal);
  if (end !== undefined) return end !== "exit 0";
  const why = stringOf(fields.failure_message) ?? stringOf(fields.failureMessage);
  return why !== undefined && fields[names.id] === undefined;
}

/**
 * The log of a session that has ended, where people may want it: it failed, the log lacks something,
 * or the row is expanded.
 */
export function endedLog(
  fields: Fields,
  names: Names,
  { isCut, expanded }: { isCut: boolean; expanded: boolean },
): Span | undefined {
  const { log } = factsOf(fields, names);
  if (expanded) return log;
  // A line above names the log where output was cut.
  if (isCut) return undefined;
  return log?.tone === "warning" || isFailed(fields, names) ? log : undefined;
}

function logPath(fields: Fields, names: Names): string | undefined {
  const path = stringOf(fields[names.log]);
  // On another machine `~` would be another directory.
  if (path && fields.far === true) return clipped(path);
  return path ? shownPath(path) : undefined;
}

/**
 * What stands behind the path of a log that lacks something; empty where it lacks nothing. `from` is
 * its first byte where its beginning is gone, `total` how many bytes there were.
 */
export function logLack(
  complete: unknown,
  truncated: unknown,
  from?: unknown,
  total?: unknown,
): string {
  const lack = complete === false ? "incomplete" : truncated === true ? "truncated" : undefined;
  const parts = [keptBytes(numberOf(from) ?? 0, numberOf(total)), lack];
  const said = parts.filter((part) => part !== undefined).join("; ");
  return said === "" ? "" : ` (${said})`;
}

function keptBytes(from: number, total: number | undefined): string | undefined {
  if (from <= 0) return undefined;
  return total === undefined ? `bytes ${from}– kept` : `bytes ${from}–${total} of ${total} kept`;
}

/**
 * The command by which people read what is left of a log; its file has a hole in the place. Where logs
 * lie by default a log is found by its name, elsewhere by its path.
 */
function howToRead(path: string, from: number | undefined): string {
  if (from === undefined || from <= 0) return "";
  const name = /\/pi-execd-\d+\/execd-(\d+-[0-9a-f]{8})\.log$/u.exec(path)?.[1];
  const word = /^[\w@%+=:,./~-]+$/u.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
  return `, execd log ${name ?? word} --from ${from}`;
}

/** The most events that a row tells of. */
const EVENTS_MAX = 32;

/** What a result tells besides its own: what has happened to other sessions, a line for each. */
export function eventNotices(details: Fields): Span[] {
  return arrayOf(details.events).slice(0, EVENTS_MAX).map((one) => {
    const event = fieldsOf(one);
    const exit_code = numberOf(event.exit_code);
    const isGood = exit_code === 0 && event.what === "exited";
    const words = eventWords({
      session_id: numberOf(event.session_id) ?? 0,
      at_ms: 0,
      what: stringOf(event.what) ?? "",
      command: stringOf(event.command) ?? "",
      exit_code,
      signal: stringOf(event.signal),
      killed_by: stringOf(event.killed_by),
      message: stringOf(event.message),
    });
    return isGood ? span(`✓ ${words}`, "success") : span(`✕ ${words}`, "error");
  });
}

function keptIn(session: Fields, names: Names): string {
  return logLack(undefined, undefined, session[names.from], session[names.total]);
}

/** Takes a time in ms, where it is known, and gives `took 4.2s`. */
export function timeFact(what: string, ms: number | undefined, aside = ""): Span {
  return muted(`${what}${ms === undefined ? "" : ` ${formatSeconds(ms)}`}${aside}`);
}

/** Takes a session as a list tells it and what else is said of it, and gives its entry. */
export function entryOf(
  session: Fields,
  names: Names,
  marks: (Span | undefined)[],
  expanded: boolean,
): Entry {
  const cells = expanded ? LIST_CELLS * 10 : LIST_CELLS;
  const path = logPath(session, names);
  const log = session.far === true ? "log there" : "log";
  return {
    spans: dotted([span(describeSession(session, names, cells), "toolOutput"), ...marks]),
    below: path === undefined ? undefined : muted(`   ${log}: ${path}${keptIn(session, names)}`),
  };
}

/** Takes a session as a list tells it and gives `#2 41s npm run dev (~/project)`. */
export function describeSession(session: Fields, names: Names, cells: number): string {
  const { name, command, cwd } = session;
  const ageMs = numberOf(session[names.age]) ?? 0;
  return sessionLabel({ id: session[names.id], name, command, cwd, ageMs }, cells);
}

/** Takes any text and gives a view that says it in one line; a view of nothing for blanks. */
export function saying(text: string, tone: ThemeColor): RowView {
  const words = oneLine(text, LIST_CELLS);
  return { facts: [words === "" ? undefined : span(words, tone)] };
}

/** How the end of a wait is marked: a sign, and a colour. */
const ENDS: Record<Ended["how"], [sign: string, tone: ThemeColor]> = {
  matched: ["✓ ", "success"],
  stopped: ["✕ ", "error"],
  impossible: ["", "warning"],
  deadline: ["", "muted"],
  exited: ["", "muted"],
};

/** Takes the details of a reply and its call's arguments and gives what ended the wait. */
export function endedNotice(details: Fields, args: unknown): Span[] {
  const asked = fieldsOf(args);
  const ended = endedWords(details.wait, asked, details.listening);
  // Who waits for no more than the end sees that there.
  if (ended === undefined || (ended.how === "exited" && !isObject(asked.until))) return [];
  const [sign, tone] = ENDS[ended.how];
  return [span(`${sign}${ended.words}`, tone)];
}

/**
 * Takes the details of a session that goes on and gives what it is doing, but for what the line on
 * the end of its wait says already.
 */
export function doingFacts(details: Fields): Span[] {
  const { outcome, by, port } = fieldsOf(details.wait);
  const listens = arrayOf(details.listening).map(fieldsOf);
  const told = [
    outcome === "impossible" || by === "input" ? stateWords(details) : undefined,
    by === "port" && listens.every((one) => one.port === port)
      ? listeningWords(details.listening) : undefined,
  ];
  return statesOf(details).filter((words) => !told.includes(words)).map(muted);
}

/** Whether a wait ended by itself: by what was waited for, or because that could not come. */
export function isByCondition(details: Fields): boolean {
  return ["matched", "stopped", "impossible"].includes(String(fieldsOf(details.wait).outcome));
}

/** Takes spans and gives those that are there, with ` · ` between them. */
export function dotted(parts: (Span | undefined)[]): Span[] {
  const told = parts.filter((part) => part !== undefined);
  return told.flatMap((part, i) => (i === 0 ? [part] : [muted(" · "), part]));
}

/** Takes text and a colour and gives a notice, cut where it is absurdly long; nothing for none. */
export function notice(text: string | undefined, tone: ThemeColor): Span[] {
  return text === undefined || text.trim() === "" ? [] : [span(clipped(text.trim()), tone)];
}

/** Takes text and gives at most as much of it as a note may have, with `…` where it was cut. */
export function clipped(text: string): string {
  return text.length > MAX_NOTE_CHARS ? `${text.slice(0, MAX_NOTE_CHARS)}…` : text;
}

/** Takes a path and gives it as a row shows it: with `~`, and not absurdly long. */
export function shownPath(path: string): string {
  return tildify(clipped(path));
}

/** Takes text and gives it in the colour of what matters less. */
export function muted(text: string): Span {
  return span(text, "muted");
}
