/**
 * How the results of the six unified-exec tools look. Details may be the daemon's, those of an
 * older version, or `{}` after a thrown error: every field is looked at before it is used.
 */
import type { ThemeColor } from "@earendil-works/pi-coding-agent";
import type { KillResult, ListResult, SessionInfo, Truncation, WaitResult } from "../wire-results.ts";
import type { Body } from "./body.ts";
import { bodyBlocks, logLack, notice, shownPath } from "./body.ts";
import type { Fields } from "./fields.ts";
import { arrayOf, fieldsOf, labelOf, numberOf, stringOf } from "./fields.ts";
import type { Drawing, Unchecked } from "./result.ts";
import {
  LIST_CELLS, elapsedPart, line, listed, muted, oneLineBlocks, result, toldOutput,
} from "./result.ts";
import type { Block, RenderResult, Span } from "./row.ts";
import { span } from "./row.ts";
import { formatAge, formatSeconds, formatSize, oneLine } from "./safe.ts";

/** The most processes that survived a kill or outlived a session that are named. */
const MAX_NAMED = 16;

/** Draws a wait's output, its notices and `took 4.2s · exit_code=0 · log: ~/…`. */
export const renderWaitResult: RenderResult = result(waitBlocks);

/** Draws what kill_session did and the last output of the session. */
export const renderKillResult: RenderResult = result(killBlocks);

/** Draws one line for each session. */
export const renderListResult: RenderResult = result(listBlocks);

/** Draws in one line what became of the wake. */
export const renderSetOnExitResult: RenderResult = result(setOnExitBlocks);

/** Draws the size that the terminal has now. */
export const renderResizeResult: RenderResult = result(resizeBlocks);

function waitBlocks(drawing: Drawing): Block[] {
  const { details, context, expanded } = drawing;
  const body: Body = {
    output: waitOutput(drawing),
    outputTone: isToldError(drawing) ? "error" : "toolOutput",
    notices: waitNotices(details),
    status: drawing.partial ? runningStatus(drawing) : waitStatus(drawing),
  };
  return bodyBlocks(body, expanded, context);
}

/** An error whose text is not output. */
function isToldError(drawing: Drawing): boolean {
  const { context, details } = drawing;
  return context.isError && details.output === undefined && toldOutput(drawing) === undefined;
}

/** The output alone; where only the model's text is left, what stands below its header. */
function waitOutput(drawing: Drawing): string {
  const { details, text } = drawing;
  const wait: Unchecked<WaitResult> = details;
  const output = toldOutput(drawing) ?? stringOf(wait.output);
  if (output !== undefined) return output;
  const header = text.startsWith("[still running]") || text.startsWith("[exited]");
  const rule = header ? text.indexOf("\n---\n") : -1;
  const below = rule < 0 ? text : text.slice(rule + "\n---\n".length);
  return below === "(no output)" ? "" : below;
}

function waitNotices(details: Fields): Span[] {
  const wait: Unchecked<WaitResult> = details;
  return [
    ...truncationNotices(details),
    ...notice(stringOf(wait.warning), "warning"),
    ...notice(stringOf(wait.note), "warning"),
    ...notice(stringOf(wait.failure_message), "error"),
  ];
}

