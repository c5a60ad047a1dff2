/**
 * How the unified-exec tools look: the words of their calls (`$ cmd (yield 2.5s · cwd: ~/x)`,
 * `↻ poll → #2`, `» ^C → #2`), and the views of their results.
 */
import { resolve } from "node:path";
import type { ThemeColor } from "@earendil-works/pi-coding-agent";
import type {
  KillResult, ListResult, SessionInfo, Truncation, WaitForResult, WaitForRow, WaitResult,
} from "../execd/wire-results.ts";
import { leftRunning } from "../pi/left-running.ts";
import { resolveMaxEmptyPollMs } from "../pi/settings.ts";
import { formatSeconds, formatSize } from "../text/figures.ts";
import { expandHome } from "../text/home.ts";
import { WAKE_MARK, forPeople, idWords, titleOf } from "../text/session.ts";
import { isObject } from "../text/values.ts";
import { conditionWords } from "../text/waits.ts";
import { oneLine } from "../text/width.ts";
import { runningFacts, toldOutput } from "./body.ts";
import {
  asides, beginningOf, byteCount, commandSpans, conditionNotes, eofNote, killSpans, labelled,
  pollTitle, signalSpan, target, title,
} from "./calls.ts";
import {
  type Fields, type Unchecked, arrayOf, base64Bytes, fieldsOf, labelOf, numberOf, stringOf,
} from "./fields.ts";
import { type RowContext, type Span, span } from "./row.ts";
import { rowState } from "./state.ts";
import {
  type Entry, type Look, type Outcome, type RowView, LIST_CELLS, SNAKE, clipped, doingFacts, dotted,
  endedLog, endedNotice, entryOf, eventNotices, factsOf, isByCondition, isFailed, muted, notice,
  saying, shownPath, timeFact,
} from "./view.ts";

/** The cells of input that a collapsed row shows. */
const INPUT_CELLS = 200;

/** The most processes that survived a kill or outlived a session that are named. */
const MAX_NAMED = 16;

/** The unified-exec tools. */
export const UNIFIED = {
  exec_command: { call: execCall, view: waitView },
  write_stdin: { call: writeCall, view: waitView },
  wait_for: { call: waitForCall, view: waitForView, hasClock: true },
  kill_session: { call: killCall, view: killView },
  list_sessions: { call: listCall, view: listView },
  set_on_exit: { call: setOnExitCall, view: setOnExitView },
  resize_session: { call: resizeCall, view: resizeView },
} satisfies Record<string, Look>;

/** `$ cmd (yield 2.5s · cwd: ~/other · tty) [wake]` */
function execCall(args: Fields, context: RowContext): Span[] {
  const notes = [
    heldNote(args, false, context),
    ...conditionNotes(args),
    cwdNote(args, context),
    args.tty === true ? "tty" : undefined,
  ];
  const wake = args.on_exit === "wake" ? [span(` ${WAKE_MARK}`, "accent")] : [];
  return [...commandSpans(args.cmd), ...asides(notes), ...wake];
}

/**
 * Where the command runs, as the daemon told, else as the arguments and pi say; undefined where that
 * is pi's own directory.
 */
function cwdNote(args: Fields, context: RowContext): string | undefined {
  const pis = resolve(stringOf(context.cwd) ?? "");
  const asked = resolve(pis, expandHome(clipped(stringOf(args.workdir) ?? "")));
  const cwd = rowState(context).cwd ?? asked;
  return cwd === pis ? undefined : `cwd: ${shownPath(cwd)}`;
}

/** `↻ poll → #2 (yield 5.0s)`, `↻ wait port 5173 → #2` or `» input → #2 (until input)` */
function writeCall(args: Fields, context: RowContext): Span[] {
  const input = inputSpans(args, context);
  const eof = eofNote(args.eof);
  const isPoll = input.length === 0 && eof === undefined;
  const [until, stop] = conditionNotes(args);
  const notes = [input.length > 0 ? eof : undefined, isPoll ? undefined : until, stop];
  const poll = eof ? title("» (eof)") : pollTitle(args);
  const head = input.length > 0 ? [title("» "), ...input] : [poll];
  const wait = labelled("until ", args.yield_until) ?? heldNote(args, isPoll, context);
  return [...head, ...target(" → ", args.session_id), ...asides([...notes, wait])];
}

/** The shortest and the longest wait of execd, and how long one lasts where the call does not say. */
const POLL_MS = { unset: 5_000, least: 5_000 };
const LEAST_MS = 250;
const MOST_MS = 30_000;

