/**
 * How the tools of bash_stream look: the words of their calls (`$ cmd (yield 60s · pty)`,
 * `↻ poll → #3`, `» 12 bytes → #3 (eof)`, `✕ kill #3 SIGKILL`), and the views of their results.
 */
import { resolve } from "node:path";
import type { LogPage, StreamSession } from "../execd/wire-results.ts";
import { forgottenText, formatSeconds, formatSize } from "../text/figures.ts";
import { expandHome } from "../text/home.ts";
import { plainText } from "../text/plain.ts";
import { runningFacts, toldOutput } from "./body.ts";
import {
  asides, beginningOf, byteCount, commandSpans, conditionNotes, eofNote, killSpans, labelled,
  pollTitle, signalSpan, target, title,
} from "./calls.ts";
import {
  type Fields, type Unchecked, arrayOf, base64Bytes, fieldsOf, labelOf, numberOf, stdinNote,
  stringOf,
} from "./fields.ts";
import { type RowContext, type Span, span } from "./row.ts";
import {
  type Entry, type Look, type Outcome, type RowView, CAMEL, clipped, doingFacts, endedLog,
  endedNotice, entryOf, factsOf, isByCondition, isFailed, muted, notice, saying, shownPath, timeFact,
} from "./view.ts";

/** The most background processes that are named. */
const MAX_NAMED = 16;

/** The tools of bash_stream. */
export const STREAM = {
  bash_stream: { call: streamCall, view: reportView },
  poll_process: { call: pollCall, view: reportView },
  write_stdin: { call: stdinCall, view: stdinView },
  kill_process: { call: killCall, view: killView },
  list_processes: { call: () => [title("list_processes")], view: listView },
  get_process_log: { call: logCall, view: logView },
} satisfies Record<string, Look>;

/** `$ cmd (yield 60s · pty)` */
function streamCall(args: Fields, context: RowContext): Span[] {
  const pis = resolve(stringOf(context.cwd) ?? "");
  const cwd = resolve(pis, expandHome(clipped(stringOf(args.workdir) ?? "")));
  const notes = [
    timeNote("yield", args.yieldMs),
    ...conditionNotes(args),
    timeNote("timeout", args.timeoutMs),
    cwd === pis ? undefined : `cwd: ${shownPath(cwd)}`,
    stdinNote(args.stdinMode),
  ];
  return [...commandSpans(args.command), ...asides(notes)];
}

/** `↻ poll → #3 (wait 5s)`, or `(to its end, 600s)`; `↻ wait port 5173 → #3 (wait 5s)` */
function pollCall(args: Fields): Span[] {
  const [, stop] = conditionNotes(args);
  const notes = [
    stop,
    waitNote("to its end,", args.waitMs),
    waitNote("wait", args.maxDrainMs),
    labelled("kill if ", args.killIf),
  ];
  return [pollTitle(args), ...target(" → ", args.sessionId), ...asides(notes)];
}

/** `» 12 bytes → #3 (eof)`; the data itself stands below when expanded. */
function stdinCall({ data, sessionId, eof }: Fields, { expanded }: RowContext): Span[] {
  const text = stringOf(data) ?? "";
  const base64 = stringOf(fieldsOf(data).base64);
  const bytes = base64 === undefined ? Buffer.byteLength(text) : base64Bytes(base64);
  const { head, more } = beginningOf(text);
  return [
    title(`» ${byteCount(bytes)}`),
    ...target(" → ", sessionId),
    ...asides([eofNote(eof)]),
    ...(expanded && text !== "" ? [span(`\n${head}${more}`, "toolOutput")] : []),
  ];
}

/** `✕ kill #3 SIGKILL` */
function killCall(args: Fields, context: RowContext): Span[] {
  return killSpans(args.sessionId, signalSpan(args, context, "SIGKILL"));
}

/** `log #3 (from 1000 · stderr)` */
function logCall({ sessionId, offset, limit, stream, encoding }: Fields): Span[] {
  const notes = [
    labelled("from ", offset),
    labelled("", limit, " bytes"),
    labelOf(stream),
    encoding === "base64" ? "base64" : undefined,
  ];
  return [title("log"), ...target(" ", sessionId), ...asides(notes)];
}

/** `yield 60s`, `yield 2.5s`: whole seconds need no tenths here. */
function timeNote(what: string, value: unknown): string | undefined {
  const ms = numberOf(value);
  if (ms === undefined) return undefined;
  const whole = ms >= 0 && ms % 1000 === 0;
  return `${what} ${whole ? `${ms / 1000}s` : formatSeconds(ms)}`;
}

/** `wait 5s`; undefined where the call does not wait. */
function waitNote(what: string, value: unknown): string | undefined {
  return (numberOf(value) ?? 0) > 0 ? timeNote(what, value) : undefined;
}

/** A session's output, its notices and `took 4.2s · exit 3 · log: ~/…`. */
function reportView(outcome: Outcome): RowView {
  const { details, text, context, partial, state } = outcome;
  const output = outputOf(outcome);
  const tone = context.isError && output === undefined ? "error" : "toolOutput";
  const told = output ?? text;
  const isBrokenOff = details.interrupted === true || details.aborted === true;
  return {
    body: { text: isBrokenOff && told.trim() === "" ? state.live ?? told : told, tone },
    isFailed: hasFailed(details),
    notices: partial ? liveNotices(details) : reportNotices(details, context.args),
    facts: partial ? runningFacts(outcome, CAMEL) : reportFacts(outcome),
  };
}