/** Says what part of a call's output is shown, as the daemon says it to the model. */
function truncationNotices(details: Fields): Span[] {
  const log = logPath(details);
  const full = log === undefined ? "" : ` Full output: ${log}${lackOf(details)}`;
  const notices: Span[] = [];
  const omitted = numberOf(details.omitted_bytes) ?? 0;
  if (omitted > 0) {
    const text = `${formatSize(omitted)} of output between the calls was omitted`;
    notices.push(span(`[${text}.${full}]`, "warning"));
  }
  const truncation: unknown = details.truncation;
  if (typeof truncation === "object" && truncation !== null) {
    notices.push(span(`[${shownPart(fieldsOf(truncation))}.${full}]`, "warning"));
  }
  return notices;
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

function runningStatus(drawing: Drawing): (Span | undefined)[] {
  const { details } = drawing;
  return [elapsedPart(drawing), sessionPart(details), logPart(details)];
}

function waitStatus(drawing: Drawing): (Span | undefined)[] {
  const { details } = drawing;
  const exit = exitPart(details);
  const running = exit === undefined && details.session_id !== undefined;
  const time = running ? yieldedPart(details) : tookPart(drawing);
  return [time, running ? sessionPart(details) : exit, logPart(details)];
}

/** How long the call waited. Restored rows have no clock, so that only the details count. */
function yieldedPart(details: Fields): Span {
  const wait: Unchecked<WaitResult> = details;
  const ms = numberOf(wait.effective_wait_ms) ?? wallMs(details) ?? numberOf(wait.yield_time_ms);
  const why = stringOf(wait.wait_status);
  const early = why === "cancelled" || why === "shutting_down" ? ` (${why})` : "";
  return muted(`yielded${ms === undefined ? "" : ` ${formatSeconds(ms)}`}${early}`);
}

function tookPart({ details, context }: Drawing): Span | undefined {
  const ms = wallMs(details) ?? numberOf(context.durationMs);
  return ms === undefined ? undefined : muted(`took ${formatSeconds(ms)}`);
}

function wallMs(details: Fields): number | undefined {
  const seconds = numberOf(details.wall_time_seconds);
  return seconds === undefined ? undefined : seconds * 1000;
}

function exitPart(details: Fields): Span | undefined {
  const signal = labelOf(details.signal);
  if (signal !== undefined) return span(`signal=${signal}`, "error");
  const code = labelOf(details.exit_code);
  if (code === undefined) return undefined;
  return span(`exit_code=${code}`, code === "0" ? "muted" : "error");
}

function sessionPart(details: Fields): Span | undefined {
  const id = labelOf(details.session_id);
  return id === undefined ? undefined : muted(`session_id=${id}`);
}

function logPart(details: Fields): Span | undefined {
  const path = logPath(details);
  if (path === undefined) return undefined;
  const lack = lackOf(details);
  return lack === "" ? muted(`log: ${path}`) : span(`log: ${path}${lack}`, "warning");
}

function lackOf(details: Fields): string {
  const wait: Unchecked<WaitResult> = details;
  return logLack(wait.log_complete, wait.log_truncated);
}

function logPath(details: Fields): string | undefined {
  const path = stringOf(details.log_path);
  return path ? shownPath(path) : undefined;
}

function killBlocks(drawing: Drawing): Block[] {
  const { details, text, context, expanded } = drawing;
  const kill: Unchecked<KillResult> = details;
  if (drawing.partial) {
    return bodyBlocks({ output: "", status: runningStatus(drawing) }, expanded, context);
  }
  if (kill.found === false) return notFoundBlocks(drawing);
  const output = toldOutput(drawing) ?? stringOf(kill.final_output);
  const summary = stringOf(kill.summary);
  const done = kill.killed !== false && !context.isError;
  const body: Body = {
    output: output ?? (summary === undefined ? text : ""),
    notices: [
      ...truncationNotices(details),
      ...arrayOf(kill.survivors).slice(0, MAX_NAMED).map(survivorSpan),
      ...notice(stringOf(kill.failure_message), "error"),
    ],
    status: [...notice(summary, done ? "muted" : "error"), logPart(details)],
  };
  return bodyBlocks(body, expanded, context);
}

function survivorSpan(survivor: unknown): Span {
  const { pid, command, reason } = fieldsOf(survivor);
  const why = stringOf(reason);
  const name = oneLine(stringOf(command) ?? "", LIST_CELLS);
  const because = why === undefined ? "" : ` (${oneLine(why, LIST_CELLS)})`;
  return span(`still alive: ${labelOf(pid) ?? "?"} ${name}${because}`, "error");
}

function notFoundBlocks({ details, context, expanded }: Drawing): Block[] {
  const asked = fieldsOf(context.args).session_id;
  const id = labelOf(details.session_id) ?? labelOf(asked);
  const text = id === undefined ? "no such session" : `no session with session_id=${id}`;
  return bodyBlocks({ output: "", status: [span(text, "error")] }, expanded, context);
}

function listBlocks(drawing: Drawing): Block[] {
  const { details, text, context, expanded, partial } = drawing;
  const list: Unchecked<ListResult> = details;
  if (partial && !Array.isArray(list.sessions)) return [];
  if (!Array.isArray(list.sessions)) return bodyBlocks({ output: text }, expanded, context);
  const lines = [
    ...list.sessions.map((session) => sessionBlocks(fieldsOf(session), expanded)),
    ...arrayOf(list.left).slice(0, MAX_NAMED).map((left) => leftBlocks(fieldsOf(left))),
  ];
  if (lines.length === 0) return [{ kind: "gap" }, line([span("no live sessions", "muted")])];
  return listed(lines, ["session", "sessions"], drawing);
}

/**
 * Takes a session as list_sessions tells it and gives `#2 41s npm run dev (~/project)`, with its
 * name before the command where it has one; `cells` bounds the command.
 */
export function describeSession(session: Unchecked<SessionInfo>, cells: number): string {
  const name = stringOf(session.name);
  const command = oneLine(stringOf(session.command) ?? "", cells);
  const cwd = stringOf(session.cwd);
  const words = [
    `#${labelOf(session.session_id) ?? "?"}`,
    formatAge(numberOf(session.elapsed_ms) ?? 0),
    name ? `${oneLine(name, cells)}: ${command}` : command,
    cwd ? `(${oneLine(shownPath(cwd), LIST_CELLS)})` : undefined,
  ];
  return words.filter((word) => word).join(" ");
}

function sessionBlocks(session: Unchecked<SessionInfo>, expanded: boolean): Block[] {
  const cells = expanded ? LIST_CELLS * 10 : LIST_CELLS;
  const spans = [span(describeSession(session, cells), "toolOutput"), ...stateSpans(session)];
  if (!expanded) return [{ kind: "cut", spans }];
  const log = logPath(session);
  return [line(spans), ...(log === undefined ? [] : [line([muted(`   log: ${log}`)])])];
}

function stateSpans(session: Unchecked<SessionInfo>): Span[] {
  const exit = session.running === false ? (exitPart(session) ?? muted("exited")) : undefined;
  const marks = [
    session.tty === true ? muted("tty") : undefined,
    session.wake_armed === true ? span("[wake]", "accent") : undefined,
    session.shell_exited === true ? muted("shell exited") : undefined,
    exit,
    ...notice(stringOf(session.failure_message), "error"),
  ].filter((mark) => mark !== undefined);
  return marks.flatMap((mark) => [muted(" · "), mark]);
}

function leftBlocks(left: Fields): Block[] {
  const command = oneLine(stringOf(left.command) ?? "", LIST_CELLS);
  const id = labelOf(left.session_id) ?? "?";
  const text = `#${id} ended, left pid ${labelOf(left.pid) ?? "?"} ${command}`;
  return [{ kind: "cut", spans: [muted(text)] }];
}

/** What became of a wake, in words. */
const WAKES: ReadonlyMap<unknown, [string, ThemeColor]> = new Map<unknown, [string, ThemeColor]>([
  ["armed", ["wake armed", "muted"]],
  ["already_armed", ["wake was armed already", "muted"]],
  ["disarmed", ["wake disarmed", "muted"]],
  ["already_none", ["no wake was armed", "muted"]],
  ["too_late", ["too late: the session has exited", "warning"]],
]);

function setOnExitBlocks(drawing: Drawing): Block[] {
  const { details, text, context } = drawing;
  if (drawing.partial) return [];
  if (details.found === false) return notFoundBlocks(drawing);
  const [words, tone] = WAKES.get(details.status) ?? [text, context.isError ? "error" : "muted"];
  return oneLineBlocks(words, tone);
}

function resizeBlocks({ details, text, context, partial }: Drawing): Block[] {
  if (partial) return [];
  const cols = labelOf(details.cols);
  const rows = labelOf(details.rows);
  const known = cols !== undefined && rows !== undefined;
  const words = known ? `terminal is ${cols}x${rows} now` : text;
  return oneLineBlocks(words, context.isError ? "error" : "muted");
}