/**
 * The wait that holds: as the daemon told, else as its bounds make it. Of what is no poll only a
 * wait that was asked for is told.
 */
function heldNote(args: Fields, isPoll: boolean, context: RowContext): string | undefined {
  const asked = numberOf(args.yield_time_ms);
  if (asked === undefined && !isPoll) return undefined;
  const isOfConditions = args.until !== undefined || args.stop !== undefined;
  const longest = isPoll || isOfConditions ? resolveMaxEmptyPollMs() : MOST_MS;
  const least = isPoll ? POLL_MS.least : LEAST_MS;
  const bounded = Math.min(Math.max(asked ?? POLL_MS.unset, least), longest);
  return yieldWords(rowState(context).heldMs ?? bounded);
}

function yieldWords(ms: number): string {
  return `yield ${formatSeconds(ms)}`;
}

/** The ids as models write them: a list, one of them, or a text that names them. */
function sessionIds(given: unknown): readonly unknown[] {
  if (typeof given === "string") return given.match(/\d+/g) ?? [];
  return typeof given === "number" ? [given] : arrayOf(given);
}

/** `↻ wait port 5173 → #2`, or `↻ wait → #1, #2 (all · stop at /rror/ · 60.0s)` */
function waitForCall(args: Fields, context: RowContext): Span[] {
  const ids = sessionIds(args.session_ids).map(labelOf).filter((id) => id !== undefined);
  const shown = ids.slice(0, MAX_NAMED).map(idWords).join(", ");
  const more = ids.length > MAX_NAMED ? `, and ${ids.length - MAX_NAMED} more` : "";
  // While the arguments stream in, ids may still come.
  const streaming = context.isPartial && !context.argsComplete && !context.executionStarted;
  const sessions = ids.length === 0 ? (streaming ? "…" : "all sessions") : `${shown}${more}`;
  const ms = numberOf(args.timeout_ms);
  const notes = [
    ids.length === 1 ? undefined : labelOf(args.mode)?.replace("_", " "),
    conditionNotes(args)[1],
    ms === undefined ? undefined : formatSeconds(ms),
  ];
  const words = conditionWords(args.until);
  const head = title(words === undefined ? "↻ wait" : `↻ wait ${words}`);
  return [head, muted(" → "), span(sessions, "accent"), ...asides(notes)];
}

function inputSpans({ chars, chars_b64 }: Fields, { expanded }: RowContext): Span[] {
  const base64 = stringOf(chars_b64) ?? "";
  if (base64.trim() !== "") return [title(`(base64, ${byteCount(base64Bytes(base64))})`)];
  if (chars === undefined || chars === null || chars === "") return [];
  if (typeof chars !== "string") return [span("[invalid arg]", "error")];
  const { head, more } = beginningOf(chars);
  const input = inputText(head);
  return [title(expanded ? `${input}${more}` : oneLine(input, INPUT_CELLS))];
}

/** Escapes of a control character in `chars`, after any escaped backslash, and raw ones. */
const KEYS = /\\(\\|e|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\})|[\x00-\x1f\x7f]/g;

/** The keys that people know by these names; other escapes stay as the model wrote them. */
const CARETS = new Map([
  [0x03, "^C"],
  [0x04, "^D"],
  [0x1b, "^["],
]);

const RAW_NAMES = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** Takes the `chars` of a write_stdin call and gives them with control characters one can read. */
function inputText(chars: string): string {
  return chars.replace(KEYS, (found, escape?: string) => {
    if (escape === undefined) return RAW_NAMES.get(found) ?? caret(found.charCodeAt(0));
    if (escape === "\\") return found;
    const code = escape === "e" ? 0x1b : Number.parseInt(escape.replace(/[^0-9a-fA-F]/g, ""), 16);
    return CARETS.get(code) ?? found;
  });
}

function caret(code: number): string {
  return `^${String.fromCharCode(code ^ 0x40)}`;
}

/** `✕ kill #2 SIGTERM` */
function killCall(args: Fields, context: RowContext): Span[] {
  return killSpans(args.session_id, signalSpan(args, context, "SIGTERM"));
}

/** `list_sessions (peek)` */
function listCall({ peek }: Fields): Span[] {
  return [title("list_sessions"), ...asides([peek === true ? "peek" : undefined])];
}