/** Whether the report tells of a command that has failed, or was ended before its time. */
function hasFailed(details: Fields): boolean {
  const isEnded = details.aborted === true || details.timedOut === true;
  return isEnded || details.error !== undefined || isFailed(details, CAMEL);
}

/** The same of one that was ended on purpose: that it ended so is no failure. */
function killView(outcome: Outcome): RowView {
  const { details } = outcome;
  return { ...reportView(outcome), isFailed: details.status === "running" || details.error !== undefined };
}

/** The output in order of arrival, where the report has it so; what is raw is made plain. */
function outputOf(outcome: Outcome): string | undefined {
  const { details, text, partial } = outcome;
  const { output, aggregated, stdout, stderr, tail } = details;
  const streams = [stringOf(stdout), stringOf(stderr)].filter((one) => one !== undefined);
  const apart = streams.length > 0 ? streams.join("") : undefined;
  const told = toldOutput(outcome);
  const known = (partial ? plainOf(told) : told) ?? plainOf(output) ?? stringOf(aggregated) ?? apart;
  return known ?? plainOf(tail) ?? (details.status === undefined && text !== "" ? undefined : "");
}

function plainOf(raw: unknown): string | undefined {
  return typeof raw === "string" ? plainText(raw) : undefined;
}

/** Where so much came that no more of it is told as it comes. */
function liveNotices(details: Fields): Span[] {
  const text = "[No more of the output is shown live: it is too much.]";
  return notice(details.liveEnded === true ? text : undefined, "warning");
}

function reportNotices(details: Fields, args: unknown): Span[] {
  const { fullOutput } = factsOf(details, CAMEL);
  const pids = arrayOf(details.backgroundPids).slice(0, MAX_NAMED).map(labelOf).filter(Boolean);
  return [
    ...notice(details.truncated === true ? `[Showing the end.${fullOutput}]` : "", "warning"),
    ...notice(pids.length > 0 ? `still in the background: ${pids.join(", ")}` : "", "warning"),
    ...notice(details.late === true ? "some came after its end" : "", "warning"),
    ...notice(details.timedOut === true ? "its time was over" : "", "error"),
    ...notice(stringOf(details.error), "error"),
    ...endedNotice(details, args),
    ...notice(isImpossible(details) ? undefined : stringOf(details.note), "warning"),
    ...notice(stringOf(details.failureMessage), "error"),
    ...notice(details.aborted === true ? "ended by Esc" : "", "error"),
  ];
}

/** Why a wait was impossible stands in a line of its own. */
function isImpossible(details: Fields): boolean {
  return fieldsOf(details.wait).outcome === "impossible";
}

function reportFacts({ details, expanded }: Outcome): (Span | undefined)[] {
  if (details.status === undefined) return [];
  const { id, exit, log } = factsOf(details, CAMEL);
  const runs = details.status === "running";
  const yielded = runs && details.waitedMs !== undefined;
  const ms = numberOf(yielded ? details.waitedMs : details.durationMs);
  const what = yielded ? (isByCondition(details) ? "waited" : "yielded") : runs ? "running" : "took";
  const early = details.interrupted === true ? " (a message came)" : "";
  if (runs) return [timeFact(what, ms, early), id, ...doingFacts(details), log];
  const end = endedLog(details, CAMEL, { isCut: details.truncated === true, expanded });
  return [timeFact(what, ms, early), exit, end];
}

/** One line for each session. */
function listView({ details, text, partial, expanded }: Outcome): RowView {
  const { processes } = details;
  if (!Array.isArray(processes)) return partial ? {} : { body: { text } };
  const entries = processes.map((one) => sessionEntry(fieldsOf(one), expanded));
  const [forgotten, keptMax, keptMs] =
    [details.forgotten, details.keptMax, details.keptMs].map(numberOf);
  const last = forgottenText({ forgotten, keptMax, keptMs });
  return { list: { entries, nouns: ["session", "sessions"], none: "no sessions", last } };
}

function sessionEntry(session: Unchecked<StreamSession>, expanded: boolean): Entry {
  const stdin = stdinNote(session.stdinMode);
  const exit = factsOf(session, CAMEL).exit ?? muted("ended");
  const marks = [
    stdin === undefined ? undefined : muted(stdin),
    session.status === "running" ? undefined : exit,
    ...doingFacts(session),
  ];
  return entryOf(session, CAMEL, marks, expanded);
}

/** What became of input, in one line. */
function stdinView({ text, partial, context }: Outcome): RowView {
  if (partial) return {};
  return saying(text.split(". ", 1)[0] ?? "", context.isError ? "error" : "muted");
}

/** A page of a log, from its beginning, and which part of the log it is. */
function logView(outcome: Outcome): RowView {
  if (outcome.partial) return {};
  const page: Unchecked<LogPage> = outcome.details;
  const told = toldOutput(outcome) ?? page.text;
  const output = page.encoding === "base64" ? stringOf(told) : plainOf(told);
  return {
    body: { text: output ?? outcome.text, keep: "start" },
    facts: output === undefined ? [] : [muted(partText(page))],
  };
}

function partText(page: Unchecked<LogPage>): string {
  const [from, to, total] = [page.offset, page.nextOffset, page.totalBytes].map(labelOf);
  const size = formatSize(numberOf(page.totalBytes) ?? 0);
  const end = page.eof === true ? " · end" : "";
  return `bytes ${from ?? "?"} to ${to ?? "?"} of ${total ?? "?"} (${size})${end}`;
}