/** `set_on_exit #2 → wake` */
function setOnExitCall(args: Fields): Span[] {
  return setCall("set_on_exit", args, labelOf(args.on_exit) ?? "…");
}

/** `resize_session #2 → 100x40` */
function resizeCall(args: Fields): Span[] {
  const [cols, rows] = [args.cols, args.rows].map((size) => labelOf(size) ?? "…");
  return setCall("resize_session", args, `${cols}x${rows}`);
}

function setCall(tool: string, args: Fields, value: string): Span[] {
  return [title(tool), ...target(" ", args.session_id), span(` → ${value}`, "toolOutput")];
}

/** A wait's output, its notices and `took 4.2s · exit 3 · log: ~/…`. */
function waitView(outcome: Outcome): RowView {
  const { details, text, context, partial, state } = outcome;
  const wait: Unchecked<WaitResult> = details;
  const output = toldOutput(outcome) ?? stringOf(wait.output);
  const isTold = context.isError && output === undefined;
  const told = output ?? belowHeader(text);
  // What people have seen of a wait that was broken off stays, also where the model has not read it.
  const shown = isBrokenOff(details) && told.trim() === "" ? state.live ?? told : told;
  return {
    body: { text: shown, tone: isTold ? "error" : "toolOutput" },
    isFailed: isFailed(details, SNAKE),
    notices: [
      ...truncationNotices(details),
      ...notice(stringOf(wait.warning), "warning"),
      ...endedNotice(details, context.args),
      ...notice(noteOf(wait), "warning"),
      ...notice(stringOf(wait.failure_message), "error"),
      ...eventNotices(details),
      ...(partial ? [] : goesOnNotice(details, outcome)),
    ],
    facts: partial ? runningFacts(outcome, SNAKE) : waitFacts(outcome),
  };
}

/** Whether a wait ended before its time, by a person or by the end of pi. */
function isBrokenOff({ wait_status: why }: Fields): boolean {
  return /^(cancelled|shutting_down)\b/.test(stringOf(why) ?? "");
}

/** By whom a wait was broken off, where that is told: `a message from the user came`. */
function whyBrokenOff({ wait_status: status, wait_reason: reason }: Fields): string | undefined {
  const why = stringOf(reason) ?? /^\w+ \((.*)\)$/.exec(stringOf(status) ?? "")?.[1];
  return why === undefined ? undefined : forPeople(why);
}

/** What a person who has broken a wait off can do about what goes on. */
function goesOnNotice(details: Fields, outcome: Outcome): Span[] {
  const isByMessage = /\bmessage\b/.test(whyBrokenOff(details) ?? "");
  if (isByMessage || !/^cancelled\b/.test(stringOf(details.wait_status) ?? "")) return [];
  return stillRunning([details.session_id], outcome);
}

/** What is said of those of these sessions that Esc has left running, as long as they run. */
function stillRunning(ids: readonly unknown[], { context, state, details }: Outcome): Span[] {
  const running = ids.flatMap((id) => {
    const left = leftRunning(id, state, () => context.invalidate());
    return left === undefined ? [] : [{ id, ...left }];
  });
  const [first] = running;
  if (first === undefined) return [];
  const isOpen = first.takesEsc && (numberOf(details.esc_until_ms) ?? 0) > Date.now();
  const again = isOpen ? " · Esc again within 2 s sends Ctrl-C" : "";
  const named = running.slice(0, MAX_NAMED).map(({ id }) => idWords(id)).join(", ");
  return [running.length === 1
    ? span(`still running${again} · /kill ${labelOf(first.id)} ends it`, "warning")
    : span(`${named} still running${again} · /kill ${labelOf(first.id)} ends that one`, "warning")];
}

/** What else there is to know; why a wait was impossible stands in a line of its own. */
function noteOf({ note, wait }: Unchecked<WaitResult>): string | undefined {
  const said = stringOf(note);
  const isSaid = said === undefined || fieldsOf(wait).outcome === "impossible";
  return isSaid ? undefined : forPeople(said);
}

/** Takes the model's text, where nothing else is left, and gives what stands below its header. */
function belowHeader(text: string): string {
  const header = text.startsWith("[still running]") || text.startsWith("[exited]");
  const rule = header ? text.indexOf("\n---\n") : -1;
  const below = rule < 0 ? text : text.slice(rule + "\n---\n".length);
  return below === "(no output)" ? "" : below;
}

/** Says what part of a call's output is shown, as the daemon says it to the model. */
function truncationNotices(details: Fields): Span[] {
  const { fullOutput } = factsOf(details, SNAKE);
  const omitted = numberOf(details.omitted_bytes) ?? 0;
  const truncation: unknown = details.truncation;
  const isCut = typeof truncation === "object" && truncation !== null;
  return [
    omitted > 0 ? `${formatSize(omitted)} of output between the calls was omitted` : undefined,
    isCut ? shownPart(fieldsOf(truncation)) : undefined,
  ].flatMap((text) => (text === undefined ? [] : [span(`[${text}.${fullOutput}]`, "warning")]));
}

function shownPart(truncation: Unchecked<Truncation>): string {
  const total = numberOf(truncation.totalLines);
  const shown = numberOf(truncation.outputLines);
  const limit = formatSize(numberOf(truncation.maxBytes) ?? 0);
  if (truncation.lastLinePartial === true) return `Showing last ${limit} of final line`;
  if (total === undefined || shown === undefined) return "Output truncated";
  const lines = `Showing lines ${total - shown + 1}-${total} of ${total}`;
  return truncation.truncatedBy === "bytes" ? `${lines} (${limit} limit)` : lines;
}

function waitFacts({ details, context, expanded }: Outcome): (Span | undefined)[] {
  const { id, exit, log } = factsOf(details, SNAKE);
  const seconds = numberOf(details.wall_time_seconds);
  const wallMs = seconds === undefined ? undefined : seconds * 1000;
  if (exit === undefined && details.session_id !== undefined) {
    return [yieldedFact(details, wallMs), id, ...doingFacts(details), log];
  }
  // Of one that somebody else has ended before the call there is no time that it took.
  const isLate = details.ended_ms_ago !== undefined;
  const ms = isLate ? undefined : wallMs ?? numberOf(context.durationMs);
  const isCut = isObject(details.truncation) || (numberOf(details.omitted_bytes) ?? 0) > 0;
  const end = endedLog(details, SNAKE, { isCut, expanded });
  return [ms === undefined ? undefined : timeFact("took", ms), exit, end];
}

/** How long the call waited. Restored rows have no clock, so that only the details count. */
function yieldedFact(wait: Unchecked<WaitResult>, wallMs: number | undefined): Span {
  const ms = numberOf(wait.effective_wait_ms) ?? wallMs ?? numberOf(wait.yield_time_ms);
  const why = whyBrokenOff({ ...wait }) ?? stringOf(wait.wait_status)?.replace("_", " ");
  const early = isBrokenOff({ ...wait }) ? ` (${oneLine(why ?? "", LIST_CELLS)})` : "";
  return timeFact(isByCondition({ ...wait }) ? "waited" : "yielded", ms, early);
}

/** What ended the wait, a line for each session, and the text that the model got when expanded. */
function waitForView(outcome: Outcome): RowView {
  const { details, text, context, partial, expanded } = outcome;
  const { wait, sessions }: Unchecked<WaitForResult> = details;
  if (!Array.isArray(sessions)) return partial ? {} : { body: { text } };
  const rows = sessions.map(fieldsOf);
  const deciding = rows.find(({ session_id: id }) => id === fieldsOf(wait).session_id);
  const report = { wait, listening: deciding?.listening };
  const ms = numberOf(context.durationMs);
  return {
    ...(expanded && { body: { text } }),
    isFailed: rows.some((row) => isFailed(row, SNAKE)),
    list: {
      entries: rows.map((row) => waitForEntry(row, fieldsOf(context.args))),
      nouns: ["session", "sessions"],
      none: "no sessions",
    },
    notices: [
      ...endedNotice(report, context.args),
      ...eventNotices(details),
      ...(details.esc_until_ms === undefined ? []
        : stillRunning(rows.map(({ session_id: id }) => id), outcome)),
    ],
    facts: [ms === undefined ? undefined : timeFact("waited", ms)],
  };
}

function waitForEntry(row: Unchecked<WaitForRow> & Fields, args: Fields): Entry {
  const { session_id: id, name, command } = row;
  const spans = [
    span(titleOf({ id, name, command }, LIST_CELLS), "toolOutput"),
    ...endedNotice(row, args),
    factsOf(row, SNAKE).exit,
    ...doingFacts(row),
    ...notice(stringOf(row.failure_message), "error"),
  ];
  return { spans: dotted(spans), isCut: true };
}

/** What kill_session did, and the last output of the session. */
function killView(outcome: Outcome): RowView {
  const { details, text, context, partial, expanded } = outcome;
  const kill: Unchecked<KillResult> = details;
  if (partial) return { facts: runningFacts(outcome, SNAKE) };
  if (kill.found === false) return notFoundView(outcome);
  const output = toldOutput(outcome) ?? stringOf(kill.final_output);
  const summary = stringOf(kill.summary);
  const done = kill.killed !== false && !context.isError;
  const said = summary === undefined ? undefined : forPeople(summary);
  const isCut = isObject(details.truncation);
  const log = expanded || !done ? factsOf(details, SNAKE).log : undefined;
  return {
    body: { text: output ?? (summary === undefined ? text : "") },
    isFailed: !done,
    notices: [
      ...truncationNotices(details),
      ...arrayOf(kill.survivors).slice(0, MAX_NAMED).map(survivorSpan),
      ...notice(stringOf(kill.failure_message), "error"),
      ...eventNotices(details),
    ],
    facts: [...notice(said, done ? "muted" : "error"), isCut && !expanded ? undefined : log],
  };
}

function survivorSpan(survivor: unknown): Span {
  const { pid, command, reason } = fieldsOf(survivor);
  const why = stringOf(reason);
  const name = oneLine(stringOf(command) ?? "", LIST_CELLS);
  const because = why === undefined ? "" : ` (${oneLine(why, LIST_CELLS)})`;
  return span(`still alive: ${labelOf(pid) ?? "?"} ${name}${because}`, "error");
}

function notFoundView({ details, context }: Outcome): RowView {
  const asked = fieldsOf(context.args).session_id;
  const id = labelOf(details.session_id) ?? labelOf(asked);
  const text = id === undefined ? "no such session" : `no session ${idWords(id)}`;
  return { facts: [span(text, "error")], notices: eventNotices(details), isFailed: true };
}

/** One line for each session. */
function listView({ details, text, partial, expanded }: Outcome): RowView {
  const list: Unchecked<ListResult> = details;
  if (!Array.isArray(list.sessions)) return partial ? {} : { body: { text } };
  const left = arrayOf(list.left).slice(0, MAX_NAMED);
  const entries = [
    ...list.sessions.map((one) => sessionEntry(fieldsOf(one), expanded)),
    ...left.map((one) => leftEntry(fieldsOf(one))),
  ];
  return {
    list: { entries, nouns: ["session", "sessions"], none: "no sessions" },
    notices: eventNotices(details),
  };
}

function sessionEntry(session: Unchecked<SessionInfo>, expanded: boolean): Entry {
  const exit = factsOf(session, SNAKE).exit ?? muted("exited");
  const marks = [
    session.tty === true ? muted("tty") : undefined,
    session.wake_armed === true ? span(WAKE_MARK, "accent") : undefined,
    ...doingFacts(session),
    session.running === false ? exit : undefined,
    ...notice(stringOf(session.failure_message), "error"),
  ];
  return entryOf(session, SNAKE, marks, expanded);
}

function leftEntry(left: Fields): Entry {
  const command = oneLine(stringOf(left.command) ?? "", LIST_CELLS);
  const id = idWords(left.session_id);
  const text = `${id} ended, left pid ${labelOf(left.pid) ?? "?"} ${command}`;
  return { spans: [muted(text)], isCut: true };
}

/** What became of a wake, in words. */
const WAKES: ReadonlyMap<unknown, [string, ThemeColor]> = new Map<unknown, [string, ThemeColor]>([
  ["armed", ["wake armed", "muted"]],
  ["already_armed", ["wake was armed already", "muted"]],
  ["disarmed", ["wake disarmed", "muted"]],
  ["already_none", ["no wake was armed", "muted"]],
  ["too_late", ["too late: the session has exited", "warning"]],
]);

/** What became of the wake, in one line. */
function setOnExitView(outcome: Outcome): RowView {
  const { details, text, context, partial } = outcome;
  if (partial) return {};
  if (details.found === false) return notFoundView(outcome);
  const words = WAKES.get(details.status) ?? [text, context.isError ? "error" : "muted"];
  return { ...saying(...words), notices: eventNotices(details) };
}

/** The size that the terminal has now. */
function resizeView({ details, text, context, partial }: Outcome): RowView {
  if (partial) return {};
  const cols = labelOf(details.cols);
  const rows = labelOf(details.rows);
  const known = cols !== undefined && rows !== undefined;
  const words = known ? `terminal is ${cols}x${rows} now` : text;
  return saying(words, context.isError ? "error" : "muted");
}
